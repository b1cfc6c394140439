//! HTTP on the port for Redis commands (cross-protocol request forgery), and what exporters read.

use crate::support::certificates::Authority;
use crate::support::program::{Backend, format_with};
use crate::support::server::Server;
use crate::support::tls::TlsClient;
use rustls::version::TLS13;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

const REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\nSET p 1\r\nSHUTDOWN\r\n";

fn format(data: &Path) {
    format_with(data, Backend::File, 512 << 20, &["--units", "4", "--shards", "2"]);
}

/// What the server sends until it closes the connection.
fn until_closed(address: SocketAddr, input: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may close the connection before everything is sent.
    let _ = socket.write_all(input);
    let mut received = Vec::new();
    match socket.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8_lossy(&received).into_owned()
}

#[test]
fn a_web_page_cannot_run_commands() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let authority = Authority::new(temp.path(), "authority");
    let identity = authority.sign("server");
    let (certificate, key) = (&identity.certificate, &identity.key);
    let server = Server::start(
        &data,
        &[
            "--memory",
            "64MiB",
            "--tls-port",
            "0",
            "--tls-cert",
            certificate.to_str().unwrap(),
            "--tls-key",
            key.to_str().unwrap(),
        ],
    );
    for _ in 0..20 {
        assert_eq!(until_closed(server.address(), REQUEST), "");
    }
    let get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET p 1\r\n";
    let replies = until_closed(server.address(), get);
    assert!(replies.is_empty() || replies.starts_with("-ERR wrong number"), "{replies}");
    assert!(!replies.contains("OK"), "{replies}");
    let mut secure = TlsClient::connect(server.address_of("tls"), &authority, None, &[&TLS13]);
    assert!(secure.exchange(REQUEST, 1).is_err(), "closed without a reply");
    assert_eq!(server.client().get(b"p"), None);
    let lines = server.said().matches("a client sent HTTP to the port for Redis commands").count();
    assert_eq!(lines, 1, "one line a minute: {}", server.said());
    assert!(server.terminate().success(), "nobody has shut it down");
}

#[test]
fn exporters_find_their_fields_and_they_are_true() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    for number in 0..2000_u32 {
        client.set(format!("key{number}").as_bytes(), b"value");
    }
    client.get(b"key1");
    client.get(b"absent");
    let info = client.call(&[b"INFO", b"everything"]).text();
    let fields: BTreeMap<&str, &str> =
        info.lines().filter_map(|line| line.split_once(':')).collect();
    let number = |name: &str| -> f64 {
        let value = fields.get(name).unwrap_or_else(|| panic!("no {name} in {info}"));
        value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
    };
    for name in ["used_memory_human", "used_memory_peak_human", "total_system_memory_human"] {
        assert!(fields[name].ends_with(['K', 'M', 'G', 'T']), "{name}: {}", fields[name]);
    }
    assert_eq!((number("keyspace_hits"), number("keyspace_misses")), (1.0, 1.0));
    for name in ["expired_keys", "evicted_keys", "cluster_enabled", "master_repl_offset"] {
        assert_eq!(number(name), 0.0, "{name}");
    }
    let rss = server.resident_bytes() as f64;
    assert!((rss / 2.0..=rss * 2.0).contains(&number("used_memory")), "{rss}");
    assert!(number("used_memory_peak") >= number("used_memory"));
    assert!(number("total_system_memory") > number("used_memory_peak"));
    assert_eq!(number("mem_fragmentation_ratio"), 1.0);
    assert!(number("used_cpu_sys") + number("used_cpu_user") > 0.0);
    // Linux divides the time of a process and that of each thread into user and system by their own
    // ratios, and cuts each to hundredths: only the sums can be compared.
    let of_threads = number("used_cpu_sys_main_thread") + number("used_cpu_user_main_thread");
    assert!(of_threads > 0.0);
    // The server starts no other process.
    assert_eq!(number("used_cpu_sys_children") + number("used_cpu_user_children"), 0.0);
    let of_process = number("used_cpu_sys") + number("used_cpu_user");
    assert!(of_threads <= of_process + 0.021, "{of_threads} of {of_process}");
    assert!(
        number("total_reads_processed") >= 2002.0 && number("total_writes_processed") >= 2001.0
    );
    assert_eq!((fields["maxmemory_policy"], fields["run_id"].len()), ("noeviction", 40));
    // A second and a half later nothing is left of the commands' rate.
    std::thread::sleep(Duration::from_millis(200));
    let rate = |client: &mut crate::support::resp::Client, name: &str| -> f64 {
        let info = client.call(&[b"INFO", b"stats"]).text();
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().trim().parse().unwrap()
    };
    assert!(rate(&mut client, "instantaneous_ops_per_sec") > 0.0);
    assert!(rate(&mut client, "instantaneous_input_kbps") > 0.0);
    std::thread::sleep(Duration::from_millis(2500));
    assert!(rate(&mut client, "instantaneous_ops_per_sec") <= 5.0);
    assert!(server.terminate().success());
}
