//! `format --copies 2` and `--parity`: damage is reported and repaired, and a lost unit loses no
//! data.

use crate::support::damage::DeviceMap;
use crate::support::noise;
use crate::support::program::{check, check_clean, said, softflash};
use crate::support::resp::Client;
use crate::support::server::Server;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const KEYS: u64 = 3000;
const VALUE_BYTES: usize = 6000;
const MEMORY: [&str; 2] = ["--memory", "32MiB"];

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:06}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    noise(number + 1, VALUE_BYTES)
}

fn write_all(client: &mut Client) {
    for number in 0..KEYS {
        client.send(&[b"SET", &key(number), &value(number)]).unwrap();
        if number % 100 == 99 {
            (0..100).for_each(|_| assert!(client.receive().unwrap().is_ok()));
        }
    }
}

fn read_all(client: &mut Client) {
    for number in 0..KEYS {
        let reply = client.call(&[b"GET", &key(number)]);
        assert!(reply.error().is_none(), "key {number}: {reply:?}");
        assert!(reply.bulk() == Some(value(number)), "key {number} has a wrong value");
    }
}

fn stat(client: &mut Client, name: &str) -> u64 {
    let text = client.call(&[b"FLASH.STATS"]).bulk().unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is missing in {text}")).trim().parse().unwrap()
}

fn repair(data: &Path) -> (Option<i32>, Value) {
    let output = softflash(["check", data.to_str().unwrap(), "--repair", "-o", "json"]);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("repair prints JSON ({error}): {}", said(&output)));
    (output.status.code(), report)
}

/// Overwrites all contents of a unit with zeros, like a new unit.
fn blank(map: &DeviceMap, unit: u64) {
    let file = File::options().write(true).open(map.path()).unwrap();
    let (start, end) = map.unit(unit);
    let zeros = vec![0; 1 << 20];
    for at in (start..end).step_by(zeros.len()) {
        let len = zeros.len().min((end - at) as usize);
        file.write_all_at(&zeros[..len], at).unwrap();
    }
}

#[test]
fn with_two_copies_damage_is_healed_and_a_unit_may_be_lost() {
    damage_is_healed_and_a_unit_may_be_lost(["--copies", "2"], 2);
}

#[test]
fn with_parity_damage_is_healed_and_a_unit_may_be_lost() {
    damage_is_healed_and_a_unit_may_be_lost(["--parity", "2"], 1);
}

fn damage_is_healed_and_a_unit_may_be_lost(redundancy: [&str; 2], least_copies: usize) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let path = data.to_str().unwrap();
    let mut format = vec!["format", path, "--size", "1GiB", "--units", "4", "--shards", "1"];
    format.extend(redundancy);
    let made = softflash(&format);
    assert!(made.status.success(), "{}", said(&made));
    let server = Server::start(&data, &MEMORY);
    write_all(&mut server.client());
    server.kill();
    check_clean(&data);

    // A copy of a patch.
    let map = DeviceMap::read(&data);
    let copies = map.patches_with(&value(17));
    assert!(copies.len() >= least_copies, "{} copies", copies.len());
    map.flip(map.path(), &[copies[0].2 + 3000]);
    assert!(!check(&data).ok);
    let server = Server::start(&data, &MEMORY);
    read_all(&mut server.client());
    server.kill();
    let (code, report) = repair(&data);
    assert_eq!((code, &report["check"]["ok"]), (Some(0), &Value::Bool(true)), "{report:#}");
    check_clean(&data);

    // A whole unit, and another one after the rebuild.
    for unit in [1, 2] {
        blank(&DeviceMap::read(&data), unit);
        assert!(!check(&data).ok);
        let server = Server::start(&data, &MEMORY);
        let mut client = server.client();
        read_all(&mut client);
        assert_eq!(stat(&mut client, "old_units"), 1, "it came back empty");
        let began = Instant::now();
        while stat(&mut client, "degraded_blocks") > 0 {
            assert!(began.elapsed() < Duration::from_secs(120), "the rebuild does not end");
            std::thread::sleep(Duration::from_millis(100));
        }
        read_all(&mut client);
        server.kill();
        check_clean(&data);
    }
}

#[test]
fn copies_need_units_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let path = data.to_str().unwrap();
    for (arguments, part) in [
        (["--units", "4", "--shards", "3", "--copies", "2"], "3 shards"),
        (["--units", "4", "--shards", "1", "--copies", "3"], "--copies"),
        (["--units", "5", "--shards", "2", "--parity", "2"], "parity needs 3 units in each shard"),
        (["--units", "5", "--shards", "1", "--parity", "17"], "--parity"),
        (["--parity", "2", "--shards", "1", "--copies", "2"], "--copies"),
    ] {
        let mut all = vec!["format", path, "--size", "256MiB"];
        all.extend(arguments);
        let refused = softflash(&all);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(part), "{}", said(&refused));
        assert!(!data.exists());
    }
}
