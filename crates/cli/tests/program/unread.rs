//! Clients that leave large replies unread hold up only each other: small commands of others are
//! answered within a second, by RESP and by NBD.

use crate::nbd::{change, serve, with_volume_units};
use crate::support::nbd::{FLUSH, NbdClient, READ, TRIM};
use crate::support::program::{Backend, format_with};
use crate::support::resp::{Client, Reply, encode};
use crate::support::server::Server;
use crate::support::{noise, setting};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// The promise of `docs/security.md`.
const PROMISED: Duration = Duration::from_secs(1);

/// No command ever waits for so long, however busy the machine is; on a quiet one,
/// `SOFTFLASH_SMALL_MS=1000` asks for what is promised.
fn never() -> Duration {
    Duration::from_millis(setting("SOFTFLASH_SMALL_MS", 5000))
}

/// The shortest of a few measurements: the machine may be busy, and a server that waits for a time
/// limit of other clients does so every time.
fn shortest(what: &str, mut measure: impl FnMut()) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        measure();
        let took = started.elapsed();
        assert!(took < never(), "{what}: {took:?}");
        shortest = shortest.min(took);
        if shortest < PROMISED {
            break;
        }
    }
    assert!(shortest < PROMISED, "{what}: {shortest:?}");
    shortest
}

/// Clients with many large replies, of which they read nothing.
fn leave_unread(server: &Server, clients: usize) -> Vec<TcpStream> {
    let request = encode(&[b"GET", b"large"]).repeat(4);
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&request).unwrap();
        stream
    };
    (0..clients).map(connect).collect()
}

/// Small commands, some of them with values, and in a transaction.
const SMALL: &[&[&[u8]]] = &[
    &[b"PING"],
    &[b"INFO"],
    &[b"SET", b"one", b"1"],
    &[b"GET", b"one"],
    &[b"GET", b"empty"],
    &[b"GET", b"none"],
    &[b"MGET", b"one", b"none", b"one"],
    &[b"INCR", b"one"],
    &[b"APPEND", b"text", b"x"],
    &[b"STRLEN", b"one"],
    &[b"EXISTS", b"large"],
    &[b"SCAN", b"0"],
    &[b"DBSIZE"],
    &[b"CLIENT", b"LIST"],
    &[b"CONFIG", b"GET", b"maxmemory"],
    &[b"MULTI"],
    &[b"SET", b"one", b"2"],
    &[b"GET", b"one"],
    &[b"EXEC"],
    &[b"DEL", b"none"],
];

fn small_commands_are_answered(clients: usize, memory: Option<&str>, shards: &str) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", shards];
    format_with(&data, Backend::File, 1024 * MIB as u64, &shares);
    let memory: Vec<&str> = memory.into_iter().flat_map(|size| ["--memory", size]).collect();
    let server = Server::start(&data, &[&memory[..], &["--durability", "100ms"]].concat());
    let mut client = server.client();
    assert!(client.set(b"large", &noise(3, 8 * MIB)).is_ok());
    assert!(client.set(b"empty", b"").is_ok());
    // One for each thread, and more: the connections are dealt out in turn.
    let mut before: Vec<Client> = (0..4).map(|_| server.client()).collect();
    let unread = leave_unread(&server, clients);
    std::thread::sleep(Duration::from_millis(500));
    for client in &mut before {
        for words in SMALL {
            let what = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
            let took = shortest(&format!("{what}, {clients} clients"), || {
                let reply = client.call(words);
                assert_eq!(reply.error(), None, "{what}");
            });
            if took > PROMISED / 4 {
                eprintln!("{what}: {took:?}");
            }
        }
    }
    // Pipelines, and new connections.
    shortest("a pipeline", || {
        let mut client = server.client();
        (0..1000).for_each(|_| client.send(&[b"INCR", b"counter"]).unwrap());
        (0..1000).for_each(|_| assert!(client.receive().unwrap().integer() > 0));
    });
    drop(unread);
    assert_eq!(client.get(b"large").unwrap().len(), 8 * MIB);
    assert!(server.terminate().success());
}

#[test]
fn small_commands_do_not_wait_for_8_clients_that_read_nothing() {
    small_commands_are_answered(8, Some("64MiB"), "1");
}

#[test]
fn small_commands_do_not_wait_for_8_clients_that_read_nothing_with_the_default_memory() {
    small_commands_are_answered(8, None, "2");
}

#[test]
fn small_commands_do_not_wait_for_40_clients_that_read_nothing() {
    small_commands_are_answered(40, Some("256MiB"), "2");
}

#[test]
fn small_commands_do_not_wait_for_400_clients_that_read_nothing() {
    small_commands_are_answered(400, Some("64MiB"), "2");
}

/// A server with a large value that its memory does not hold, since many smaller ones followed.
fn with_a_large_value_on_flash() -> (tempfile::TempDir, Server, Client) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 1024 * MIB as u64, &["--units", "8", "--shards", "2"]);
    let server = Server::start(&data, &["--memory", "64MiB", "--durability", "100ms"]);
    let mut client = server.client();
    assert!(client.set(b"large", &noise(3, 8 * MIB)).is_ok());
    for number in 0..200_u32 {
        assert!(client.set(format!("medium{number}").as_bytes(), &noise(4, 60_000)).is_ok());
    }
    (temp, server, client)
}

/// The replies of late were short, and memory does not hold the large value: its length is known
/// when it is looked up, and no more reads begin than there is memory for.
#[test]
fn values_that_memory_does_not_hold_are_not_all_read_at_once() {
    let (_temp, server, mut client) = with_a_large_value_on_flash();
    for number in 0..50_u32 {
        assert_eq!(client.get(format!("medium{number}").as_bytes()).unwrap().len(), 60_000);
    }
    let unread: Vec<TcpStream> = (0..5).flat_map(|_| leave_unread(&server, 40)).collect();
    for _ in 0..10 {
        for words in SMALL {
            let what = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
            shortest(&what, || assert_eq!(client.call(words).error(), None, "{what}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let most = server.peak_bytes();
    assert!(most < 400 * MIB as u64, "{most} bytes with --memory 64MiB");
    drop(unread);
    assert_eq!(client.get(b"large").unwrap().len(), 8 * MIB);
    assert!(server.terminate().success());
}

/// Pipelines that begin together, while all replies of late were short: each client has the values
/// of one batch at most, and no batch waits for one that waits for it.
#[test]
fn pipelines_of_large_values_that_begin_together_hold_few_of_them() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 1024 * MIB as u64, &["--units", "8", "--shards", "2"]);
    let server = Server::start(&data, &["--memory", "64MiB", "--durability", "100ms"]);
    let mut client = server.client();
    let names: Vec<Vec<u8>> = (0..16).map(|number| format!("large{number}").into_bytes()).collect();
    for name in &names {
        assert!(client.set(name, &noise(5, 8 * MIB)).is_ok());
    }
    let mut clients: Vec<Client> = (0..40).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.call(&[b"PING"]), Reply::Simple("PONG".into()));
    }
    for _ in 0..1000 {
        assert_eq!(client.call(&[b"PING"]), Reply::Simple("PONG".into()));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        (0..64).for_each(|_| client.send(&[b"GET", &names[number % names.len()]]).unwrap());
    }
    for _ in 0..20 {
        shortest("PING", || assert_eq!(client.call(&[b"PING"]).error(), None));
        std::thread::sleep(Duration::from_millis(100));
    }
    let most = server.peak_bytes();
    eprintln!("a peak of {} MiB", most as usize / MIB);
    assert!(most < 160 * MIB as u64, "{} MiB with --memory 64MiB", most as usize / MIB);
    drop(clients);
    assert_eq!(client.get(&names[0]).unwrap().len(), 8 * MIB);
    assert!(server.terminate().success());
}

/// Clients whose pipelines take much processor time take turns with the others. Returns the most
/// memory of the server, in MiB.
fn pipelines_leave_turns(request: &[u8], shards: &str) -> u64 {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 * MIB as u64, &["--units", "4", "--shards", shards]);
    let server = Server::start(&data, &["--memory", "64MiB", "--durability", "1s"]);
    let mut client = server.client();
    for number in 0..20_000_u32 {
        client.send(&[b"SET", format!("key{number}").as_bytes(), &[b'x'; 50]]).unwrap();
    }
    (0..20_000).for_each(|_| assert!(client.receive().unwrap().is_ok()));
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        // As much as the server takes while it does not reply.
        stream.set_nonblocking(true).unwrap();
        assert!(stream.write(request).unwrap() > 0);
        stream
    };
    let unread: Vec<TcpStream> = (0..400).map(connect).collect();
    for words in [&[&b"PING"[..]][..], &[b"SET", b"one", b"1"], &[b"GET", b"one"]] {
        let what = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        shortest(&what, || assert_eq!(client.call(words).error(), None, "{what}"));
    }
    let most = server.peak_bytes() / MIB as u64;
    drop(unread);
    assert!(server.terminate().success());
    most
}

#[test]
fn pipelines_of_scans_leave_turns_to_others() {
    pipelines_leave_turns(&encode(&[b"SCAN", b"0", b"COUNT", b"1000"]).repeat(200), "1");
}

#[test]
fn pipelines_of_long_texts_leave_turns_to_others() {
    pipelines_leave_turns(&encode(&[b"COMMAND"]).repeat(200), "1");
}

/// Few commands on many keys of both shards are under way, and hold the gates of both. With all of
/// them under way at once the server took more than 700 MiB; with all lookups of the lengths of
/// their values waiting for a gate at once, 460 MiB.
#[test]
fn pipelines_of_many_keys_of_several_shards_leave_the_gates_to_others() {
    let keys: Vec<String> = (0..1000).map(|number| format!("key{number}")).collect();
    let mut words = vec![&b"MGET"[..]];
    words.extend(keys.iter().map(|key| key.as_bytes()));
    let most = pipelines_leave_turns(&encode(&words).repeat(50), "2");
    assert!(most < 256, "{most} MiB with --memory 64MiB");
}

#[test]
fn pipelines_of_long_scans_leave_turns_to_others() {
    pipelines_leave_turns(&encode(&[b"SCAN", b"0", b"COUNT", b"100000"]).repeat(50), "2");
}

/// Requests that wait when their client leaves are not worked off for nobody: those that only read
/// end without a read.
#[test]
fn large_reads_of_clients_that_have_left_are_not_made() {
    const CLIENTS: u64 = 200;
    let (_temp, server, mut client) = with_a_large_value_on_flash();
    let get = encode(&[b"GET", b"large"]).repeat(4);
    let request = [encode(&[b"MULTI"]), get, encode(&[b"EXEC"])].concat();
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&request).unwrap();
        stream
    };
    let unread: Vec<TcpStream> = (0..CLIENTS).map(connect).collect();
    std::thread::sleep(Duration::from_millis(500));
    drop(unread);
    let mut field = |name: &str| -> u64 {
        let info = client.call(&[b"INFO"]).text();
        let value = info.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        value.trim_start_matches(':').trim().parse().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while field("connected_clients") > 1 {
        assert!(Instant::now() < deadline, "{} clients", field("connected_clients"));
        std::thread::sleep(Duration::from_millis(50));
    }
    let hits = field("keyspace_hits");
    assert!(hits < CLIENTS * 4 / 2, "{hits} reads");
    assert!(server.terminate().success());
}

#[test]
fn a_client_that_reads_a_few_bytes_now_and_then_is_disconnected_while_others_wait() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 1024 * MIB as u64, &["--units", "4", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "64MiB", "--durability", "1s"]);
    let mut client = server.client();
    assert!(client.set(b"large", &noise(3, 8 * MIB)).is_ok());
    let trickles = leave_unread(&server, 4);
    let waits = server.client();
    let started = Instant::now();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        for mut stream in trickles {
            scope.spawn(move || {
                let mut little = [0; 512];
                while !stop.load(Ordering::Relaxed) {
                    let _ = stream.read(&mut little);
                    std::thread::sleep(Duration::from_millis(300));
                }
            });
        }
        let mut waits = waits;
        assert_eq!(waits.get(b"large").unwrap().len(), 8 * MIB);
        stop.store(true, Ordering::Relaxed);
    });
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
    assert!(server.terminate().success());
}

fn small_requests_to_a_volume_are_answered(clients: usize) {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "256MiB"]);
    let mut writer = NbdClient::connect(server.address_of("nbd"), "disk");
    let piece = noise(7, 8 * MIB);
    for number in 0..8 {
        assert_eq!(writer.write(number * piece.len() as u64, &piece), 0);
    }
    let unread: Vec<NbdClient> = (0..clients)
        .map(|_| {
            let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
            for number in 0..8 {
                client.send(READ, 0, number * piece.len() as u64, piece.len() as u32, &[]).unwrap();
            }
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
    shortest("a read of 4 KiB", || assert!(client.read(0, 4096).unwrap() == piece[..4096]));
    shortest("a write of 4 KiB", || assert_eq!(client.write(128 << 20, &piece[..4096]), 0));
    shortest("a write of 1 MiB", || assert_eq!(client.write(128 << 20, &piece[..MIB]), 0));
    shortest("a flush", || assert_eq!(client.call(FLUSH, 0, 0, 0), 0));
    shortest("a trim", || assert_eq!(client.call(TRIM, 0, 128 << 20, 4096), 0));
    shortest("64 reads at once", || {
        let offset = |number: u64| number * 4096;
        (0..64).for_each(|number| {
            client.send(READ, 0, offset(number), 4096, &[]).unwrap();
        });
        (0..64).for_each(|_| {
            assert_eq!(client.reply().unwrap().0, 0);
            client.data(4096);
        });
    });
    // A large request in front does not hold up the small ones behind it.
    shortest("a small read behind a large one", || {
        let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
        let large = client.send(READ, 0, 0, piece.len() as u32, &[]).unwrap();
        let small = client.send(READ, 0, 0, 4096, &[]).unwrap();
        let (error, first) = client.reply().unwrap();
        assert_eq!(error, 0);
        assert!(first == small || first == large);
    });
    drop((unread, writer));
    shortest("a small read after them", || assert!(client.read(0, 4096).unwrap() == piece[..4096]));
    if clients <= 40 {
        assert!(client.read(0, piece.len()).unwrap() == piece);
    }
    drop(client);
    assert!(server.terminate().success());
}

/// Clients of either protocol that read nothing hold up those of the other one as little as their
/// own.
#[test]
fn clients_of_a_protocol_do_not_wait_for_those_of_the_other_one_that_read_nothing() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let connect = || NbdClient::connect(server.address_of("nbd"), "disk");
    let (mut disk, mut client, piece) = (connect(), server.client(), noise(7, 8 * MIB));
    assert_eq!(disk.write(0, &piece), 0);
    assert!(client.set(b"large", &piece).is_ok());
    let unread_exports: Vec<NbdClient> = (0..40)
        .map(|_| {
            let mut unread = connect();
            for _ in 0..8 {
                unread.send(READ, 0, 0, piece.len() as u32, &[]).unwrap();
            }
            unread
        })
        .collect();
    let commands: &[&[&[u8]]] =
        &[&[b"PING"], &[b"SET", b"one", b"1"], &[b"GET", b"one"], &[b"INFO"]];
    let small = |client: &mut Client, disk: &mut NbdClient| {
        for words in commands {
            let what = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
            shortest(&what, || assert_eq!(client.call(words).error(), None, "{what}"));
        }
        shortest("INFO in EXEC", || {
            for words in [&[&b"MULTI"[..]], &[&b"INFO"[..]], &[&b"EXEC"[..]]] {
                assert_eq!(client.call(words).error(), None);
            }
        });
        shortest("a read", || assert!(disk.read(0, 4096).unwrap() == piece[..4096]));
        shortest("a write", || assert_eq!(disk.write(32 << 20, &piece[..4096]), 0));
    };
    small(&mut client, &mut disk);
    let unread = leave_unread(&server, 40);
    small(&mut client, &mut disk);
    drop(unread_exports);
    small(&mut client, &mut disk);
    drop((unread, disk));
    assert!(server.terminate().success());
}

#[test]
fn small_requests_to_a_volume_do_not_wait_for_8_clients_that_read_nothing() {
    small_requests_to_a_volume_are_answered(8);
}

#[test]
fn small_requests_to_a_volume_do_not_wait_for_40_clients_that_read_nothing() {
    small_requests_to_a_volume_are_answered(40);
}

#[test]
fn small_requests_to_a_volume_do_not_wait_for_400_clients_that_read_nothing() {
    small_requests_to_a_volume_are_answered(400);
}
