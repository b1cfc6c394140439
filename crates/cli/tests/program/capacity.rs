//! The data that fit a data directory: what `format` and `info` promise, and what a server takes.

use crate::support::noise;
use crate::support::program::{said, softflash};
use crate::support::resp::Client;
use crate::support::server::Server;
use serde_json::Value;
use std::path::Path;

const VALUE_BYTES: usize = 1000;
/// Requests sent together.
const BATCH: u64 = 64;

/// Formats a directory; returns what it printed as JSON.
fn formatted(data: &Path, more: &[&str]) -> Value {
    let arguments = [&["format", data.to_str().unwrap(), "-o", "json"], more].concat();
    let output = softflash(&arguments);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Keys in no order, so that runs overlap.
fn key(number: u64) -> Vec<u8> {
    format!("{:024x}", softflash_base::checksum64(1, &number.to_le_bytes())).into_bytes()
}

/// Bytes of keys and values that a client can store before a write is refused.
fn fill(client: &mut Client) -> u64 {
    let values = noise(7, 1 << 16);
    let mut stored = 0;
    for batch in 0.. {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        for number in numbers.clone() {
            let at = (number * 7919) as usize % (values.len() - VALUE_BYTES);
            client.send(&[b"SET", &key(number), &values[at..at + VALUE_BYTES]]).unwrap();
        }
        let replies: Vec<_> = numbers.map(|_| client.receive().unwrap()).collect();
        stored += replies.iter().filter(|reply| reply.is_ok()).count() as u64;
        if let Some(refused) = replies.iter().find(|reply| !reply.is_ok()) {
            assert!(refused.is_full(), "{refused:?}");
            break;
        }
    }
    stored * (key(0).len() + VALUE_BYTES) as u64
}

#[test]
fn a_server_takes_about_as_much_as_format_and_info_promise() {
    let shapes: [&[&str]; 4] = [
        &["--size", "256MiB", "--units", "4"],
        &["--size", "512MiB"],
        &["--size", "256MiB", "--units", "4", "--copies", "2", "--shards", "1"],
        &["--size", "256MiB", "--units", "8", "--parity", "6", "--shards", "1"],
    ];
    for shape in shapes {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let promised = formatted(&data, shape);
        let info = softflash(["info", data.to_str().unwrap(), "-o", "json"]);
        let info: Value = serde_json::from_slice(&info.stdout).unwrap();
        for field in ["usable_bytes", "size_bytes"] {
            assert_eq!(promised[field], info[field], "{field}");
        }
        let usable = promised["usable_bytes"].as_u64().unwrap();
        let server = Server::start(&data, &["--memory", "64MiB", "--durability", "1s"]);
        let mut client = server.client();
        let stats = client.call(&[b"FLASH.STATS"]).text();
        assert!(stats.contains("usable_bytes:"), "{stats}");
        let stored = fill(&mut client);
        let ratio = stored as f64 / usable as f64;
        eprintln!("{shape:?}: promised {} MiB, stored {} MiB", usable >> 20, stored >> 20);
        assert!((0.9..1.1).contains(&ratio), "{shape:?}: {stored} bytes of {usable}");
        assert!(server.terminate().success());
    }
}

#[test]
fn a_device_that_holds_no_data_is_refused_with_the_smallest_that_does() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let path = data.to_str().unwrap();
    let format = |size: &str, shape: &[&str]| {
        softflash([&["format", path, "--size", size, "--shards", "2"], shape].concat())
    };
    let file: &[&str] = &["--units", "2"];
    for (size, shape) in [("4MiB", file), ("20MiB", file), ("16MiB", &["--backend", "model"])] {
        let refused = format(size, shape);
        let text = said(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.windows(2).position(|pair| pair == ["at", "least"]).expect(&text);
        let least: u64 = words[at + 2].parse().expect(&text);
        assert!(!data.exists(), "nothing stays behind");
        let too_small = format(&(least - 1).to_string(), shape);
        assert!(!too_small.status.success(), "{}", said(&too_small));
        let enough = format(&least.to_string(), shape);
        assert!(enough.status.success(), "{}", said(&enough));
        std::fs::remove_dir_all(&data).unwrap();
    }
}
