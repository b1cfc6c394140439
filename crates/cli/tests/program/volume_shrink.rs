//! Nothing that volumes hold is lost without a word that says so.

use crate::nbd::{change, serve, volume, with_volume_units};
use crate::support::clients;
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{binary, fails, json, said, softflash};
use crate::support::server::Server;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn connect(server: &Server, export: &str) -> NbdClient {
    NbdClient::connect(server.address_of("nbd"), export)
}

/// The change is refused with an error that has these parts.
fn refused(server: &Server, words: &[&str], parts: &[&str]) {
    let reply = volume(server, words);
    let error = reply.error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"));
    assert!(parts.iter().all(|part| error.contains(part)), "{words:?}: {error}");
}

/// Tries a change until the connections that hinder it have ended, which takes a moment.
fn change_soon(server: &Server, words: &[&str]) {
    let done = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        volume(server, words).is_ok()
    });
    assert!(done, "{words:?}: nobody uses it any more");
}

fn size_of(data: &Path) -> u64 {
    let listed = json(&softflash(["volume", "list", data.to_str().unwrap(), "-o", "json"]));
    listed[0]["size_bytes"].as_u64().unwrap()
}

#[test]
fn a_volume_gets_smaller_than_its_data_only_if_that_is_said() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let server = serve(&data);
    change(&server, &["CREATE", "vm", "64MiB"]);
    let mut client = connect(&server, "vm");
    // The last mapping unit with data ends at 10 MiB + 4 KiB.
    assert_eq!(client.write(10 * MIB, &noise(1, 4096)), 0);
    assert_eq!(client.write(4 * MIB, &noise(2, 8192)), 0);
    assert_eq!(client.flush(), 0);
    let parts = ["`vm` holds 12288 bytes beyond 1048576", "up to byte 10489856", "add SHRINK"];
    refused(&server, &["RESIZE", "vm", "1MiB"], &parts);
    refused(&server, &["RESIZE", "vm", "4KiB"], &["12288 bytes beyond 4096"]);
    refused(&server, &["RESIZE", "vm", "10MiB"], &["4096 bytes beyond"]);
    refused(&server, &["RESIZE", "vm", "1MiB", "PLEASE"], &["syntax"]);
    assert!(client.read(10 * MIB, 4096).unwrap() == noise(1, 4096), "it is all there");
    // As far as it holds nothing, no word is needed.
    change(&server, &["RESIZE", "vm", "10489856"]);
    change(&server, &["RESIZE", "vm", "1GiB"]);
    change(&server, &["RESIZE", "vm", "8MiB", "shrink"]);
    assert_eq!(client.read(8 * MIB, 4096), Err(22), "beyond the end, for clients too");
    drop(client);
    assert!(server.terminate().success());

    fails(1, &["volume", "resize", path, "vm", "1MiB"], &["8192 bytes beyond", "add --shrink"]);
    assert_eq!(size_of(&data), 8 * MIB);
    let shrunk = softflash(["volume", "resize", path, "vm", "1MiB", "--shrink"]);
    assert!(said(&shrunk).contains("what was beyond is lost"), "{}", said(&shrunk));
    assert_eq!(size_of(&data), MIB);
    let grown = softflash(["volume", "resize", path, "vm", "2MiB"]);
    assert!(grown.status.success(), "{}", said(&grown));
}

#[test]
fn data_that_a_clone_shares_with_its_snapshot_are_data_too() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "vm", "64MiB"]);
    assert_eq!(connect(&server, "vm").write(20 * MIB, &noise(1, 4096)), 0);
    change(&server, &["SNAPSHOT", "vm", "s"]);
    change(&server, &["CLONE", "vm", "s", "clone"]);
    refused(&server, &["RESIZE", "clone", "1MiB"], &["4096 bytes beyond"]);
    change(&server, &["RESIZE", "clone", "1MiB", "SHRINK"]);
    // What the snapshot keeps is no reason: it stays.
    change(&server, &["RESIZE", "vm", "1MiB", "SHRINK"]);
    change(&server, &["RESIZE", "vm", "4KiB"]);
    assert!(connect(&server, "vm@s").read(20 * MIB, 4096).unwrap() == noise(1, 4096));
    assert!(server.terminate().success());
}

#[test]
fn a_volume_or_snapshot_that_clients_use_is_not_deleted() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "vm", "8MiB"]);
    change(&server, &["CREATE", "other", "8MiB"]);
    change(&server, &["SNAPSHOT", "vm", "s"]);
    let mut on_snapshot = connect(&server, "vm@s");
    assert!(on_snapshot.read(0, 4096).is_ok());
    refused(&server, &["DELETESNAPSHOT", "vm", "s"], &["`vm@s` is in use by 1", "disconnect"]);
    drop(on_snapshot);
    let mut clients = [connect(&server, "vm"), connect(&server, "vm")];
    clients.iter_mut().for_each(|client| assert!(client.read(0, 4096).is_ok()));
    change(&server, &["DELETE", "other"]);
    change_soon(&server, &["DELETESNAPSHOT", "vm", "s"]);
    refused(&server, &["DELETE", "vm"], &["`vm` is in use by 2 NBD clients"]);
    assert!(clients[0].read(0, 4096).is_ok());
    drop(clients);
    change_soon(&server, &["DELETE", "vm"]);
    assert!(server.terminate().success());
}

/// Whether there is a terminal for [`volume_on_a_terminal`].
pub fn has_terminal() -> bool {
    let has_script = Command::new("script").arg("--version").output().is_ok();
    if !has_script {
        clients::skip("`script` of util-linux");
    }
    has_script
}

/// Runs `softflash volume` on a terminal, where this answer is typed.
pub fn volume_on_a_terminal(arguments: &str, answer: &str) -> Output {
    let command = format!("{} volume {arguments}", binary().display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = script.spawn().expect("`script` can be started");
    let typed = running.stdin.as_mut().unwrap().write_all(format!("{answer}\n").as_bytes());
    typed.expect("the answer can be typed");
    // The input stays open: `script` would type an end of file.
    let input = running.stdin.take();
    let output = running.wait_with_output().unwrap();
    drop(input);
    output
}

#[test]
fn a_deletion_asks_on_a_terminal() {
    if !has_terminal() {
        return;
    }
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let server = serve(&data);
    for name in ["vm", "empty", "forced", "named"] {
        change(&server, &["CREATE", name, "8MiB"]);
        if name != "empty" {
            assert_eq!(connect(&server, name).write(0, &noise(1, 4096)), 0);
        }
    }
    change(&server, &["SNAPSHOT", "vm", "s"]);
    assert!(server.terminate().success());
    let on_terminal = |arguments: &str, answer: &str, code: i32, parts: &[&str]| {
        let output = volume_on_a_terminal(arguments, answer);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{arguments}: {told}");
        told
    };
    let question = ["delete snapshot `s` of volume `vm`? [y/N]"];
    on_terminal(&format!("delete-snapshot {path} vm s"), "n", 1, &question);
    on_terminal(&format!("delete-snapshot {path} vm s"), "yes", 0, &["deleted snapshot `s`"]);
    let question = ["delete volume `vm`, which holds 4.0 KiB? [y/N]", "nothing was changed"];
    on_terminal(&format!("delete {path} vm"), "", 1, &question);
    on_terminal(&format!("delete {path} vm"), "y", 0, &["deleted volume `vm`"]);
    // Neither an empty volume nor a forced command nor a script is asked.
    for arguments in [format!("delete {path} empty"), format!("delete {path} forced --force")] {
        let told = on_terminal(&arguments, "", 0, &["deleted volume"]);
        assert!(!told.contains("[y/N]"), "{told}");
    }
    let deleted = softflash(["volume", "delete", path, "named"]);
    assert!(deleted.status.success(), "{}", said(&deleted));
    assert_eq!(json(&softflash(["volume", "list", path, "-o", "json"])), serde_json::json!([]));
}
