//! `softflash volume rename`, `rollback` and `promote`, and the same on a running server.

use crate::nbd::{change, serve, volume as reply, with_volume_units};
use crate::support::clients;
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{Backend, check_clean};
use crate::support::program::{fails, format_with, json, said, softflash};
use crate::support::server::Server;
use crate::volume_shrink::volume_on_a_terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn connect(server: &Server, export: &str) -> NbdClient {
    NbdClient::connect(server.address_of("nbd"), export)
}

/// The change is refused with an error that has these parts.
fn refused(server: &Server, words: &[&str], parts: &[&str]) {
    let reply = reply(server, words);
    let error = reply.error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"));
    assert!(parts.iter().all(|part| error.contains(part)), "{words:?}: {error}");
}

/// Tries a change until the connections that hinder it have ended, which takes a moment.
fn change_soon(server: &Server, words: &[&str]) {
    let done = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        reply(server, words).is_ok()
    });
    assert!(done, "{words:?}: nobody uses it any more");
}

/// Runs `softflash volume COMMAND DIR ...`, which succeeds, and returns what it says.
fn volume(command: &str, data: &Path, more: &[&str]) -> String {
    let output = softflash([&["volume", command, data.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{command} {more:?}: {}", said(&output));
    said(&output)
}

fn list(data: &Path) -> Value {
    json(&softflash(["volume", "list", data.to_str().unwrap(), "-o", "json"]))
}

#[test]
fn a_stopped_store_renames_rolls_back_and_promotes() {
    let (temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "8MiB", "weight", "300"]);
    change(&server, &["CREATE", "other", "8MiB"]);
    assert_eq!(connect(&server, "disk").write(0, &noise(1, 8192)), 0);
    change(&server, &["SNAPSHOT", "disk", "monday"]);
    assert_eq!(connect(&server, "disk").write(4096, &noise(2, 8192)), 0);
    change(&server, &["CLONE", "disk", "monday", "trial"]);
    change(&server, &["SNAPSHOT", "disk", "tuesday"]);
    assert_eq!(connect(&server, "disk").write(0, &noise(3, 4096)), 0);
    assert!(server.terminate().success());

    for taken in ["other", "disk"] {
        fails(1, &["volume", "rename", path, "disk", taken], &[&format!("`{taken}` exists")]);
    }
    fails(2, &["volume", "rename", path, "disk", "a/b"], &["`a/b`", "letters, digits"]);
    fails(1, &["volume", "rename", path, "none", "a"], &["no volume `none`"]);
    let told = volume("rename", &data, &["disk", "main"]);
    assert!(told.contains("renamed volume `disk` to `main`"), "{told}");

    let parts = ["`main@monday` is not the newest", "`tuesday`", "promote"];
    fails(1, &["volume", "rollback", path, "main", "monday"], &parts);
    fails(1, &["volume", "rollback", path, "main", "friday"], &["has no snapshot `friday`"]);
    // A script is not asked.
    let told = volume("rollback", &data, &["main", "tuesday"]);
    assert!(told.contains("volume `main` is as its snapshot `tuesday`"), "{told}");

    fails(1, &["volume", "promote", path, "main"], &["`main` is not a clone"]);
    let told = volume("promote", &data, &["trial"]);
    assert!(told.contains("1 snapshot of `main`, which is a clone of `trial@monday`"), "{told}");
    let listed = list(&data);
    assert_eq!(listed[0]["name"], "main");
    assert_eq!(listed[0]["clone_of"], "trial@monday");
    assert_eq!(listed[0]["weight"], 300);
    assert_eq!(listed[0]["snapshots"], json!(["tuesday"]));
    assert_eq!(listed[2]["snapshots"], json!(["monday"]));
    assert_eq!(listed[2]["clone_of"], Value::Null);
    check_clean(&data);

    // Another directory gets them as they are.
    let (file, new) = (temp.path().join("all.sfvolumes"), temp.path().join("new"));
    volume("export", &data, &[file.to_str().unwrap()]);
    let shares = ["--units", "4", "--volume-units", "2"];
    format_with(&new, Backend::File, 512 * MIB, &shares);
    volume("import", &new, &[file.to_str().unwrap()]);
    for directory in [&data, &new] {
        let server = serve(directory);
        let first = |name: &str| connect(&server, name).read(0, 12288).unwrap();
        let monday = [noise(1, 8192), vec![0; 4096]].concat();
        let tuesday = [&noise(1, 8192)[..4096], &noise(2, 8192)].concat();
        assert!(first("trial") == monday && first("trial@monday") == monday);
        assert!(first("main") == tuesday && first("main@tuesday") == tuesday);
        change_soon(&server, &["DELETESNAPSHOT", "main", "tuesday"]);
        change_soon(&server, &["DELETE", "main"]);
        assert!(first("trial") == monday);
        assert!(server.terminate().success());
        check_clean(directory);
    }
}

#[test]
fn a_running_server_does_the_same_and_keeps_clients_from_surprises() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "vm", "8MiB"]);
    let mut client = connect(&server, "vm");
    assert_eq!(client.write(0, &noise(1, 4096)), 0);
    change(&server, &["SNAPSHOT", "vm", "s"]);
    assert_eq!(client.write(0, &noise(2, 4096)), 0);
    change(&server, &["CLONE", "vm", "s", "clone"]);
    let used = ["`vm` is in use by 1", "disconnect"];
    refused(&server, &["RENAME", "vm", "main"], &used);
    refused(&server, &["ROLLBACK", "vm", "s"], &used);
    refused(&server, &["RENAME", "clone", "vm"], &["`vm` exists"]);
    refused(&server, &["RENAME", "vm"], &["wrong number of arguments"]);
    refused(&server, &["ROLLBACK", "none", "s"], &["no volume `none`", "LIST"]);
    refused(&server, &["PROMOTE", "vm"], &["`vm` is not a clone"]);
    // Whoever reads the snapshot would find it under another name.
    let mut reader = connect(&server, "vm@s");
    assert!(reader.read(0, 4096).unwrap() == noise(1, 4096));
    refused(&server, &["PROMOTE", "clone"], &["`vm@s` is in use by 1"]);
    drop(reader);
    // Those of the two volumes stay connected.
    change_soon(&server, &["PROMOTE", "clone"]);
    assert!(client.read(0, 4096).unwrap() == noise(2, 4096));
    assert!(connect(&server, "clone@s").read(0, 4096).unwrap() == noise(1, 4096));
    drop(client);
    change_soon(&server, &["PROMOTE", "vm"]);
    change_soon(&server, &["RENAME", "vm", "main"]);
    change(&server, &["ROLLBACK", "main", "s"]);
    assert!(connect(&server, "main").read(0, 4096).unwrap() == noise(1, 4096));
    assert!(server.terminate().success());
    let listed = list(&data);
    assert_eq!(listed[0]["clone_of"], "main@s");
    check_clean(&data);
}

#[test]
fn a_rollback_that_loses_data_asks_on_a_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        return clients::skip("`script` of util-linux");
    }
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let server = serve(&data);
    change(&server, &["CREATE", "vm", "8MiB"]);
    change(&server, &["SNAPSHOT", "vm", "s"]);
    assert_eq!(connect(&server, "vm").write(0, &noise(1, 4096)), 0);
    assert!(server.terminate().success());
    let on_terminal = |more: &str, answer: &str, code: i32| {
        let output = volume_on_a_terminal(&format!("rollback {path} vm s{more}"), answer);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        told
    };
    let told = on_terminal("", "n", 1);
    assert!(told.contains("lose what was written since? [y/N]"), "{told}");
    assert_eq!(list(&data)[0]["used_bytes"], 4096, "nothing was changed");
    assert!(on_terminal("", "y", 0).contains("is as its snapshot `s`"));
    assert_eq!(list(&data)[0]["used_bytes"], 0);
    // Nothing is lost any more, and a forced command is never asked.
    for more in ["", " --force"] {
        let told = on_terminal(more, "", 0);
        assert!(!told.contains("[y/N]"), "{told}");
    }
}
