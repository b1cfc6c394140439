//! `check --repair`: damaged data are named and given up, all other data are served.

use crate::support::damage::DeviceMap;
use crate::support::noise;
use crate::support::program::{Backend, check, check_clean, format, said, softflash};
use crate::support::server::Server;
use serde_json::Value;
use std::path::Path;

const KEYS: u64 = 6000;
const VALUE_BYTES: usize = 6000;
/// The key whose value's block is damaged.
const VICTIM: u64 = 17;

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:06}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    noise(number + 1, VALUE_BYTES)
}

/// Repairs; returns the exit code and the JSON output.
fn repair(data: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let mut arguments = vec!["check", data.to_str().unwrap(), "--repair", "-o", "json"];
    arguments.extend(more);
    let output = softflash(arguments);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("repair prints JSON ({error}): {}", said(&output)));
    (output.status.code(), report)
}

#[test]
fn a_damaged_patch_is_repaired_and_the_rest_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 512 << 20);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for number in 0..KEYS {
        client.send(&[b"SET", &key(number), &value(number)]).unwrap();
        if number % 100 == 99 {
            (0..100).for_each(|_| assert!(client.receive().unwrap().is_ok()));
        }
    }
    server.kill();
    check_clean(&data);
    let (code, report) = repair(&data, &[]);
    assert_eq!((code, &report["ok"]), (Some(0), &Value::Bool(true)), "{report:#}");

    let map = DeviceMap::read(&data);
    let victims = map.patches_with(&value(VICTIM));
    assert!(!victims.is_empty(), "the victim is in no patch");
    let places: Vec<u64> = victims.iter().map(|(.., at)| at + 3000).collect();
    map.flip(map.path(), &places);
    assert!(!check(&data).ok);
    let (code, report) = repair(&data, &["--dry-run"]);
    assert_eq!((code, &report["check"]["ok"]), (Some(1), &Value::Bool(false)), "{report:#}");

    // While a server uses the directory, it cannot be repaired.
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let refused = softflash(["check", data.to_str().unwrap(), "--repair"]);
    assert!(
        !refused.status.success() && said(&refused).contains("stop that one first"),
        "{}",
        said(&refused)
    );
    server.kill();

    let (code, report) = repair(&data, &[]);
    assert_eq!((code, &report["check"]["ok"]), (Some(1), &Value::Bool(true)), "{report:#}");
    let patches = report["done"]["patches"].as_array().unwrap();
    assert!(patches.iter().any(|patch| patch["records_lost"] == 1), "{report:#}");
    let (code, report) = repair(&data, &[]);
    assert_eq!((code, &report["done"]), (Some(0), &Value::Null), "{report:#}");

    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for number in 0..KEYS {
        let reply = client.call(&[b"GET", &key(number)]);
        assert!(reply.error().is_none(), "key {number}: {reply:?}");
        let found = reply.bulk();
        let expected = (number != VICTIM).then(|| value(number));
        assert!(found == expected, "key {number} has a wrong value");
    }
}
