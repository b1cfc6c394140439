//! The sets of the keys of shards get units and give some up: offline, and of a server under load
//! that is killed at any time.

use crate::nbd::{serve, with_volume_units};
use crate::sets::{changed, field, listed, of_set, refused, set, set_of, softflash_ok, units_of};
use crate::support::noise;
use crate::support::program::{binary, check_clean, fails, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::signals::send;
use serde_json::{Value, json as value};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const KEYS: u64 = 4000;
const VALUE_BYTES: usize = 20_000;

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

/// Writes all keys of a round.
fn write_keys(server: &Server, round: u64) {
    let mut client = server.client();
    for number in 0..KEYS {
        let reply = client.set(&key(number), &noise(round * KEYS + number, VALUE_BYTES));
        assert!(reply.is_ok(), "round {round}, key {number}: {reply:?}");
    }
}

/// Each key has its value of one of these rounds.
fn compare(server: &Server, rounds: std::ops::RangeInclusive<u64>) {
    let mut client = server.client();
    for number in 0..KEYS {
        let found = client.get(&key(number)).unwrap_or_default();
        let mut expected = rounds.clone().map(|round| noise(round * KEYS + number, VALUE_BYTES));
        assert!(expected.any(|value| value == found), "key {number} is not of {rounds:?}");
    }
}

/// A stopped server loses nothing, and its directory is clean.
fn check(data: &Path, rounds: std::ops::RangeInclusive<u64>) {
    let server = serve(data);
    compare(&server, rounds);
    assert!(server.terminate().success());
    check_clean(data);
}

fn units(data: &Path, name: &str) -> Value {
    of_set(data, name)["units"].clone()
}

#[test]
fn units_pass_between_keys_and_volumes() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let server = serve(&data);
    write_keys(&server, 0);
    assert!(server.terminate().success());
    let before = listed(&data);

    let shrunk = set(&data, "resize", &["store-0", "--units", "1"]);
    assert_eq!((&shrunk["units"], &shrunk["spare_units"]), (&value!([0]), &value!([1])));
    assert!(shrunk["usable_bytes"].as_u64() < before[0]["usable_bytes"].as_u64());
    check(&data, 0..=0);
    set(&data, "create", &["fast", "--units", "1"]);
    assert_eq!(units(&data, "fast"), value!([1]));
    set(&data, "delete", &["fast"]);
    let grown = set(&data, "resize", &["store-1", "--units", "3"]);
    assert_eq!((&grown["units"], &grown["spare_units"]), (&value!([1, 2, 3]), &value!([])));
    check(&data, 0..=0);
    let server = serve(&data);
    write_keys(&server, 1);
    assert!(server.terminate().success());
    assert!(of_set(&data, "store-1")["used_bytes"].as_u64() > before[1]["used_bytes"].as_u64());
    set(&data, "resize", &["vol-0", "--units", "1"]);
    let grown = softflash(["set", "resize", path, "store-0", "--units", "2"]);
    assert!(said(&grown).contains("units 0,5 of shard 0, with room for about"), "{}", said(&grown));
    assert!(said(&grown).contains("of keys; spare units: none"), "{}", said(&grown));
    check(&data, 1..=1);
    fails(1, &["set", "resize", path, "store-0", "--units", "3"], &["needs 1, and there are 0"]);
    fails(1, &["set", "delete", path, "store-0"], &["has the keys of a shard", "set resize"]);
    assert!(
        said(&softflash(["set", "resize", path, "store-0", "--units", "2"])).contains("nothing")
    );
}

/// Keys that fit the set and not a part of it keep all of its units.
#[test]
fn units_whose_keys_fit_nowhere_else_stay() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    let mut client = server.client();
    let mut written = 0;
    while client.set(&key(written), &noise(written, 200_000)).is_ok() {
        written += 1;
    }
    refused(&server, &["RESIZE", "store-0", "1"], &["units 1 cannot leave", "do not fit"]);
    for number in 0..written {
        assert!(client.get(&key(number)) == Some(noise(number, 200_000)), "key {number}");
    }
    assert_eq!(units_of(&server, "store-0"), [0, 1]);
    assert!(server.terminate().success());
    let resize = ["set", "resize", data.to_str().unwrap(), "store-0", "--units", "1"];
    fails(1, &resize, &["units 1 cannot leave", "delete keys first"]);
    assert_eq!(units(&data, "store-0"), value!([0, 1]));
    check_clean(&data);
}

/// A client that writes all keys, round after round, until it is stopped.
struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Load {
    /// Begins with this round.
    fn begin(server: &Server, first: u64) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut client) = (Arc::clone(&stop), server.client());
        let thread = std::thread::spawn(move || {
            for round in first.. {
                for number in 0..KEYS {
                    let value = noise(round * KEYS + number, VALUE_BYTES);
                    let Ok(reply) = client.try_call(&[b"SET", &key(number), &value]) else {
                        return round;
                    };
                    assert!(reply.is_ok(), "round {round}, key {number}: {reply:?}");
                    if stopped.load(Ordering::Relaxed) {
                        return round;
                    }
                }
            }
            first
        });
        Load { stop, thread }
    }

    /// The round that it was in.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_server_changes_the_units_of_keys_under_load() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    write_keys(&server, 0);
    let load = Load::begin(&server, 1);
    changed(&server, &["RESIZE", "store-0", "1"]);
    assert_eq!(units_of(&server, "store-0"), [0]);
    changed(&server, &["RESIZE", "vol-0", "3"]);
    assert_eq!(units_of(&server, "vol-0"), [1, 4, 5]);
    changed(&server, &["RESIZE", "vol-0", "1"]);
    changed(&server, &["RESIZE", "store-0", "3"]);
    assert_eq!(units_of(&server, "store-0"), [0, 4, 5]);
    changed(&server, &["RESIZE", "store-1", "1"]);
    let Reply::Array(sets) = set_of(&server, &["LIST"]) else { panic!("no list") };
    assert_eq!(field(&sets[0], "draining_bytes").clone().integer(), 0);
    let last = load.end();
    server.kill();
    check(&data, last - 1..=last);
    assert_eq!(
        (units(&data, "store-0"), units(&data, "store-1")),
        (value!([0, 4, 5]), value!([2]))
    );
}

/// Killed at any time, a server leaves a set with the units of before or of after, and all keys.
#[test]
fn a_server_that_is_killed_while_keys_leave_units_loses_none() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    write_keys(&server, 0);
    assert!(server.terminate().success());
    let (mut changes, mut complete, mut last) = (0, 0, 0);
    for millis in [5, 1500, 80, 3000, 400, 200] {
        let before = units(&data, "store-0");
        let wanted: &[u8] = if before == value!([0]) { b"2" } else { b"1" };
        let server = serve(&data);
        let load = Load::begin(&server, last + 1);
        let mut client = server.client();
        client.send(&[b"FLASH.SET", b"RESIZE", b"store-0", wanted]).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        server.kill();
        let first = last + 1;
        last = load.end();
        if last > first {
            complete = last - 1;
        }
        let after = units(&data, "store-0");
        assert!([value!([0]), value!([0, 1])].contains(&after), "{after} after {millis} ms");
        changes += i32::from(after != before);
        check(&data, complete..=last);
    }
    assert!(changes > 0, "no change was made in time");
}

/// An offline change that is interrupted or killed leaves the set with its units and keys, or is
/// complete.
#[test]
fn a_resize_of_keys_that_ends_early_loses_nothing() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    write_keys(&server, 0);
    assert!(server.terminate().success());
    let path = data.to_str().unwrap();
    let (signals, mut interrupted) = ([libc::SIGINT, libc::SIGKILL], 0);
    for (signal, millis) in signals.into_iter().cycle().zip([30, 60, 150, 250]) {
        let mut resize = Command::new(binary());
        resize.args(["set", "resize", path, "store-0", "--units", "1"]);
        let child = resize.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        if units(&data, "store-0") == value!([0]) {
            softflash_ok(&["set", "resize", path, "store-0", "--units", "2"]);
        } else {
            interrupted += 1;
            let is_told = output.status.code() != Some(1) || said(&output).contains("repeated");
            assert!(is_told, "after {millis} ms: {}", said(&output));
        }
        check(&data, 0..=0);
    }
    assert!(interrupted > 0, "no drain was interrupted");
}
