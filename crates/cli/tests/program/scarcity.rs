//! What is scarce: descriptors, room for a device. Memory has tests of its own (`memory.rs`), and so have
//! a device that is full (`real_limits.rs`) and a file system below it that is (`file_faults.rs` of the store).

use crate::support::program::{Backend, check_clean, format, said, softflash};
use crate::support::server::Server;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// A new client, if its PING is answered; otherwise it must be told why, or see the connection end, soon.
fn ping(server: &Server) -> Option<TcpStream> {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // Who is refused may find the connection closed already.
    let _ = socket.write_all(b"PING\r\n");
    let mut line = String::new();
    match BufReader::new(&socket).read_line(&mut line) {
        Ok(_) if line == "+PONG\r\n" => return Some(socket),
        Ok(_) => assert!(
            ["", "-ERR max number of clients reached\r\n"].contains(&line.as_str()),
            "{line}"
        ),
        // The refusal is lost with the connection where it is closed before the PING was read.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    None
}

#[test]
fn without_descriptors_clients_are_told_so_and_others_are_served() {
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
    assert!(friend.set(b"k", b"after").is_ok(), "who is there is served");
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
