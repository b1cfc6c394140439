//! Pairs of sets, which have a copy each of the same volumes: of a stopped store and of a server.

use crate::nbd::{change, serve, volume, with_volume_units};
use crate::sets::{changed, field, of_set, refused, set, set_of, softflash_ok, write_volume};
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{check_clean, fails, json, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::volumes::on_domains;
use serde_json::json as value;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A directory whose set `vol-0` has a unit, as has the set `copy` of the same shard.
pub fn with_two_sets() -> (TempDir, PathBuf) {
    let (temp, data) = with_volume_units();
    set(&data, "resize", &["vol-0", "--units", "1"]);
    set(&data, "create", &["copy", "--units", "1", "--shard", "0"]);
    (temp, data)
}

/// The data of a volume in each set that has it, which is mounted alone.
fn copies(data: &Path, name: &str, bytes: usize) -> Vec<(String, Vec<u8>)> {
    let found = std::cell::RefCell::new(Vec::new());
    on_domains(data, async |of, domain| {
        if let Ok(volume) = domain.volume(name) {
            let mut read = vec![0; bytes];
            volume.read(0, &mut read).await.unwrap();
            found.borrow_mut().push((of.name.clone(), read));
        }
    });
    found.into_inner()
}

fn both_have(data: &Path, name: &str, expected: &[u8]) {
    let copies = copies(data, name, expected.len());
    let sets: Vec<&str> = copies.iter().map(|(set, _)| set.as_str()).collect();
    assert_eq!(sets, ["vol-0", "copy"], "copies of `{name}`");
    assert!(copies.iter().all(|(_, read)| read == expected), "`{name}` differs");
}

#[test]
fn two_sets_have_a_copy_of_the_same_volumes() {
    let (_temp, data) = with_two_sets();
    let path = data.to_str().unwrap();
    let create = ["volume", "create", path];
    fails(1, &[&create[..], &["early", "8MiB", "--copies", "2"]].concat(), &["set pair"]);
    softflash_ok(&[&create[..], &["disk", "40MiB", "--set", "vol-0"]].concat());
    let of_disk = noise(1, 24 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    softflash_ok(&["volume", "snapshot", path, "disk", "monday"]);

    let pair = ["set", "pair", path];
    fails(1, &[&pair[..], &["vol-0", "vol-0"]].concat(), &["a pair has two sets"]);
    fails(1, &[&pair[..], &["vol-0", "vol-1"]].concat(), &["shards 0 and 1"]);
    fails(1, &[&pair[..], &["vol-0", "slow"]].concat(), &["`slow`"]);
    fails(1, &["set", "window", path, "vol-0", "100ms"], &["none of a pair"]);
    fails(2, &["set", "window", path, "vol-0", "100"], &["1ms to 60s"]);
    softflash_ok(&[&create[..], &["other", "8MiB", "--set", "copy"]].concat());
    fails(1, &[&pair[..], &["vol-0", "copy"]].concat(), &["both hold volumes"]);
    softflash_ok(&["volume", "delete", path, "other", "--force"]);
    assert_eq!(json(&softflash(["info", path, "-o", "json"]))["format_version"], 5);
    set(&data, "pair", &["vol-0", "copy"]);
    fails(1, &[&pair[..], &["copy", "vol-0"]].concat(), &["one of a pair already"]);
    assert_eq!(json(&softflash(["info", path, "-o", "json"]))["format_version"], 6);
    both_have(&data, "disk", &of_disk);

    let state = of_set(&data, "vol-0");
    assert_eq!((&state["pair"], &state["pair_state"]), (&value!("copy"), &value!("whole")));
    assert_eq!(of_set(&data, "copy")["used_bytes"], state["used_bytes"]);
    softflash_ok(&[&create[..], &["two", "8MiB", "--copies", "2"]].concat());
    softflash_ok(&[&create[..], &["three", "8MiB", "--set", "copy", "--copies", "2"]].concat());
    let one = [&create[..], &["four", "8MiB", "--set", "vol-1", "--copies", "2"]].concat();
    fails(1, &one, &["`vol-1` has one copy"]);
    let volumes = json(&softflash(["volume", "list", path, "-o", "json"]));
    let names = volumes.as_array().unwrap().iter().map(|volume| volume["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["disk", "three", "two"]);
    softflash_ok(&["volume", "rename", path, "two", "second"]);
    softflash_ok(&["volume", "clone", path, "disk", "monday", "trial"]);
    both_have(&data, "second", &vec![0; MIB as usize]);
    both_have(&data, "trial", &of_disk);
    check_clean(&data);

    let windows = set(&data, "window", &["copy", "100ms"]);
    assert_eq!(windows["name"], "copy");
    let state = of_set(&data, "vol-0");
    assert_eq!((&state["window"], &state["window_state"]), (&value!(100), &value!(null)));
    set(&data, "window", &["vol-0", "none"]);
    assert!(of_set(&data, "copy")["window"].is_null());

    // The first set goes, and the second one keeps the volumes.
    let deleted = set(&data, "delete", &["vol-0"]);
    assert_eq!(deleted["spare_units"], value!([4]));
    let left = copies(&data, "disk", of_disk.len());
    assert!(left.len() == 1 && left[0].0 == "copy" && left[0].1 == of_disk);
    assert!(of_set(&data, "copy")["pair"].is_null());
    softflash_ok(&["volume", "delete", path, "trial", "--force"]);
    softflash_ok(&["volume", "delete-snapshot", path, "disk", "monday", "--force"]);
    check_clean(&data);
}

/// Writes rounds of 24 MiB to a volume by NBD, and reads back, until it is told to stop; returns
/// the rounds that are durable.
fn load(address: SocketAddr, name: &'static str) -> (Sender<()>, JoinHandle<u64>) {
    let (stop, stopped) = channel::<()>();
    let load = std::thread::spawn(move || {
        let mut disk = NbdClient::connect(address, name);
        let mut round = 0_u64;
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            for at in 0..24 {
                assert_eq!(disk.write(at * MIB, &noise(round * 24 + at, MIB as usize)), 0);
            }
            assert_eq!(disk.flush(), 0);
            for at in [0, round % 24, 23] {
                let read = disk.read(at * MIB, MIB as usize).unwrap();
                assert!(read == noise(round * 24 + at, MIB as usize), "round {round}");
            }
            round += 1;
        }
        round
    });
    (stop, load)
}

fn of_rounds(rounds: u64) -> Vec<u8> {
    (0..24).flat_map(|at| noise((rounds - 1) * 24 + at, MIB as usize)).collect()
}

/// A field of a set of a server, as text.
fn told(server: &Server, name: &str, of: &str) -> String {
    let Reply::Array(sets) = set_of(server, &["LIST"]) else { panic!("no list") };
    let found = sets.iter().find(|set| field(set, "name").clone().text() == name).unwrap();
    match field(found, of).clone() {
        Reply::Bulk(None) => String::new(),
        Reply::Integer(number) => number.to_string(),
        other => other.text(),
    }
}

fn await_whole(server: &Server) {
    for _ in 0..600 {
        if told(server, "vol-0", "pair_state") == "whole" {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the copy takes more than 30 s");
}

/// A pair is made of a set with data while a client writes; windows begin and end, a unit leaves
/// and comes back, and the server is killed.
#[test]
fn a_server_makes_a_pair_under_load_and_is_killed() {
    let (_temp, data) = with_two_sets();
    set(&data, "resize", &["vol-1", "--units", "1"]);
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "40MiB", "SET", "vol-0"]);
    let one = volume(&server, &["CREATE", "two", "8MiB", "COPIES", "2"]);
    assert!(one.error().is_some_and(|error| error.contains("FLASH.SET PAIR")), "{one:?}");
    refused(&server, &["PAIR", "vol-0", "vol-1"], &["shards 0 and 1"]);
    refused(&server, &["WINDOW", "vol-0", "100ms"], &["none of a pair"]);
    refused(&server, &["WINDOW", "vol-0", "often"], &["1ms to 60s"]);
    let (stop, load) = load(server.address_of("nbd"), "disk");
    changed(&server, &["PAIR", "vol-0", "copy"]);
    refused(&server, &["PAIR", "vol-0", "copy"], &["one of a pair already"]);
    await_whole(&server);
    assert_eq!(told(&server, "copy", "pair"), "vol-0");
    change(&server, &["CREATE", "two", "8MiB", "COPIES", "2"]);
    change(&server, &["SNAPSHOT", "disk", "early"]);
    changed(&server, &["WINDOW", "vol-0", "50ms"]);
    std::thread::sleep(Duration::from_millis(300));
    let states = ["vol-0", "copy"].map(|name| told(&server, name, "window_state"));
    assert!(states.contains(&"deterministic".to_owned()), "{states:?}");
    change(&server, &["DELETESNAPSHOT", "disk", "early"]);
    // A set of a pair changes its units.
    changed(&server, &["RESIZE", "copy", "2"]);
    changed(&server, &["RESIZE", "copy", "1"]);
    changed(&server, &["WINDOW", "copy", "none"]);
    std::thread::sleep(Duration::from_millis(100));
    changed(&server, &["WINDOW", "vol-0", "20ms"]);
    std::thread::sleep(Duration::from_millis(200));
    stop.send(()).unwrap();
    let rounds = load.join().unwrap();
    server.kill();

    check_clean(&data);
    let server = serve(&data);
    let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
    let expected = of_rounds(rounds);
    assert!(disk.read(0, expected.len()).unwrap() == expected, "after the kill");
    drop(disk);
    assert_eq!(told(&server, "vol-0", "pair_state"), "whole");
    assert!(server.terminate().success());
    both_have(&data, "disk", &expected);

    let server = serve(&data);
    let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
    refused(&server, &["DELETE", "vol-0"], &["first of a pair"]);
    changed(&server, &["DELETE", "copy"]);
    assert_eq!(disk.write(0, &noise(5, MIB as usize)), 0);
    assert_eq!(told(&server, "vol-0", "pair"), "");
    drop(disk);
    assert!(server.terminate().success());
    check_clean(&data);
    assert_eq!(copies(&data, "disk", 4096).len(), 1);
}

/// A server that is killed at any time of the copy goes on from what the table says.
#[test]
fn a_server_that_is_killed_while_a_copy_is_made_loses_nothing() {
    let (_temp, data) = with_two_sets();
    softflash_ok(&["volume", "create", data.to_str().unwrap(), "disk", "60MiB", "--set", "vol-0"]);
    let of_disk = noise(3, 50 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    for millis in [1, 20, 60, 120] {
        let server = serve(&data);
        let mut client = server.client();
        client.send(&[b"FLASH.SET", b"PAIR", b"vol-0", b"copy"]).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        server.kill();
        check_clean(&data);
    }
    let server = serve(&data);
    if told(&server, "vol-0", "pair").is_empty() {
        changed(&server, &["PAIR", "vol-0", "copy"]);
    }
    await_whole(&server);
    assert!(server.terminate().success());
    both_have(&data, "disk", &of_disk);
}

/// The flash of one set is lost: the other one serves. A blank set gets a copy by itself, a damaged
/// one once it was given up.
#[test]
fn a_set_whose_flash_is_lost_is_made_again() {
    for (lost, filling) in [(0, 0), (1, 0), (0, 0x55), (1, 0x55)] {
        let (_temp, data) = with_two_sets();
        let path = data.to_str().unwrap();
        softflash_ok(&["volume", "create", path, "disk", "40MiB", "--set", "vol-0"]);
        let mut of_disk = noise(4, 24 * MIB as usize);
        write_volume(&data, "disk", &of_disk);
        set(&data, "pair", &["vol-0", "copy"]);
        let name = ["vol-0", "copy"][lost];
        fill_unit(&data, of_set(&data, name)["units"][0].as_u64().unwrap(), filling);

        let server = serve(&data);
        let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
        assert!(disk.read(0, of_disk.len()).unwrap() == of_disk, "`{name}` is lost");
        of_disk[..MIB as usize].copy_from_slice(&noise(9, MIB as usize));
        assert_eq!((disk.write(0, &noise(9, MIB as usize)), disk.flush()), (0, 0));
        drop(disk);
        assert!(server.terminate().success());
        if filling > 0 {
            let given_up = ["volume", "give-up", path, "--domain", name, "--force"];
            softflash_ok(&given_up);
        }
        let server = serve(&data);
        await_whole(&server);
        let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
        assert!(disk.read(0, of_disk.len()).unwrap() == of_disk, "`{name}` is made again");
        drop(disk);
        assert!(server.terminate().success());
        both_have(&data, "disk", &of_disk);
        check_clean(&data);
    }
}

/// Overwrites a unit of a device file.
fn fill_unit(data: &Path, unit: u64, filling: u8) {
    const LABEL_AREA: u64 = 1 << 20;
    let file = std::fs::OpenOptions::new().write(true).open(data.join("flash.sfd")).unwrap();
    let unit_bytes = (file.metadata().unwrap().len() - LABEL_AREA) / 8;
    let bytes = vec![filling; unit_bytes as usize];
    file.write_all_at(&bytes, LABEL_AREA + unit * unit_bytes).unwrap();
}
