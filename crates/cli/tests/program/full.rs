//! A store or volumes that are full say so: in the log once, at `/health`, and in counters.

use crate::nbd::{change, serve};
use crate::support::http::get;
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{Backend, format_with};
use crate::support::resp::Reply;
use crate::support::server::Server;
use serde_json::Value;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn page(server: &Server, path: &str) -> Value {
    let page = get(server.address_of("http"), path);
    serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

fn times_said(server: &Server, words: &str) -> usize {
    server.said().matches(words).count()
}

/// Waits until `/health` says whether writes are possible.
fn await_writable(server: &Server, writable: bool) -> Value {
    let began = Instant::now();
    loop {
        let health = page(server, "/health");
        if health["writable"] == writable {
            return health;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{health}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn full_volumes_are_told_once_and_their_recovery_too() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "1"];
    format_with(&data, Backend::File, 128 * MIB, &shares);
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1GiB"]);
    assert_eq!(page(&server, "/health")["writable"], true);
    let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
    let block = noise(3, 256 << 10);
    let mut at = 0;
    while client.write(at, &block) == 0 {
        at += block.len() as u64;
        assert!(at < 128 * MIB, "it becomes full");
    }
    for _ in 0..20 {
        assert_eq!(client.write(at, &block), 28, "ENOSPC");
    }
    server.await_said("the volumes' space is full");
    assert_eq!(times_said(&server, "the volumes' space is full"), 1, "once, not for each write");
    let health = await_writable(&server, false);
    assert_eq!(health["status"], "ok");
    assert!(health["reason"].as_str().unwrap().contains("volumes of shard 0 are full"), "{health}");
    let stats = page(&server, "/api/stats");
    let domain = &stats["volumes"][0];
    assert_eq!(domain["volume_full"], 1);
    assert!(domain["volume_refused_writes"].as_u64().unwrap() >= 21, "{domain}");
    assert!(domain["by_volume"][0]["full_refusals"].as_u64().unwrap() >= 21, "{domain}");
    let text = server.client().call(&[b"FLASH.STATS"]).text();
    let refused = text.lines().find_map(|line| line.strip_prefix("volume_refused_writes:"));
    assert!(refused.unwrap().parse::<u64>().unwrap() >= 21, "{text}");
    assert!(text.contains("volume_full_shards:1"), "{text}");
    let metrics = get(server.address_of("http"), "/metrics");
    for metric in [
        "softflash_volume_full{shard=\"0\",set=\"vol-0\"} 1",
        "softflash_volume_refused_writes_total{shard=\"0\",set=\"vol-0\"}",
        "softflash_volume_refusals_total{volume=\"disk\",limit=\"space\"}",
    ] {
        assert!(metrics.contains(metric), "{metric}");
    }
    // Room again: told once, although nobody writes.
    assert_eq!(client.call(crate::support::nbd::TRIM, 0, 0, at as u32), 0);
    await_writable(&server, true);
    server.await_said("has room again");
    assert_eq!(client.write(0, &block), 0);
    assert_eq!(times_said(&server, "has room again"), 1);
    drop(client);
    assert!(server.terminate().success());
}

#[test]
fn a_full_store_is_told_once_and_its_recovery_too() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 96 * MIB, &["--units", "2", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "32MiB", "--durability", "1s"]);
    let mut client = server.client();
    let mut keys = 0_u64;
    let error = loop {
        match client.set(format!("k{keys}").as_bytes(), &noise(keys, 8000)) {
            Reply::Error(error) => break error,
            _ => keys += 1,
        }
        assert!(keys < 20_000, "it becomes full");
    };
    assert!(error.starts_with("OOM"), "{error}");
    let health = await_writable(&server, false);
    assert!(health["reason"].as_str().unwrap().contains("the store is full"), "{health}");
    server.await_said("the flash is full");
    for _ in 0..3 {
        let _ = client.set(b"more", &noise(1, 8000));
    }
    assert!(times_said(&server, "the flash is full") <= 1 + times_said(&server, "room again"));
    let stats = page(&server, "/api/stats");
    assert!(stats["store"]["refused_writes"].as_u64().unwrap() >= 1, "{stats}");
    assert!(client.call(&[b"FLUSHALL"]).is_ok());
    await_writable(&server, true);
    // It is told by a write or a look at `/health` once there is more than a little room.
    let began = Instant::now();
    while times_said(&server, "the flash has room again") < times_said(&server, "the flash is full")
    {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.said());
        page(&server, "/health");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(client.set(b"k", b"v").is_ok());
    assert!(server.terminate().success());
}
