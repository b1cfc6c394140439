//! What `docs/operations.md` offers: the unit for systemd, and the metrics to watch.

use crate::nbd::{change, serve};
use crate::pairs::with_two_sets;
use crate::sets::set;
use crate::support::http::get;
use crate::support::nbd::NbdClient;
use crate::support::program::{Backend, binary, format_with, said};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn systemd_accepts_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        // Not through the harness, which hides the output of tests that pass.
        let notice = b"SKIPPED: systemd-analyze is missing; the Debian package is systemd\n";
        return std::io::stderr().write_all(notice).unwrap();
    }
    let temp = tempfile::tempdir().unwrap();
    let unit = fs::read_to_string(project("examples/softflash.service")).unwrap();
    let verify = |text: &str| {
        let file = temp.path().join("softflash.service");
        fs::write(&file, text).unwrap();
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).arg(&file).output().unwrap()
    };
    // The program must exist where the unit has it.
    let unit = unit.replace("/usr/local/bin/softflash", binary().to_str().unwrap());
    let accepted = verify(&unit);
    assert!(accepted.status.success() && accepted.stderr.is_empty(), "{}", said(&accepted));
    let misspelt = verify(&unit.replace("TimeoutStopSec", "TimeoutStop"));
    assert!(said(&misspelt).contains("TimeoutStop"), "it names what it does not know");
}

#[test]
fn a_supervisor_is_told_when_the_server_is_ready() {
    let temp = tempfile::tempdir().unwrap();
    let (data, socket) = (temp.path().join("data"), temp.path().join("notify"));
    format_with(&data, Backend::File, 256 << 20, &["--units", "2"]);
    let supervisor = UnixDatagram::bind(&socket).unwrap();
    supervisor.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut child = Command::new(binary())
        .args(["serve", "--resp", "127.0.0.1:0", "--memory", "32MiB", "--data"])
        .arg(&data)
        .env("NOTIFY_SOCKET", &socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut message = [0; 64];
    let length = supervisor.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1");
    crate::support::signals::send(&child, libc::SIGTERM);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_metrics_to_watch_exist() {
    let (_temp, data) = with_two_sets();
    set(&data, "pair", &["vol-0", "copy"]);
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1MiB", "quota", "1MiB"]);
    let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
    assert_eq!(disk.write(0, &[1; 4096]), 0);
    drop(disk);
    let page = get(server.address_of("http"), "/metrics");
    let served: BTreeSet<&str> = page.lines().filter_map(metric).collect();
    let document = fs::read_to_string(project("docs/operations.md")).unwrap();
    let watched: BTreeSet<&str> = document
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("softflash_"))
        .collect();
    assert!(watched.len() > 10, "{watched:?}");
    let missing: Vec<_> = watched.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?} are not in /metrics");
    assert!(server.terminate().success());
}

/// The name of a line's metric, without its labels.
fn metric(line: &str) -> Option<&str> {
    line.starts_with("softflash_").then(|| line.split([' ', '{']).next()).flatten()
}
