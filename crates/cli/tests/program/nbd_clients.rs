//! Unmodified NBD clients: libnbd's nbdinfo and nbdcopy, qemu-img and qemu-io, and fio.

use crate::nbd::{change, serve, with_volume_units};
use crate::support::clients::skip;
use crate::support::noise;
use crate::support::program::said;
use crate::support::server::Server;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn exists(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Whether all of them can be started; says what is missing.
pub fn all_exist(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !exists(program));
    missing.inspect(|program| skip(program)).is_none()
}

/// Runs a client, which succeeds, and returns what it prints.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = attempt(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn attempt(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

pub fn uri(server: &Server, export: &str) -> String {
    format!("nbd://{}/{export}", server.address_of("nbd"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// qemu-io: all commands succeed, and every pattern is as expected.
fn qemu_io(uri: &str, commands: &[&str]) {
    let commands: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
    let said = run("qemu-io", &[&["-f", "raw"], &commands[..], &[uri]].concat());
    assert!(!said.contains("failed"), "{said}");
}

#[test]
fn nbdinfo_shows_volumes_and_snapshots() {
    if !all_exist(&["nbdinfo"]) {
        return;
    }
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    change(&server, &["SNAPSHOT", "disk", "monday"]);
    change(&server, &["CREATE", "other", "1GiB"]);
    let disk = run("nbdinfo", &[&uri(&server, "disk")]);
    for line in [
        "export-size: 67108864",
        "is_read_only: false",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "base:allocation",
        "block_size_minimum: 1",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
    ] {
        assert!(disk.contains(line), "`{line}` is missing in\n{disk}");
    }
    let snapshot = run("nbdinfo", &[&uri(&server, "disk@monday")]);
    assert!(snapshot.contains("is_read_only: true"), "{snapshot}");
    let all = run("nbdinfo", &["--list", &uri(&server, "")]);
    for name in ["disk", "disk@monday", "other"] {
        assert!(all.contains(&format!("export=\"{name}\"")), "{all}");
    }
    assert!(server.terminate().success());
}

#[test]
fn nbdcopy_copies_in_and_out_over_a_kill() {
    if !all_exist(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let (temp, data) = with_volume_units();
    let [image, copied] = ["image", "copied"].map(|name| temp.path().join(name));
    // Three parts, of which the middle one is a hole.
    let mut contents = noise(1, 24 << 20);
    contents[8 << 20..16 << 20].fill(0);
    fs::write(&image, &contents).unwrap();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "24MiB"]);
    let disk = uri(&server, "disk");
    run("nbdcopy", &["--connections=4", "--requests=64", "--flush", text(&image), &disk]);
    server.kill();
    let server = serve(&data);
    run("nbdcopy", &["--connections=4", &uri(&server, "disk"), text(&copied)]);
    assert!(fs::read(&copied).unwrap() == contents);
    let map = run("nbdinfo", &["--map", &uri(&server, "disk")]);
    let lines: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    let hole = ["8388608", "8388608", "3", "hole,zero"];
    assert!(lines.iter().any(|line| line[..] == hole), "{map}");
    assert_eq!(lines.len(), 3, "{map}");

    // From one export to another, on another shard.
    change(&server, &["CREATE", "other", "24MiB"]);
    run("nbdcopy", &[&uri(&server, "disk"), &uri(&server, "other")]);
    run("nbdcopy", &[&uri(&server, "other"), text(&copied)]);
    assert!(fs::read(&copied).unwrap() == contents);
    assert!(server.terminate().success());
}

#[test]
fn qemu_writes_trims_and_zeroes_and_a_snapshot_stays() {
    if !all_exist(&["qemu-io", "qemu-img"]) {
        return;
    }
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let disk = uri(&server, "disk");
    qemu_io(
        &disk,
        &[
            "write -P 0xaa 0 8M",
            "write -P 0xbb 1536 512",
            "write -P 0xcc -f 1M 64k",
            "read -P 0xaa 0 1536",
            "read -P 0xbb 1536 512",
            "read -P 0xaa 2048 1046528",
            "read -P 0xcc 1M 64k",
            "flush",
        ],
    );
    let image = temp.path().join("before.raw");
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &disk, text(&image)]);
    change(&server, &["SNAPSHOT", "disk", "before"]);
    qemu_io(
        &disk,
        &[
            "write -z -u 2M 1M",
            "read -P 0 2M 1M",
            "write -z 4M 512k",
            "read -P 0 4M 512k",
            "discard 6M 1M",
            "read -P 0 6M 1M",
            "write -P 0xdd 0 4k",
            "flush",
        ],
    );
    let snapshot = uri(&server, "disk@before");
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &snapshot, text(&image)]);
    let refused = attempt("qemu-io", &["-f", "raw", "-c", "write 0 4k", &snapshot]);
    assert!(!refused.status.success(), "{}", said(&refused));

    let qcow = temp.path().join("disk.qcow2");
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &disk, text(&qcow)]);
    run("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", text(&qcow), &disk]);
    change(&server, &["CREATE", "restored", "64MiB"]);
    let restored = uri(&server, "restored");
    run("qemu-img", &["convert", "-n", "-f", "qcow2", "-O", "raw", text(&qcow), &restored]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &restored, &disk]);
    change(&server, &["RESIZE", "disk", "128MiB"]);
    let info = run("qemu-img", &["info", "-f", "raw", &disk]);
    assert!(info.contains("134217728 bytes"), "{info}");
    assert!(server.terminate().success());
}

#[test]
fn fio_verifies_what_it_has_written() {
    if !all_exist(&["fio"]) {
        return;
    }
    if !run("fio", &["--enghelp"]).split_whitespace().any(|engine| engine == "nbd") {
        return skip("fio's engine nbd");
    }
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "32MiB"]);
    let uri = format!("--uri={}", uri(&server, "disk"));
    let directory = format!("--aux-path={}", text(temp.path()));
    let output = Command::new("fio")
        .current_dir(temp.path())
        .args(["--name=verify", "--ioengine=nbd", &uri, "--size=32M", "--rw=randwrite", &directory])
        .args(["--bsrange=512-64k", "--blockalign=512", "--iodepth=32", "--verify=crc32c"])
        .args(["--verify_fatal=1", "--fsync=100"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(server.terminate().success());
}
