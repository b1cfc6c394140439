//! What a machine without the reader's files, disks and hours takes instead.

/// Words of pages, and what stands for them here.
const STAND_INS: [(&str, &str); 9] = [
    ("cargo run --release -- ", "softflash "),
    ("target/release/softflash ", "softflash "),
    // The device is preallocated.
    ("--size 64GiB", "--size 1GiB"),
    ("--size 100GiB", "--size 1GiB"),
    ("/srv/flash", "DIR"),
    ("/etc/softflash.password", "password"),
    ("--askpass", "--pass secret --no-auth-warning"),
    ("-h flash.example", "-h localhost"),
    ("/etc/pki/nbd", "pki"),
];

/// Beginnings of commands that are not run, with the reason.
pub const NOT_RUN: [(&str, &str); 14] = [
    ("cargo xtask", "a tool for developers; the gate runs those that it needs"),
    ("cargo install", "installs a tool"),
    ("bench/", "runs for minutes, with programs of others"),
    ("softflash bench kv --workload overwrite --keys 20000", "runs for a minute"),
    ("softflash bench ftl", "runs for half a minute"),
    ("softflash bench report", "has the results of bench/ as input"),
    ("softflash lab run --all", "runs for an hour, and in its short form for minutes"),
    ("softflash lab run sdf-fig10", "runs for minutes"),
    ("qemu-system-x86_64", "starts a virtual machine"),
    ("nbd-client", "needs a module of the kernel"),
    ("mkfs.ext4 /dev/nbd0", "needs a module of the kernel"),
    ("nbdfuse", "`cargo xtask filesystems` runs it, with file systems"),
    ("mount", "`cargo xtask filesystems` runs it"),
    ("nbdcopy disk.raw 'nbds", "needs certificates for clients; the tests of TLS have it"),
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
