//! What one client can send: requests beyond a limit get an error that names it, and the connection
//! goes on; what a client keeps in a transaction is part of the memory budget.

use crate::support::http;
use crate::support::noise;
use crate::support::program::{Backend, check_clean, format_with};
use crate::support::resp::{Client, Reply, encode};
use crate::support::server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

fn directory(bytes: usize) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, bytes as u64, &["--units", "4", "--shards", "2"]);
    (temp, data)
}

fn serve(data: &Path, more: &[&str]) -> Server {
    Server::start(data, &[&["--durability", "1s"], more].concat())
}

/// Sends a request whose last word has many bytes, which are never in memory.
fn send_long(stream: &mut TcpStream, words: &[&[u8]], length: usize) {
    let head = encode(words);
    let count = format!("*{}\r\n", words.len());
    let rest = head.strip_prefix(count.as_bytes()).unwrap();
    write!(stream, "*{}\r\n", words.len() + 1).unwrap();
    stream.write_all(rest).unwrap();
    write!(stream, "${length}\r\n").unwrap();
    let piece = vec![b'x'; MIB];
    let mut left = length;
    while left > 0 {
        let now = left.min(piece.len());
        stream.write_all(&piece[..now]).unwrap();
        left -= now;
    }
    stream.write_all(b"\r\n").unwrap();
}

/// A client whose requests are also written as they are.
fn client_and_stream(server: &Server) -> (Client, TcpStream) {
    let stream = TcpStream::connect(server.address()).unwrap();
    (Client::on(stream.try_clone().unwrap()), stream)
}

fn assert_too_long(reply: &Reply, limit: usize) {
    let error = reply.error().unwrap_or_else(|| panic!("{reply:?}"));
    let limit = limit.to_string();
    assert!(error.starts_with("ERR string exceeds maximum allowed size"), "{error}");
    assert!(error.contains("proto-max-bulk-len") && error.contains(&limit), "{error}");
}

#[test]
fn a_word_beyond_the_limit_gets_an_error_and_the_connection_goes_on() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "64MiB", "--proto-max-bulk-len", "2MiB"]);
    let (mut client, mut stream) = client_and_stream(&server);
    // In a pipeline, with requests before and behind, and several that are refused.
    client.send(&[b"SET", b"before", b"1"]).unwrap();
    send_long(&mut stream, &[b"SET", b"a"], 2 * MIB + 1);
    send_long(&mut stream, &[b"MSET", b"b", b"1", b"c"], 100 * MIB);
    client.send(&[b"SET", b"behind", b"2"]).unwrap();
    send_long(&mut stream, &[b"APPEND", b"before"], 600 * MIB);
    client.send(&[b"PING"]).unwrap();
    assert!(client.receive().unwrap().is_ok());
    assert_too_long(&client.receive().unwrap(), 2 * MIB);
    assert_too_long(&client.receive().unwrap(), 2 * MIB);
    assert!(client.receive().unwrap().is_ok());
    assert_too_long(&client.receive().unwrap(), 2 * MIB);
    assert_eq!(client.receive().unwrap(), Reply::Simple("PONG".into()));
    assert_eq!(client.call(&[b"EXISTS", b"a", b"b", b"c", b"before", b"behind"]).integer(), 2);
    assert!(server.resident_bytes() < 110 * MIB as u64, "nothing of it is kept");
    // The longest, and one more byte by other commands.
    assert!(client.set(b"longest", &noise(1, 2 * MIB)).is_ok());
    for words in
        [&[b"APPEND", &b"longest"[..], b"x"][..], &[b"SETRANGE", b"longest", b"2097152", b"x"]]
    {
        let reply = client.call(words);
        assert!(reply.error().unwrap().contains("proto-max-bulk-len"), "{reply:?}");
    }
    // In a transaction.
    assert!(client.call(&[b"MULTI"]).is_ok());
    send_long(&mut stream, &[b"SET", b"a"], 2 * MIB + 1);
    assert_too_long(&client.receive().unwrap(), 2 * MIB);
    assert!(client.call(&[b"EXEC"]).error().unwrap().starts_with("EXECABORT"));
    let limit = client.call(&[b"CONFIG", b"GET", b"proto-max-bulk-len"]);
    assert!(format!("{limit:?}").contains("50, 48, 57, 55, 49, 53, 50"), "2097152: {limit:?}");
    assert!(server.terminate().success());
}

#[test]
fn a_request_that_memory_cannot_hold_gets_an_error_and_the_connection_goes_on() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "64MiB"]);
    let (mut client, mut stream) = client_and_stream(&server);
    send_long(&mut stream, &[b"SET", b"a"], 60 * MIB);
    client.send(&[b"PING"]).unwrap();
    let reply = client.receive().unwrap();
    assert!(reply.error().unwrap().contains("--memory"), "{reply:?}");
    assert_eq!(client.receive().unwrap(), Reply::Simple("PONG".into()));
    assert!(server.terminate().success());
}

#[test]
fn the_limit_of_values_can_be_raised() {
    let (_temp, data) = directory(2048 * MIB);
    let raised = ["--memory", "1GiB", "--proto-max-bulk-len", "192MiB"];
    let server = serve(&data, &raised);
    let (mut client, mut stream) = client_and_stream(&server);
    let value = vec![b'x'; 100 * MIB];
    send_long(&mut stream, &[b"SET", b"large"], value.len());
    assert!(client.receive().unwrap().is_ok());
    assert_eq!(client.call(&[b"APPEND", b"large", b"y"]).integer(), value.len() as i64 + 1);
    assert!(client.get(b"large").unwrap()[..value.len()] == value[..]);
    assert!(server.terminate().success());
    check_clean(&data);
    // A server with the default limit reads it, and writes no other.
    let server = serve(&data, &["--memory", "1GiB"]);
    let (mut client, mut stream) = client_and_stream(&server);
    assert_eq!(client.call(&[b"STRLEN", b"large"]).integer(), value.len() as i64 + 1);
    assert!(client.get(b"large").unwrap()[..value.len()] == value[..]);
    send_long(&mut stream, &[b"SET", b"other"], value.len());
    assert_too_long(&client.receive().unwrap(), 64 * MIB);
    assert!(client.call(&[b"APPEND", b"large", b"y"]).error().is_some());
    assert!(server.terminate().success());
}

#[test]
fn input_that_is_no_request_closes_the_connection_with_a_line_in_the_log() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "64MiB"]);
    for _ in 0..200 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"*1\r\n$99999999999\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("-ERR Protocol error: invalid bulk length"), "{reply}");
    }
    server.await_said("invalid bulk length");
    let lines = server.said().lines().filter(|line| line.contains("connection closed")).count();
    assert!((1..=10).contains(&lines), "{lines} lines");
    assert!(server.terminate().success());
}

#[test]
fn a_transaction_is_part_of_the_memory_budget() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "64MiB"]);
    let mut other = server.client();
    let before = server.resident_bytes();
    let mut client = server.client();
    assert!(client.call(&[b"MULTI"]).is_ok());
    let value = noise(5, 60_000);
    let mut queued = 0;
    let refused = loop {
        match client.call(&[b"SET", format!("key:{queued}").as_bytes(), &value]) {
            Reply::Simple(text) if text == "QUEUED" => queued += 1,
            refused => break refused,
        }
    };
    eprintln!("{queued} commands queued");
    assert!(refused.is_full() && refused.error().unwrap().contains("--memory"), "{refused:?}");
    assert!(queued > 100, "{queued} of 60 kB");
    // More of the same, and what others do meanwhile.
    for number in 0..2000_u32 {
        client.send(&[b"SET", &number.to_be_bytes(), &value]).unwrap();
        client.receive().unwrap();
    }
    assert!(other.call(&[b"MULTI"]).is_ok());
    assert_eq!(other.call(&[b"SET", b"small", b"1"]), Reply::Simple("QUEUED".into()));
    assert_eq!(other.call(&[b"EXEC"]), Reply::Array(vec![Reply::Simple("OK".into())]));
    assert!(other.set(b"large", &noise(6, 4 * MIB)).is_ok());
    assert!(client.call(&[b"EXEC"]).error().unwrap().starts_with("EXECABORT"));
    let most = server.resident_bytes();
    assert!(most < (64 + 48) * MIB as u64, "{} MiB", most as usize / MIB);
    // All of it is free again.
    assert!(client.call(&[b"MULTI"]).is_ok());
    for _ in 0..queued {
        let reply = client.call(&[b"SET", b"key", &value]);
        assert_eq!(reply, Reply::Simple("QUEUED".into()));
    }
    let Reply::Array(replies) = client.call(&[b"EXEC"]) else { panic!("it is carried out") };
    assert!(replies.len() == queued && replies.iter().all(Reply::is_ok));
    eprintln!("{} MiB before, {} MiB at most", before as usize / MIB, most as usize / MIB);
    assert!(server.terminate().success());
}

#[test]
fn the_memory_of_a_large_transaction_returns_to_the_system_when_its_client_leaves() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "4GiB"]);
    let mut client = server.client();
    assert!(client.set(b"k", b"v").is_ok());
    let before = server.resident_bytes();
    assert!(client.call(&[b"MULTI"]).is_ok());
    let value = noise(5, 60_000);
    for number in 0..1500_u32 {
        let reply = client.call(&[b"SET", &number.to_be_bytes(), &value]);
        assert_eq!(reply, Reply::Simple("QUEUED".into()));
    }
    let full = server.resident_bytes();
    assert!(full > before + 80 * MIB as u64, "{} MiB", full as usize / MIB);
    drop(client);
    let started = Instant::now();
    while server.resident_bytes() > before + 24 * MIB as u64 {
        let now = server.resident_bytes() as usize / MIB;
        assert!(started.elapsed() < Duration::from_secs(15), "{now} MiB are left");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(server.terminate().success());
}

#[test]
fn a_hundred_thousand_keys_are_watched_in_linear_time() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "256MiB"]);
    let mut client = server.client();
    let keys: Vec<Vec<u8>> =
        (0..100_000).map(|number| format!("key:{number}").into_bytes()).collect();
    let mut watch = |count: usize| {
        let words: Vec<&[u8]> = std::iter::once(&b"WATCH"[..])
            .chain(keys.iter().take(count).map(Vec::as_slice))
            .collect();
        let started = Instant::now();
        assert!(client.call(&words).is_ok());
        let took = started.elapsed();
        assert!(client.call(&[b"UNWATCH"]).is_ok());
        took
    };
    let few = watch(10_000);
    let many = watch(100_000);
    // Ten times as long if it is linear, a hundred times if it is quadratic.
    assert!(many < 40 * few.max(Duration::from_millis(20)), "{few:?}, then {many:?}");
    assert!(server.terminate().success());
}

#[test]
fn slow_http_clients_are_few_and_soon_gone() {
    let (_temp, data) = directory(512 * MIB);
    let server = serve(&data, &["--memory", "64MiB"]);
    let address = server.address_of("http");
    let slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    let started = Instant::now();
    assert!(http::get(address, "/health").contains("200 OK"));
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let open = || {
        let is_open = |stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        };
        slow.iter().filter(|stream| is_open(stream)).count()
    };
    while open() > 64 {
        assert!(started.elapsed() < Duration::from_secs(5), "{} are open", open());
        std::thread::sleep(Duration::from_millis(50));
    }
    // Bytes now and then do not prolong it.
    while open() > 0 {
        for mut stream in &slow {
            let _ = stream.write(b"x");
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{} are open", open());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(server.terminate().success());
}

#[test]
fn a_short_request_cannot_ask_for_more_than_memory_holds() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let bytes = 512 * MIB as u64;
    format_with(&data, Backend::File, bytes, &["--units", "4", "--shards", "2"]);
    let server = serve(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    let names: Vec<Vec<u8>> = (0..6).map(|number| format!("large:{number}").into_bytes()).collect();
    for name in &names {
        assert!(client.set(name, &noise(4, 8 * MIB)).is_ok());
    }
    let many = || names.iter().cycle().take(150).map(Vec::as_slice);
    // One command, over both shards and one of them.
    let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..]).chain(many()).collect();
    let reply = client.call(&words);
    assert!(reply.error().unwrap().contains("reply too large"), "{reply:?}");
    let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..])
        .chain(std::iter::repeat_n(names[0].as_slice(), 150))
        .collect();
    assert!(client.call(&words).error().unwrap().contains("reply too large"));
    // A transaction.
    assert!(client.call(&[b"MULTI"]).is_ok());
    many().for_each(|name| client.send(&[b"GET", name]).unwrap());
    many().for_each(|_| assert_eq!(client.receive().unwrap(), Reply::Simple("QUEUED".into())));
    assert!(client.call(&[b"EXEC"]).error().unwrap().contains("reply too large"));
    let most = server.peak_bytes();
    assert!(most < 160 * MIB as u64, "{} MiB", most as usize / MIB);
    // Pipelines, after small replies have let the server expect such.
    for _ in 0..300 {
        assert_eq!(client.get(b"none"), None);
    }
    many().for_each(|name| client.send(&[b"GET", name]).unwrap());
    client.send(&[b"MGET", &names[0], &names[1]]).unwrap();
    client.send(&[b"ECHO", b"after them"]).unwrap();
    for _ in many() {
        let reply = client.receive().unwrap();
        assert!(matches!(&reply, Reply::Bulk(Some(value)) if value.len() == 8 * MIB));
    }
    assert!(matches!(client.receive().unwrap(), Reply::Array(values) if values.len() == 2));
    assert_eq!(client.receive().unwrap(), Reply::Bulk(Some(b"after them".to_vec())));
    let most = server.peak_bytes();
    assert!(most < 160 * MIB as u64, "{} MiB", most as usize / MIB);
    assert_eq!(server.client().call(&[b"PING"]), Reply::Simple("PONG".into()));
    assert!(server.terminate().success());
}
