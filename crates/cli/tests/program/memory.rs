//! `--memory` limits the process, whatever clients send or refuse to receive.

use crate::support::program::{Backend, check_clean, format_with};
use crate::support::resp::{Client, encode};
use crate::support::server::Server;
use crate::support::{noise, setting};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 256 * MIB;

/// Allowance beyond `--memory`: the program itself, its stacks, and indexes.
const ALLOWANCE: u64 = 32 * MIB;

fn server(directory: &std::path::Path) -> Server {
    format_with(directory, Backend::File, 2048 * MIB, &["--units", "4", "--shards", "2"]);
    Server::start(directory, &["--memory", "256MiB", "--durability", "1s"])
}

fn assert_bounded(server: &Server, what: &str) {
    let peak = server.peak_bytes();
    eprintln!("{what}: peak of {} MiB", peak / MIB);
    assert!(peak <= MEMORY + ALLOWANCE, "{what}: {} MiB", peak / MIB);
}

#[test]
fn many_clients_with_the_largest_values_wait_for_each_other() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let server = server(&data);
    let clients = setting("SOFTFLASH_LARGE_CLIENTS", 24);
    let value = noise(7, 64 << 20);
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (mut client, value): (Client, _) = (server.client(), &value);
            scope.spawn(move || {
                let key = format!("large:{}", number % 4).into_bytes();
                assert!(client.set(&key, value).is_ok(), "client {number}");
            });
        }
    });
    assert_bounded(&server, "largest values written");
    assert_eq!(server.client().get(b"large:1").unwrap(), value);
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn requests_with_several_large_arguments_all_end() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let value = noise(3, 12 << 20);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (mut client, value): (Client, _) = (server.client(), &value);
            scope.spawn(move || {
                let keys = [0, 1, 2, 3].map(|key| format!("{number}:{key}").into_bytes());
                let mut words: Vec<&[u8]> = vec![b"MSET"];
                keys.iter().for_each(|key| words.extend([&key[..], value]));
                assert!(client.call(&words).is_ok(), "client {number}");
                let keys: Vec<&[u8]> =
                    [&b"DEL"[..]].into_iter().chain(keys.iter().map(|key| &key[..])).collect();
                assert_eq!(client.call(&keys).integer(), 4);
            });
        }
    });
    assert_bounded(&server, "several large arguments");
    assert!(server.terminate().success());
}

#[test]
fn values_that_come_faster_than_the_log_takes_them_wait() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let value = noise(3, 2 << 20);
    std::thread::scope(|scope| {
        for number in 0..8_u64 {
            let (mut client, value): (Client, _) = (server.client(), &value);
            scope.spawn(move || {
                let key = |round: u64| format!("{number}:{}", round % 12).into_bytes();
                for round in 0..90 {
                    assert!(client.set(&key(round), value).is_ok(), "client {number}");
                }
                for round in 0..60 {
                    assert_eq!(client.get(&key(round)).unwrap(), *value, "client {number}");
                }
            });
        }
    });
    assert_bounded(&server, "a log that lags behind");
    assert!(server.terminate().success());
}

#[test]
fn a_request_that_cannot_fit_is_refused_with_words() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let value = noise(3, 60 << 20);
    let mut client = server.client();
    let words: Vec<&[u8]> = vec![b"MSET", b"a", &value, b"b", &value];
    // The server may stop reading before all input is sent; then only the reply remains to be read.
    let _ = client.send(&words);
    let reply = client.receive().unwrap();
    assert!(reply.error().unwrap().contains("--memory"), "{reply:?}");
    assert_eq!(server.client().get(b"a"), None);
    assert_bounded(&server, "request too large");
    assert!(server.terminate().success());
}

#[test]
fn clients_that_take_no_replies_hold_little() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let value = noise(5, 8 << 20);
    let mut client = server.client();
    for number in 0..16_u8 {
        assert!(client.set(&[b'k', number], &value).is_ok());
    }
    // Many clients request all values repeatedly and read no replies.
    let greedy: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            for number in 0..16_u8 {
                stream.write_all(&encode(&[b"GET", &[b'k', number]])).unwrap();
            }
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_secs(3));
    assert_bounded(&server, "unread replies");
    drop(greedy);
    // Once they have disconnected, other clients are served again.
    assert_eq!(client.get(&[b'k', 3]).unwrap(), value);
    assert!(server.terminate().success());
}

#[test]
fn a_mixture_of_sizes_keeps_flowing() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let (stop, small_ops) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let (mut client, stop, small_ops) = (server.client(), &stop, &small_ops);
            scope.spawn(move || {
                let key = format!("small:{number}").into_bytes();
                while !stop.load(Ordering::Relaxed) {
                    assert!(client.set(&key, b"value").is_ok());
                    assert_eq!(client.get(&key).unwrap(), b"value");
                    small_ops.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let large: Vec<_> = (0..4_u64)
            .map(|number| {
                let mut client = server.client();
                scope.spawn(move || {
                    let key = format!("large:{number}").into_bytes();
                    for round in 0..4 {
                        let value = noise(round, 20 << 20);
                        assert!(client.set(&key, &value).is_ok());
                        assert_eq!(client.get(&key).unwrap(), value);
                    }
                })
            })
            .collect();
        large.into_iter().for_each(|large| large.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    assert!(small_ops.into_inner() > 100, "small requests starve");
    assert_bounded(&server, "a mixture");
    assert!(server.terminate().success());
}

/// Sets keys of 1 KiB in pipelines.
fn fill(client: &mut Client, keys: std::ops::Range<u64>) {
    let value = noise(11, 1024);
    let keys: Vec<u64> = keys.collect();
    for part in keys.chunks(500) {
        for key in part {
            client.send(&[b"SET", format!("key:{key:08}").as_bytes(), &value]).unwrap();
        }
        part.iter().for_each(|_| assert!(client.receive().unwrap().is_ok()));
    }
}

#[test]
fn data_that_fit_the_budget_are_served_from_memory() {
    const KEYS: u64 = 100_000;
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let mut client = server.client();
    fill(&mut client, 0..KEYS);
    for key in 0..KEYS {
        assert!(client.get(format!("key:{key:08}").as_bytes()).is_some(), "key {key}");
    }
    assert_eq!(client.flash_stat("flash_lookups"), 0);
    assert_eq!(client.flash_stat("memory_hits"), KEYS);
    assert_bounded(&server, "data that fit");
    assert!(server.terminate().success());
}

#[test]
fn the_read_cache_has_what_nothing_else_uses_and_gives_it_back() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(&temp.path().join("data"));
    let mut client = server.client();
    let at_rest = client.flash_stat("cache_budget_bytes");
    assert!(at_rest > MEMORY / 2, "{} MiB", at_rest / MIB);
    // More than fits, then read: memtables are small, and the cache is full.
    fill(&mut client, 0..250_000);
    (0..250_000_u64).step_by(2).for_each(|key| {
        assert!(client.get(format!("key:{key:08}").as_bytes()).is_some(), "key {key}");
    });
    let bytes = client.flash_stat("cache_bytes");
    let budget = client.flash_stat("cache_budget_bytes");
    let memtables = client.flash_stat("memtable_bytes");
    assert!(bytes <= budget, "{bytes} of {budget}");
    assert!(bytes > MEMORY * 3 / 10, "{} MiB of entries", bytes / MIB);
    assert!(budget + memtables <= at_rest, "{budget} beside {memtables} of memtables");
    assert_bounded(&server, "a full cache");
    // A request takes its memory before its body is received.
    let value = noise(3, 60 << 20);
    let request = encode(&[b"SET", b"large", &value]);
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.write_all(&request[..MIB as usize]).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while client.flash_stat("cache_budget_bytes") + (59 << 20) > budget {
        assert!(std::time::Instant::now() < deadline, "the cache has not shrunk");
        std::thread::sleep(Duration::from_millis(20));
    }
    slow.write_all(&request[MIB as usize..]).unwrap();
    let mut reply = [0; 5];
    std::io::Read::read_exact(&mut slow, &mut reply).unwrap();
    assert_eq!(&reply, b"+OK\r\n");
    // Memory that evicted entries leave returns to the kernel after a while, page by page.
    let peak = server.peak_bytes();
    assert!(peak <= MEMORY + 2 * ALLOWANCE, "a large value: {} MiB", peak / MIB);
    assert!(server.terminate().success());
}

/// Starts a server; returns the line before `ready` of its standard output.
fn line_before_ready(directory: &std::path::Path, arguments: &[&str]) -> String {
    let mut child = Command::new(crate::support::program::binary())
        .args(["serve", "--resp", "127.0.0.1:0", "--data"])
        .arg(directory)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut before = String::new();
    for line in output.lines().map_while(Result::ok) {
        if line.starts_with("ready ") {
            break;
        }
        before = line;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    before
}

#[test]
fn the_line_before_ready_is_the_memory_budget_by_default_a_quarter_of_the_machines() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    assert!(server(&data).terminate().success());
    let bytes_in = |line: &str| {
        let bytes = line.strip_prefix("memory=").and_then(|rest| rest.split(' ').next());
        bytes.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    let set = line_before_ready(&data, &["--memory", "256MiB"]);
    assert_eq!(bytes_in(&set), MEMORY);
    let default = line_before_ready(&data, &[]);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let total = total.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024;
    let bytes = bytes_in(&default);
    assert!(bytes <= total / 4 && default.contains("--memory"), "{default}");
    let server = Server::start(&data, &[]);
    let at_rest = server.client().flash_stat("cache_budget_bytes");
    assert!(at_rest > bytes / 2, "{at_rest} of {bytes}");
    assert!(server.resident_bytes() < 150 * MIB, "memory that is not needed is not taken");
    assert!(server.terminate().success());
}
