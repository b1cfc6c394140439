//! Scarce resources: descriptors, space for a device, memory of the machine. The server's memory
//! budget has tests of its own (`memory.rs`), and so have a full device (`real_limits.rs`) and a
//! full file system below it (`file_faults.rs` of the store).

use crate::support::program::{Backend, check_clean, format, said, softflash};
use crate::support::server::Server;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// A new client, if its PING is answered; otherwise it must soon get an error, or see the
/// connection end.
fn ping(server: &Server) -> Option<TcpStream> {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A refused client may find the connection closed already.
    let _ = socket.write_all(b"PING\r\n");
    let mut line = String::new();
    match BufReader::new(&socket).read_line(&mut line) {
        Ok(_) if line == "+PONG\r\n" => return Some(socket),
        Ok(_) => assert!(
            ["", "-ERR max number of clients reached\r\n"].contains(&line.as_str()),
            "{line}"
        ),
        // The refusal is lost if the connection is closed before the PING was read.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    None
}

#[test]
fn without_descriptors_clients_get_an_error_and_others_are_served() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let server = Server::start_under("ulimit -n 150", &data, &["--memory", "32MiB"]);
    server.await_said("open files");
    let mut friend = server.client();
    assert!(friend.set(b"k", b"before").is_ok());
    let admitted: Vec<_> = (0..200).filter_map(|_| ping(&server)).collect();
    let refused = 200 - admitted.len();
    assert!(
        admitted.len() >= 10 && refused >= 50,
        "{} admitted, {refused} refused",
        admitted.len()
    );
    assert!(friend.set(b"k", b"after").is_ok(), "connected clients are served");
    drop(admitted);
    let started = Instant::now();
    while ping(&server).is_none() {
        assert!(started.elapsed() < Duration::from_secs(10), "places are not given away");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(friend.get(b"k").unwrap(), b"after");
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn the_limit_of_descriptors_is_raised_as_far_as_it_may() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let arguments = ["--memory", "32MiB", "--max-clients", "300"];
    let server = Server::start_under("ulimit -S -n 100", &data, &arguments);
    let clients: Vec<_> = (0..200).map(|_| ping(&server)).collect();
    assert!(clients.iter().all(Option::is_some), "a client was refused");
    assert!(server.terminate().success());
}

/// Values that are different for each key and do not compress.
fn value(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) + 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..64 << 10).map(|_| next()).collect()
}

#[test]
fn where_the_machine_has_less_memory_than_was_promised_nothing_acknowledged_is_lost() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 1024 * MIB);
    // The process may have 120 MiB and assumes 800: it fails in the middle of the load.
    // Values in the memtables: they take the most.
    let mut server = Server::start_under(
        "ulimit -d 122880",
        &data,
        &["--memory", "800MiB", "--value-threshold", "off"],
    );
    let mut client = server.client();
    let key = |number: u32| format!("key {number}").into_bytes();
    let mut is_written = |number: u32| {
        let reply = client.try_call(&[b"SET", &key(number), &value(number)]);
        reply.is_ok_and(|reply| reply.is_ok())
    };
    let acknowledged = (0..8000).take_while(|number| is_written(*number)).count() as u32;
    assert!((1..8000).contains(&acknowledged), "{acknowledged} written, and there was memory");
    assert!(!server.wait().success());
    let server = Server::start(&data, &["--memory", "100MiB"]);
    let mut client = server.client();
    for number in 0..acknowledged {
        assert!(
            client.get(&key(number)).unwrap() == value(number),
            "key {number} of {acknowledged}"
        );
    }
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn a_device_without_room_fails_with_words_and_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let output = softflash(["format", data.to_str().unwrap(), "--size", "900TiB", "--units", "4"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let left = fs::read_dir(&data).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "{said}");
    format(&data, Backend::File, 256 * MIB);
    check_clean(&data);
}
