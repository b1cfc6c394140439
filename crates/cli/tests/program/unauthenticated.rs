//! Unauthenticated and hostile clients: how much they can take from other clients.

use crate::support::clients::skip;
use crate::support::http;
use crate::support::program::{Backend, format_with, said, softflash};
use crate::support::resp::{Client, encode};
use crate::support::server::Server;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PASSWORD: &str = "open sesame";

fn format(data: &Path) {
    format_with(data, Backend::File, 512 * MIB, &["--units", "4", "--shards", "2"]);
}

/// A server with a password, in a directory of its own.
fn locked(more: &[&str]) -> (Server, tempfile::TempDir) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let file = temp.path().join("password");
    fs::write(&file, PASSWORD).unwrap();
    let mut arguments = vec!["--memory", "64MiB", "--password-file", file.to_str().unwrap()];
    arguments.extend(more);
    (Server::start(&data, &arguments), temp)
}

fn friend(server: &Server) -> Client {
    let mut client = server.client();
    assert!(client.call(&[b"AUTH", PASSWORD.as_bytes()]).is_ok());
    client
}

#[test]
fn unauthenticated_clients_of_one_network_are_counted_and_hold_little() {
    let (server, _temp) = locked(&["--max-unauthenticated", "150"]);
    let mut friend = friend(&server);
    assert!(friend.set(b"k", b"v").is_ok());
    let before = server.resident_bytes();
    // Each sends the largest request that it may, except for its last byte.
    let word = "x".repeat(5400);
    let mut request = encode(&[word.as_bytes(), word.as_bytes(), word.as_bytes()]);
    request.truncate(request.len() - 3);
    let connect = || {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&request).unwrap();
        stream
    };
    let clients: Vec<TcpStream> = (0..150).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_secs(1));
    let each = server.resident_bytes().saturating_sub(before) / 150;
    eprintln!("{each} bytes for each unauthenticated client");
    assert!(each <= 64 << 10, "{each} bytes for each");
    let mut refused = String::new();
    TcpStream::connect(server.address()).unwrap().read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("-ERR max number of clients reached"), "{refused}");
    assert_eq!(friend.get(b"k").unwrap(), b"v", "friends do not count");
    // They are disconnected after five seconds, even if they send a byte now and then.
    let started = Instant::now();
    for mut stream in clients {
        while started.elapsed() < Duration::from_secs(3) {
            stream.write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
    assert!(started.elapsed() > Duration::from_secs(3));
    // The slots are free again.
    let mut again = server.client();
    assert!(again.call(&[b"AUTH", PASSWORD.as_bytes()]).is_ok());
    assert!(server.terminate().success());
}

#[test]
fn a_flood_of_wrong_passwords_does_not_hold_up_friends() {
    let (server, _temp) = locked(&[]);
    let mut friend = friend(&server);
    assert!(friend.set(b"k", b"v").is_ok());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let tried = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..30 {
            let (server, stop, tried) = (&server, &stop, &tried);
            scope.spawn(move || {
                use std::sync::atomic::Ordering::Relaxed;
                while !stop.load(Relaxed) {
                    let mut client = Client::connect(server.address());
                    let guess = format!("guess{number}");
                    for turn in 0..4 {
                        match client.try_call(&[b"AUTH", guess.as_bytes()]) {
                            Ok(reply) => {
                                assert!(
                                    reply.error().unwrap().starts_with("WRONGPASS"),
                                    "{reply:?}"
                                );
                                assert!(turn < 3, "three tries and no more");
                                tried.fetch_add(1, Relaxed);
                            }
                            Err(_) => break,
                        }
                        if stop.load(Relaxed) {
                            return;
                        }
                    }
                }
            });
        }
        let mut slowest = Duration::ZERO;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(4) {
            let asked = Instant::now();
            assert_eq!(friend.get(b"k").unwrap(), b"v");
            slowest = slowest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        eprintln!("slowest answer to a friend: {slowest:?}");
        // Two passwords are checked at a time; the machine may have no more cores than that.
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    });
    let tried = tried.load(std::sync::atomic::Ordering::Relaxed);
    eprintln!("{tried} passwords were tried");
    assert!(tried >= 10, "{tried}");
    let metrics = http::get(server.address_of("http"), "/metrics");
    assert!(metrics.contains("softflash_authentication_failures_total"), "{metrics}");
    assert!(server.terminate().success());
}

#[test]
fn lengths_that_are_only_said_take_no_memory() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let server = Server::start(&data, &["--memory", "256MiB"]);
    assert!(server.client().set(b"k", b"v").is_ok());
    let before = server.resident_bytes();
    let said: [&[u8]; 4] = [
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$60000000\r\n",
        b"*1048576\r\n$4\r\nMGET\r\n",
        b"*1048576\r\n",
        b"*2\r\n$65536\r\n",
    ];
    let held: Vec<TcpStream> = said
        .iter()
        .map(|header| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(header).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let more = server.resident_bytes().saturating_sub(before);
    eprintln!("{more} bytes for what was only said");
    // More than 60 MB; writing one byte of a large page allocates all of it.
    assert!(more <= 6 * MIB, "{more} bytes");
    drop(held);
    assert!(server.terminate().success());
}

#[test]
fn numbers_that_are_far_too_large_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    assert!(client.set(b"k", b"value").is_ok());
    let huge = i64::MAX.to_string();
    let least = i64::MIN.to_string();
    for line in [
        "SETRANGE k MAX x",
        "SETRANGE k 67108864 x",
        "SETRANGE k -1 x",
        "GETRANGE k MIN MAX",
        "GETRANGE k MAX MIN",
        "EXPIRE k MAX",
        "PEXPIREAT k MAX",
        "SETEX n MAX v",
        "INCRBY k MAX",
        "DECRBY n MIN",
        "SCAN MAX COUNT MAX",
        "SCAN 0 COUNT MAX",
        "SLOWLOG GET MAX",
        "ACL LOG MAX",
        "ACL GENPASS MAX",
        "FLASH.RECORD START CAPACITY MAX",
        "FLASH.RECORD READ COUNT MAX",
        "CLIENT LIST ID MAX",
        "CLIENT KILL ID MAX",
        "CONFIG SET slowlog-max-len MAX",
        "SELECT MAX",
        "HELLO MAX",
        "OBJECT ENCODING k",
        "COMMAND GETKEYS MSET a",
    ] {
        let line = line.replace("MAX", &huge).replace("MIN", &least);
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        client.send(&words).unwrap();
        client.receive().unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    for header in [
        "*1048577\r\n",
        "*99999999999999999999\r\n",
        "*2147483648\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$9223372036854775807\r\n",
        "*1\r\n$18446744073709551615\r\n",
        "*1\r\n$4294967296\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(header.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("-ERR Protocol error: invalid"), "{header:?}: {answer}");
    }
    // DEBUG SLEEP affects only the client itself, on any thread.
    let mut sleepers: Vec<(Client, i64)> = (0..4)
        .map(|_| {
            let mut sleeper = server.client();
            let id = sleeper.call(&[b"CLIENT", b"ID"]).integer();
            sleeper.send(&[b"DEBUG", b"SLEEP", b"1e18"]).unwrap();
            (sleeper, id)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..4 {
        assert_eq!(server.client().call(&[b"STRLEN", b"k"]).integer(), 5);
    }
    // And the server does not wait for its end.
    for (sleeper, id) in &mut sleepers {
        let id = id.to_string();
        assert_eq!(client.call(&[b"CLIENT", b"KILL", b"ID", id.as_bytes()]).integer(), 1);
        assert!(sleeper.receive().is_err());
    }
    assert!(server.terminate().success());
}

/// A client that does not receive its replies is disconnected when others wait for the memory.
#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 1024 * MIB, &["--units", "4", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let value = crate::support::noise(3, 8 << 20);
    let mut client = server.client();
    for number in 0..8_u8 {
        assert!(client.set(&[b'k', number], &value).is_ok());
    }
    let mut greedy: Vec<TcpStream> = (0..6)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            for number in 0..8_u8 {
                stream.write_all(&encode(&[b"GET", &[b'k', number]])).unwrap();
            }
            stream
        })
        .collect();
    // All of them wait before another client requests the same: it gets it once they are
    // disconnected, one after the other.
    std::thread::sleep(Duration::from_millis(500));
    let started = Instant::now();
    assert_eq!(client.get(&[b'k', 1]).unwrap(), value);
    let waited = started.elapsed();
    eprintln!("an honest client waited for {waited:?}");
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let timed_out = || {
        let metrics = http::get(server.address_of("http"), "/metrics");
        let name = "softflash_connections_timed_out_total ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse::<u64>().unwrap()
    };
    while timed_out() == 0 {
        assert!(started.elapsed() < Duration::from_secs(90), "no client is cut off");
        std::thread::sleep(Duration::from_millis(200));
    }
    // The disconnected client sees the end before all of its replies.
    let cut = greedy.iter_mut().any(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let (mut all, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return all < 8 * value.len(),
                Ok(count) => all += count,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return true,
                Err(_) => return false,
            }
        }
    });
    assert!(cut, "some find their connection closed");
    drop(greedy);
    assert!(server.terminate().success());
}

/// An address of this machine that other machines could reach, if it has one.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Sends nothing: the kernel only chooses the source address.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn without_a_password_other_machines_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let start = ["serve", "--data", data.to_str().unwrap(), "--resp", "0.0.0.0:0"];
    let refused = softflash(start);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    for words in ["0.0.0.0:0", "--password-file", "--protected-mode no"] {
        assert!(said(&refused).contains(words), "{words}: {}", said(&refused));
    }
    // An ACL file that leaves `default` open does not help.
    let users = data.join("users.acl");
    fs::write(&users, "user ann on >pw ~* +@all\n").unwrap();
    assert!(said(&softflash(start)).contains("refusing to listen"));
    fs::write(&users, "user nobody on +nosuch\n").unwrap();
    let damaged = softflash(start);
    for words in ["users.acl: line 1", "Unknown command"] {
        assert!(said(&damaged).contains(words), "{}", said(&damaged));
    }
    fs::write(&users, "user default on >pw ~* +@all\n").unwrap();
    let server = Server::start(&data, &["--memory", "64MiB", "--resp", "0.0.0.0:0"]);
    server.await_said("unencrypted");
    let port = server.address().port();
    let mut admin = Client::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    assert!(admin.call(&[b"AUTH", b"pw"]).is_ok());
    let Some(outside) = outer_address() else {
        return skip("a network address that is not the loopback's");
    };
    let answer = || {
        let mut stream = TcpStream::connect((outside, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        let mut line = [0; 12];
        let count = stream.read(&mut line).unwrap();
        String::from_utf8_lossy(&line[..count]).into_owned()
    };
    assert!(answer().starts_with("-NOAUTH"), "{}", answer());
    // A client that removes the password of `default` at run time shuts out the others.
    assert!(admin.call(&[b"ACL", b"SETUSER", b"default", b"nopass"]).is_ok());
    assert!(answer().starts_with("-DENIED"), "{}", answer());
    let mut local = Client::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(local.call(&[b"EXISTS", b"k"]).integer(), 0);
    assert!(server.terminate().success());
    // Unless protected mode is off.
    fs::remove_file(&users).unwrap();
    let open = ["--memory", "64MiB", "--resp", "0.0.0.0:0", "--protected-mode", "no"];
    let server = Server::start(&data, &open);
    let mut stream = TcpStream::connect((outside, server.address().port())).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut line = [0; 7];
    stream.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"+PONG\r\n");
    assert!(server.terminate().success());
}
