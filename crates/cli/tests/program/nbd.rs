//! Volumes over NBD, with a plain client: what is written is read, also after `kill -9`.

use crate::support::http;
use crate::support::nbd::{
    CACHE, DISCONNECT, EINVAL, ENOSPC, EPERM, ESHUTDOWN, FLUSH, FUA, NO_HOLE, NbdClient, READ,
    READ_ONLY, TRIM, WRITE, WRITE_ZEROES, greet, list,
};
use crate::support::noise;
use crate::support::program::{Backend, check_clean, format, format_with, said};
use crate::support::resp::Reply;
use crate::support::server::Server;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A directory of two shards with two units for volumes each.
pub fn with_volume_units() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "8", "--shards", "2", "--volume-units", "4"];
    format_with(&data, Backend::File, 2048 * MIB, &shares);
    (temp, data)
}

/// A server that offers NBD.
pub fn serve(data: &Path) -> Server {
    Server::start(data, &["--memory", "64MiB", "--nbd", "127.0.0.1:0"])
}

/// `FLASH.VOLUME`.
pub fn volume(server: &Server, words: &[&str]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    server.client().call(&[&[&b"FLASH.VOLUME"[..]], &words[..]].concat())
}

/// `FLASH.VOLUME` with success.
pub fn change(server: &Server, words: &[&str]) {
    let reply = volume(server, words);
    assert!(reply.is_ok(), "{words:?}: {reply:?}");
}

fn connect(server: &Server, export: &str) -> NbdClient {
    NbdClient::connect(server.address_of("nbd"), export)
}

#[test]
fn what_is_written_is_read_at_any_alignment() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let mut client = connect(&server, "disk");
    assert_eq!((client.size_bytes, client.flags & READ_ONLY), (64 * MIB, 0));
    assert_eq!(client.read(0, 8192).unwrap(), vec![0; 8192], "thin volumes read as zeros");

    let mut model = vec![0; 1 << 20];
    let ranges = [(0, 4096), (4096, 100_000), (5000, 1), (511, 513), (8191, 2), (700_000, 300_001)];
    for (seed, (offset, bytes)) in (1..).zip(ranges) {
        let written = noise(seed, bytes);
        assert_eq!(client.write(offset as u64, &written), 0);
        model[offset..offset + bytes].copy_from_slice(&written);
    }
    assert!(client.read(0, 1 << 20).unwrap() == model);
    assert!(client.read(4999, 3).unwrap() == model[4999..5002]);
    let mut other = connect(&server, "disk");
    assert!(other.read(511, 100_000).unwrap() == model[511..100_511], "of another connection");

    assert_eq!(client.call(WRITE_ZEROES, 0, 10_000, 50_000), 0);
    model[10_000..60_000].fill(0);
    assert_eq!(client.call(WRITE_ZEROES, NO_HOLE | FUA, 700_001, 9000), 0);
    model[700_001..709_001].fill(0);
    assert_eq!(client.call(TRIM, 0, 65_536, 8192), 0);
    model[65_536..73_728].fill(0);
    assert_eq!(client.call(TRIM, 0, 73_729, 100), 0, "too small to free anything");
    assert_eq!(client.call(CACHE, 0, 0, 1 << 20), 0);
    assert!(client.read(0, 1 << 20).unwrap() == model);

    let large = noise(9, 32 << 20);
    assert_eq!(client.write(32 * MIB, &large), 0, "the maximum");
    assert!(client.read(32 * MIB, 32 << 20).unwrap() == large);
    assert_eq!(client.read(64 * MIB - 1, 2), Err(EINVAL));
    assert_eq!(client.write(64 * MIB, &[0]), ENOSPC, "beyond the end");
    assert_eq!(client.flush(), 0);
    client.send(DISCONNECT, 0, 0, 0, &[]).unwrap();
    assert!(client.is_closed());
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn flushed_writes_of_all_connections_survive_kill_9() {
    let (_temp, data) = with_volume_units();
    let mut server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let block = |round: u64, place: u64| noise(round * 1000 + place, 20_000);
    for round in 0..3 {
        let [mut first, mut second] = ["disk"; 2].map(|name| connect(&server, name));
        for place in 0..100 {
            let client = if place % 2 == 0 { &mut first } else { &mut second };
            assert_eq!(client.write(place * 30_000, &block(round, place)), 0);
        }
        assert_eq!(first.flush(), 0, "covers the writes of the other connection");
        let fua = first.try_call(WRITE, FUA, 40 * MIB, 20_000, &block(round, 500)).unwrap();
        assert_eq!(fua, 0);
        server.kill();
        server = serve(&data);
        let mut client = connect(&server, "disk");
        for place in 0..100 {
            let read = client.read(place * 30_000, 20_000).unwrap();
            assert!(read == block(round, place), "round {round}, place {place}");
        }
        assert!(client.read(40 * MIB, 20_000).unwrap() == block(round, 500), "FUA");
    }
    assert!(server.terminate().success());
}

#[test]
fn only_flush_and_fua_flush_the_device() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1MiB"]);
    let flushes = || {
        let page = http::get(server.address_of("http"), "/metrics");
        let of_shard = |line: &str| {
            line.strip_prefix("softflash_volume_flushes_total{")?
                .split(' ')
                .next_back()?
                .parse()
                .ok()
        };
        let counts: Vec<u64> = page.lines().filter_map(of_shard).collect();
        assert_eq!(counts.len(), 2, "{page}");
        counts.iter().sum::<u64>()
    };
    let mut client = connect(&server, "disk");
    let mut expected = flushes();
    let mut after = |kind, flags, bytes: u32, more| {
        let payload = vec![7; if kind == WRITE { bytes as usize } else { 0 }];
        assert_eq!(client.try_call(kind, flags, 0, bytes, &payload).unwrap(), 0);
        expected += more;
        assert_eq!(flushes(), expected, "request {kind} with flags {flags}");
    };
    after(WRITE, 0, 4096, 0);
    after(FLUSH, 0, 0, 1);
    after(WRITE, FUA, 4096, 1);
    after(WRITE, FUA, 512, 1);
    after(TRIM, 0, 4096, 0);
    after(TRIM, FUA, 4096, 1);
    after(WRITE_ZEROES, 0, 4096, 0);
    after(WRITE_ZEROES, FUA, 4096, 1);
    assert!(server.terminate().success());
}

#[test]
fn a_snapshot_is_exact_and_read_only_and_a_clone_begins_with_it() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "16MiB"]);
    change(&server, &["CREATE", "other", "8MiB"]);
    let mut disk = connect(&server, "disk");
    let before = noise(1, 3 << 20);
    assert_eq!(disk.write(1000, &before), 0);
    change(&server, &["SNAPSHOT", "disk", "monday"]);
    assert_eq!(disk.write(0, &noise(2, 1 << 20)), 0);
    change(&server, &["CLONE", "disk", "monday", "trial"]);
    change(&server, &["RESIZE", "disk", "32MiB"]);
    let names = ["disk", "disk@monday", "other", "trial"];
    assert_eq!(list(server.address_of("nbd")), names);

    let mut snapshot = connect(&server, "disk@monday");
    assert_eq!((snapshot.size_bytes, snapshot.flags & READ_ONLY), (16 * MIB, READ_ONLY));
    assert!(snapshot.read(1000, 3 << 20).unwrap() == before);
    assert_eq!(snapshot.write(0, &[1; 4096]), EPERM);
    assert_eq!(snapshot.call(TRIM, 0, 0, 4096), EPERM);
    let mut trial = connect(&server, "trial");
    assert_eq!(trial.write(1000, &[7; 100]), 0);
    assert!(trial.read(1100, 1 << 20).unwrap() == before[100..100 + (1 << 20)]);
    assert!(snapshot.read(1000, 3 << 20).unwrap() == before, "still");

    // A larger size is seen by new connections.
    assert_eq!(disk.read(16 * MIB, 1), Err(EINVAL));
    let mut disk = connect(&server, "disk");
    assert_eq!(disk.size_bytes, 32 * MIB);
    assert_eq!(disk.write(31 * MIB, &[1; 512]), 0);
    // A smaller one by all.
    change(&server, &["RESIZE", "disk", "1MiB", "SHRINK"]);
    assert_eq!(disk.read(31 * MIB, 512), Err(EINVAL));
    assert_eq!(connect(&server, "disk").size_bytes, MIB);
    for unknown in ["nothing", "", "disk@tuesday", "disk@"] {
        let refused = NbdClient::try_connect(server.address_of("nbd"), unknown).unwrap();
        assert_eq!(refused.err(), Some(0x8000_0006), "{unknown:?}");
    }
    assert!(server.terminate().success());
}

#[test]
fn sectors_of_one_unit_can_be_written_by_many_at_once() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1MiB"]);
    let address = server.address_of("nbd");
    std::thread::scope(|threads| {
        for place in 0..8_u8 {
            threads.spawn(move || {
                let mut client = NbdClient::connect(address, "disk");
                for round in 1..=50 {
                    let sector = vec![place * 20 + round % 20; 512];
                    assert_eq!(client.write(u64::from(place) * 512, &sector), 0);
                    assert!(client.read(u64::from(place) * 512, 512).unwrap() == sector);
                }
            });
        }
    });
    let unit = connect(&server, "disk").read(0, 4096).unwrap();
    let sectors: Vec<u8> = unit.chunks(512).map(|sector| sector[0]).collect();
    assert_eq!(sectors, [10, 30, 50, 70, 90, 110, 130, 150]);
    assert!(server.terminate().success());
}

#[test]
fn requests_of_one_connection_run_side_by_side() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "32MiB"]);
    let mut client = connect(&server, "disk");
    let data = noise(3, 16_384);
    let mut sent: Vec<u64> = (0..300)
        .map(|place| client.send(WRITE, 0, place * 16_384, 16_384, &data).unwrap())
        .collect();
    // More than 64 under way: the rest waits in the socket.
    for _ in 0..300 {
        let (error, cookie) = client.reply().unwrap();
        assert_eq!(error, 0);
        sent.retain(|waiting| *waiting != cookie);
    }
    assert!(sent.is_empty());
    let all = client.read(0, 300 * 16_384).unwrap();
    assert!(all.chunks(16_384).all(|chunk| chunk == data));
    assert!(server.terminate().success());
}

#[test]
fn a_full_domain_refuses_writes_and_serves_everything_else() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "1"];
    format_with(&data, Backend::File, 512 * MIB, &shares);
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1GiB"]);
    let mut client = connect(&server, "disk");
    let block = noise(1, 1 << 20);
    let full = (0..1024).find(|place| match client.write(place * MIB, &block) {
        0 => false,
        error => {
            assert_eq!(error, ENOSPC);
            true
        }
    });
    let full = full.expect("a gibibyte does not fit");
    assert!(full > 8, "{full} MiB");
    assert!(client.read(0, 1 << 20).unwrap() == block);
    assert!(server.client().set(b"key", b"value").is_ok(), "keys have other units");
    assert_eq!(client.call(TRIM, 0, 0, 4 << 20), 0);
    assert_eq!(client.write(0, &block), 0, "there is room again");
    assert_eq!(client.flush(), 0);
    server.kill();
    let server = serve(&data);
    assert!(connect(&server, "disk").read(0, 1 << 20).unwrap() == block);
    assert!(server.terminate().success());
}

#[test]
fn a_stop_ends_connections_and_keeps_what_was_flushed() {
    let (_temp, data) = with_volume_units();
    let mut server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let address = server.address_of("nbd");
    let idle = connect(&server, "disk");
    let writer = std::thread::spawn(move || {
        let mut client = NbdClient::connect(address, "disk");
        let mut flushed = 0;
        for round in 1_u64.. {
            let write = client.try_call(WRITE, 0, (round % 50) * MIB, 4096, &noise(round, 4096));
            let flush = client.try_call(FLUSH, 0, 0, 0, &[]);
            match (write, flush) {
                (Ok(0), Ok(0)) => flushed = round,
                (Ok(0 | ESHUTDOWN) | Err(_), Ok(ESHUTDOWN) | Err(_)) => break,
                other => panic!("{other:?}"),
            }
        }
        flushed
    });
    std::thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    server.signal_term();
    assert!(server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(8), "idle clients are not waited for");
    drop(idle);
    let flushed = writer.join().unwrap();
    assert!(flushed > 0);
    let server = serve(&data);
    let mut client = connect(&server, "disk");
    for round in flushed.saturating_sub(49).max(1)..=flushed {
        let read = client.read((round % 50) * MIB, 4096).unwrap();
        // The write after the last flush may be there, too.
        assert!(read == noise(round, 4096) || read == noise(flushed + 1, 4096), "{round}");
    }
    assert!(server.terminate().success());
}

#[test]
fn flash_volume_says_what_is_wrong() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    let refused = |words: &[&str], part: &str| {
        let reply = volume(&server, words);
        let error = reply.error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"));
        assert!(error.contains(part), "{words:?}: {error}");
    };
    change(&server, &["CREATE", "a", "8GiB"]);
    change(&server, &["create", "b", "4096"]);
    refused(&["CREATE", "a", "1MiB"], "`a` exists");
    refused(&["CREATE", "b", "1MiB"], "`b` exists");
    refused(&["CREATE", "c", "1000"], "multiples of 4096");
    refused(&["CREATE", "c", "much"], "`much` is not a size");
    refused(&["CREATE", "c/d", "1MiB"], "letters, digits");
    refused(&["CREATE", "c"], "wrong number of arguments");
    refused(&["NONSENSE"], "subcommand");
    refused(&["RESIZE", "c", "1MiB"], "no volume `c`");
    refused(&["DELETE", "c"], "no volume `c`");
    refused(&["CLONE", "a", "s", "c"], "no snapshot `s`");
    change(&server, &["SNAPSHOT", "a", "s"]);
    refused(&["CLONE", "a", "s", "b"], "`b` exists");
    refused(&["DELETE", "a"], "snapshot");
    change(&server, &["CLONE", "a", "s", "c"]);
    refused(&["DELETESNAPSHOT", "a", "s"], "`c`");
    change(&server, &["DELETE", "c"]);
    let Reply::Array(all) = volume(&server, &["LIST"]) else { panic!("no list") };
    assert_eq!(all.len(), 2);
    let Reply::Array(fields) = &all[0] else { panic!("a map is a flat list in RESP2: {all:?}") };
    let names: Vec<String> = fields.iter().step_by(2).cloned().map(Reply::text).collect();
    let limits = ["quota_bytes", "iops", "bandwidth_bytes_per_second"];
    let settings = [&limits[..], &["weight", "temperature", "stream"]].concat();
    let expected =
        [&["name", "size_bytes", "used_bytes"], &settings[..], &["snapshots", "set"]].concat();
    assert_eq!(names, expected);
    assert_eq!(fields[3].integer(), 8 << 30);
    change(&server, &["DELETESNAPSHOT", "a", "s"]);
    change(&server, &["DELETE", "a"]);
    let mut client = server.client();
    assert!(
        client.call(&[b"ACL", b"SETUSER", b"u", b"on", b"nopass", b"+@all", b"-@admin"]).is_ok()
    );
    assert!(client.call(&[b"AUTH", b"u", b"x"]).is_ok());
    let denied = client.call(&[b"FLASH.VOLUME", b"LIST"]);
    assert!(denied.error().is_some_and(|text| text.starts_with("NOPERM")), "{denied:?}");
    assert!(server.terminate().success());
}

#[test]
fn a_directory_without_volume_units_has_no_volumes_and_no_nbd() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    for words in [&["LIST"][..], &["CREATE", "a", "1MiB"]] {
        let reply = volume(&server, words);
        let error = reply.error().unwrap();
        assert!(error.contains("softflash format DIR --size SIZE --volume-units"), "{error}");
    }
    assert!(server.terminate().success());
    let missing = temp.path().join("missing");
    let refused = Server::try_start(&missing, &["--nbd", "127.0.0.1:0"]).err().unwrap();
    assert!(said(&refused).contains("--volume-units"), "{}", said(&refused));
    assert!(!missing.exists(), "nothing is created that would not do");
    let refused = Server::try_start(&data, &["--nbd", "127.0.0.1:0"]).err().unwrap();
    let text = said(&refused);
    assert!(text.contains("softflash format DIR --size SIZE --volume-units"), "{text}");
    assert!(text.contains(data.to_str().unwrap()), "{text}");
}

#[test]
fn volumes_that_cannot_be_mounted_leave_keys_served() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 50 * MIB, &["--units", "4", "--shards", "1"]);
    // `format` refuses volume units that are too small, so write them into the manifest.
    let manifest = data.join("softflash.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text + "\n[volumes]\nunits = 1\nop_percent = 7\n").unwrap();
    let server = Server::start(&data, &["--memory", "32MiB"]);
    server.await_said("the volumes of shard 0 are not served");
    let text = server.said();
    assert!(text.contains("no space for data") && text.contains("larger units"), "{text}");
    assert!(server.client().set(b"key", b"value").is_ok());
    assert!(server.terminate().success());
}

#[test]
fn nbd_is_refused_where_it_would_undermine_passwords() {
    let (temp, data) = with_volume_units();
    let password = temp.path().join("password");
    std::fs::write(&password, "secret").unwrap();
    let with_password = ["--password-file", password.to_str().unwrap(), "--nbd", "127.0.0.1:0"];
    let open_to_all = ["--nbd", "0.0.0.0:0"];
    for arguments in [&with_password[..], &open_to_all] {
        let text = said(&Server::try_start(&data, arguments).err().unwrap());
        assert!(text.contains("NBD has no passwords"), "{text}");
        assert!(text.contains("--nbd-open") && text.contains("--tls-ca"), "{text}");
    }
    let server = Server::start(&data, &[&with_password[..], &["--nbd-open"]].concat());
    assert!(list(server.address_of("nbd")).is_empty());
    assert!(server.terminate().success());

    // A password that is set while the server runs.
    let server = serve(&data);
    let address = server.address_of("nbd");
    assert!(greet(address).is_ok());
    assert!(server.client().call(&[b"ACL", b"SETUSER", b"default", b">secret"]).is_ok());
    assert!(greet(address).is_err(), "the connection is closed at once");
    assert!(server.terminate().success());
}

#[test]
fn a_handshake_that_goes_nowhere_ends() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1MiB"]);
    let started = Instant::now();
    let mut silent = greet(server.address_of("nbd")).unwrap();
    let mut garbage = greet(server.address_of("nbd")).unwrap();
    garbage.write_all(&[0x55; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = garbage.read_to_end(&mut rest);
    assert!(started.elapsed() < Duration::from_secs(4), "garbage ends it at once");
    let _ = silent.read_to_end(&mut rest);
    assert!((4..15).contains(&started.elapsed().as_secs()), "after {:?}", started.elapsed());
    let mut client = connect(&server, "disk");
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(client.call(READ, 0, 0, 1), 0, "a client that has chosen may be silent");
    client.data(1);
    assert!(server.terminate().success());
}

#[test]
fn refused_connections_do_not_flood_the_log() {
    let (_temp, data) = with_volume_units();
    let limited = ["--memory", "64MiB", "--nbd", "127.0.0.1:0", "--max-unauthenticated", "1"];
    let server = Server::start(&data, &limited);
    let address = server.address_of("nbd");
    let _handshake = greet(address).unwrap();
    for _ in 0..300 {
        assert!(greet(address).is_err(), "it is refused");
    }
    server.await_said("an NBD connection is refused");
    let lines = server.said().lines().filter(|line| line.contains("is refused")).count();
    assert!((1..=3).contains(&lines), "{lines} lines for 300 connections");
    assert!(server.terminate().success());
}
