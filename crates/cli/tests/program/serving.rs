//! Life cycle of a server: start, readiness, limits, signals, end.

use crate::support::http::get;
use crate::support::program::{Backend, check, check_clean, format, format_with};
use crate::support::resp::{Client, Reply};
use crate::support::server::Server;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// A data directory of two shards, so that requests cross threads.
fn two_shards(directory: &Path) {
    format_with(directory, Backend::File, 512 * MIB, &["--units", "4", "--shards", "2"]);
}

#[test]
fn a_first_start_makes_the_directory_and_later_ones_find_it() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    for round in 0..2_u8 {
        let server = Server::start(&data, &["--memory", "32MiB"]);
        let mut client = server.client();
        assert_eq!(client.call(&[b"DBSIZE"]).integer(), i64::from(round));
        assert!(client.set(&[round], b"value").is_ok());
        assert_eq!(client.call(&[b"PING"]), Reply::Simple("PONG".to_owned()));
        assert!(server.terminate().success());
    }
    check_clean(&data);
}

#[test]
fn shutdown_ends_the_server_as_sigterm_does() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    for how in [&[&b"SHUTDOWN"[..]][..], &[b"SHUTDOWN", b"NOSAVE"], &[b"SHUTDOWN", b"SAVE"]] {
        let mut server = Server::start(&data, &["--memory", "32MiB", "--durability", "30s"]);
        let mut client = server.client();
        let count = client.call(&[b"INCR", b"count"]).integer();
        assert!(client.try_call(how).is_err(), "the connection ends without a reply");
        assert!(server.wait().success());
        let server = Server::start(&data, &["--memory", "32MiB"]);
        let kept = server.client().get(b"count").unwrap();
        assert_eq!(kept, count.to_string().into_bytes());
        assert!(server.terminate().success());
    }
    check_clean(&data);
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut clients: Vec<_> = (0..50).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| assert!(client.set(b"k", b"v").is_ok()));
    // An incomplete request that will never be completed.
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nabc").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let started = Instant::now();
    assert!(server.terminate().success());
    assert!(started.elapsed() < Duration::from_secs(8), "took {:?}", started.elapsed());
    check_clean(&data);
}

#[test]
fn ctrl_c_ends_a_server_that_is_ending_at_once_with_1() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    let mut server = Server::start(&data, &["--memory", "64MiB", "--drain-timeout", "50s"]);
    let mut writer = server.client();
    let value = crate::support::noise(1, 16 << 20);
    assert!(writer.set(b"large", &value).is_ok());
    // A client that requests much and receives nothing keeps the server busy with its replies.
    let mut greedy = TcpStream::connect(server.address()).unwrap();
    greedy.write_all(&b"GET large\r\n".repeat(20)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    // Supervisors may send it twice: the second one has no effect.
    server.signal_term();
    server.signal_term();
    std::thread::sleep(Duration::from_millis(500));
    server.signal(libc::SIGINT);
    assert_eq!(server.wait().code(), Some(1));
    drop(greedy);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    assert_eq!(server.client().get(b"large").unwrap(), value, "what was acknowledged is there");
    assert!(server.terminate().success());
}

#[test]
fn too_many_clients_get_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    let server = Server::start(&data, &["--memory", "32MiB", "--max-clients", "5"]);
    let mut admitted: Vec<_> = (0..5).map(|_| server.client()).collect();
    admitted.iter_mut().for_each(|client| assert!(client.set(b"k", b"v").is_ok()));
    let mut answer = String::new();
    TcpStream::connect(server.address()).unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "-ERR max number of clients reached\r\n");
    admitted.pop();
    let started = Instant::now();
    while server.client().try_call(&[b"PING"]).is_err() {
        assert!(started.elapsed() < Duration::from_secs(5), "the place is not given away");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.terminate().success());
}

#[test]
fn unauthenticated_clients_have_little_time_and_less_memory() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    let file = temp.path().join("password");
    fs::write(&file, "open sesame\n").unwrap();
    let server =
        Server::start(&data, &["--memory", "32MiB", "--password-file", file.to_str().unwrap()]);
    let mut friend = server.client();
    assert!(friend.set(b"k", b"v").error().unwrap().starts_with("NOAUTH"));
    assert!(friend.call(&[b"AUTH", b"open barley"]).error().unwrap().starts_with("WRONGPASS"));
    assert!(friend.call(&[b"AUTH", b"open sesame"]).is_ok());
    assert!(friend.set(b"k", b"v").is_ok());

    let mut client = TcpStream::connect(server.address()).unwrap();
    client.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("unauthenticated bulk length"), "{answer}");

    let started = Instant::now();
    let mut silent = TcpStream::connect(server.address()).unwrap();
    assert_eq!(
        silent.read(&mut [0; 10]).unwrap(),
        0,
        "a silent client that has not authenticated is cut off"
    );
    let waited = started.elapsed();
    assert!((4..9).contains(&waited.as_secs()), "after {waited:?}");
    assert_eq!(friend.get(b"k").unwrap(), b"v", "a friend is not");
    assert!(server.terminate().success());
}

/// Without a directory the server creates one in the working directory, and prints only its memory
/// budget and the `ready` line to standard output.
#[test]
fn serve_needs_no_arguments() {
    let temp = tempfile::tempdir().unwrap();
    let mut child = Command::new(crate::support::program::binary())
        .args(["serve", "--resp", "127.0.0.1:0"])
        .current_dir(temp.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut memory, mut ready) = (String::new(), String::new());
    output.read_line(&mut memory).unwrap();
    assert!(memory.starts_with("memory="), "{memory}");
    output.read_line(&mut ready).unwrap();
    let address = ready.trim().strip_prefix("ready resp=").unwrap().parse().unwrap();
    let mut client = Client::connect(address);
    assert!(client.set(b"greeting", b"hello").is_ok());
    assert!(client.try_call(&[b"SHUTDOWN"]).is_err());
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "two lines and no more");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    for part in ["softflash-data", "16 units", "redis-cli"] {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
    assert!(temp.path().join("softflash-data/softflash.toml").exists());
}

/// The HTTP pages of a server; the address is in the ready line.
#[test]
fn http_shows_the_state() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let port: SocketAddr = server.ready.split("http=").nth(1).unwrap().trim().parse().unwrap();
    let mut client = server.client();
    for number in 0..100_u8 {
        assert!(client.set(&[number], b"value").is_ok());
    }
    assert!(get(port, "/health").ends_with(r#"{"status":"ok","writable":true}"#));
    let metrics = get(port, "/metrics");
    assert!(metrics.contains("\nsoftflash_shards 2\n"), "{metrics}");
    assert!(metrics.contains("\nsoftflash_store_keys 100\n"), "{metrics}");
    assert!(metrics.trim_end().ends_with("# EOF"));
    for line in [
        "softflash_command_duration_seconds_count{command=\"set\"} 100",
        "softflash_command_duration_seconds_bucket{le=\"+Inf\",command=\"set\"} 100",
        "softflash_command_errors_total{command=\"set\",reason=\"failed\"} 0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "`{line}` is not in {metrics}");
    }
    let body = |page: String| -> serde_json::Value {
        serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    assert_eq!(body(get(port, "/api/units")).as_array().unwrap().len(), 4);
    let stats = body(get(port, "/api/stats"));
    assert_eq!(stats["store"]["keys"], 100);
    assert!(stats["server"]["commands"].as_u64().unwrap() >= 100);
    assert!(server.terminate().success());
    assert_eq!(check(&data).report["keys"], 100);
}

#[test]
fn clients_see_the_durability_and_a_log_in_a_file_has_no_colours() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    for (durability, policy) in [("flash", "always"), ("1s", "everysec"), ("30s", "no")] {
        let arguments = ["--memory", "32MiB", "--durability", durability];
        let mut server = Server::start_under("export RUST_LOG=debug", &data, &arguments);
        let setting = server.client().call(&[b"CONFIG", b"GET", b"appendfsync"]);
        let bulk = |text: &str| Reply::Bulk(Some(text.into()));
        assert_eq!(setting, Reply::Array(vec![bulk("appendfsync"), bulk(policy)]), "{durability}");
        server.signal_term();
        assert!(server.wait().success());
        server.await_said("stopping");
        let said = server.said();
        assert!(said.contains(" INFO ") && !said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn pipelines_are_answered_in_order() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    two_shards(&data);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client: Client = server.client();
    let count = 5000_u32;
    for number in 0..count {
        let key = format!("key:{number}").into_bytes();
        client.send(&[b"SET", &key, &number.to_le_bytes()]).unwrap();
        client.send(&[b"GET", &key]).unwrap();
        // Replies must be read now and then, or both sides wait for each other.
        if number % 100 == 99 {
            for earlier in number - 99..=number {
                assert!(client.receive().unwrap().is_ok());
                let value = client.receive().unwrap().bulk().unwrap();
                assert_eq!(value, earlier.to_le_bytes());
            }
        }
    }
    assert!(server.terminate().success());
}
