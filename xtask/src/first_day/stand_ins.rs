//! What a machine without the reader's files, disks and hours takes instead.

/// The programs of commands that are run. Others could change the machine.
const PROGRAMS: [&str; 7] =
    ["softflash", "redis-cli", "nbdinfo", "nbdcopy", "qemu-img", "openssl", "printf"];

/// Words of pages, and what stands for them here.
const STAND_INS: [(&str, &str); 19] = [
    ("cargo run --release -- ", "softflash "),
    ("target/release/softflash ", "softflash "),
    // The device is preallocated.
    ("--size 64GiB", "--size 1GiB"),
    ("--size 100GiB", "--size 1GiB"),
    ("--size 128GiB", "--size 1280MiB"),
    ("--size 256GiB", "--size 2GiB"),
    ("GROW 192GiB", "GROW 1536MiB"),
    // The drive with fewer blocks, as filling it takes most of the time.
    ("--device plan ", "--device small-plan.toml "),
    ("/srv/flash", "DIR"),
    ("/var/lib/softflash/data", "DIR"),
    ("/backup/keys.sfdump", "salvaged.sfdump"),
    ("/etc/softflash.password", "password"),
    ("/etc/softflash/password", "password"),
    // The dump that the command before has written.
    ("keys-2026-11-26.sfdump", "keys-$(date +%F).sfdump"),
    ("report before after", "report results results"),
    ("--askpass", "--pass secret --no-auth-warning"),
    ("-h flash.example", "-h localhost"),
    ("--resp flash.example", "--resp localhost"),
    ("/etc/pki/nbd", "pki"),
];

/// Beginnings of commands that are not run, with the reason.
pub const NOT_RUN: [(&str, &str); 25] = [
    ("cargo xtask", "a tool for developers; the gate runs those that it needs"),
    ("cargo build", "builds for minutes; the gate has a build"),
    ("cargo run --profile", "builds for minutes; the gate has a build"),
    ("cargo install", "installs a tool"),
    ("cargo test", "the gate runs all tests"),
    ("bench/", "runs for minutes, with programs of others"),
    ("softflash bench kv --workload overwrite --keys 20000", "runs for a minute"),
    ("softflash bench ftl", "runs for half a minute"),
    ("softflash-bench report", "has the results of bench/ as input"),
    ("softflash bench sim --device mine.toml --layout sdf", "runs for minutes"),
    ("softflash lab run --all", "runs for an hour, and in its short form for minutes"),
    ("softflash lab run sdf-fig10", "runs for minutes"),
    ("qemu-system-x86_64", "starts a virtual machine"),
    ("nbd-client", "needs a module of the kernel"),
    ("mkfs.ext4 /dev/nbd0", "needs a module of the kernel"),
    ("nbdfuse", "`cargo xtask filesystems` runs it, with file systems"),
    ("mount", "`cargo xtask filesystems` runs it"),
    ("nbdcopy disk.raw 'nbds", "needs certificates for clients; the tests of TLS have it"),
    ("install ", "changes the machine"),
    ("useradd ", "changes the machine"),
    ("runuser ", "needs root and a user that `useradd` adds"),
    ("systemctl ", "changes the services of the machine"),
    ("softflash volume export DIR - | ssh", "needs a second machine"),
    ("ssh ", "needs a second machine"),
    ("cp ", "copies files of a data directory of this machine"),
];

/// The command with the stand-ins.
pub fn replaced(command: &str) -> String {
    let all = STAND_INS.iter();
    all.fold(command.to_owned(), |command, (word, stand_in)| command.replace(word, stand_in))
}

/// The reason why a command is not run.
pub fn reason_against(command: &str) -> Option<&'static str> {
    NOT_RUN.iter().find(|(start, _)| command.starts_with(start)).map(|(_, reason)| *reason)
}

/// Whether the program of a command with its stand-ins is one of those that are run.
pub fn is_known(command: &str) -> bool {
    command.split_whitespace().next().is_some_and(|program| PROGRAMS.contains(&program))
}
