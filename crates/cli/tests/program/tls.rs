//! TLS from the clients' side.

use crate::support::certificates::{Authority, Identity};
use crate::support::clients::{pythons, skip};
use crate::support::program::{Backend, format_with, said, softflash};
use crate::support::server::Server;
use crate::support::tls::TlsClient;
use rustls::version::{TLS12, TLS13};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// A server with TLS, and the files that its clients need.
struct Secure {
    server: Server,
    authority: Authority,
    identity: Identity,
    client: Identity,
    _directory: tempfile::TempDir,
}

fn secure(more: &[&str]) -> Secure {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format_with(&data, Backend::File, 512 * MIB, &["--units", "4", "--shards", "2"]);
    let authority = Authority::new(directory.path(), "authority");
    let (identity, client) = (authority.sign("server"), authority.sign("client"));
    let mut arguments = vec!["--memory", "64MiB", "--tls-port", "0", "--tls-cert"];
    arguments.extend([text(&identity.certificate), "--tls-key", text(&identity.key)]);
    if more.contains(&"--tls-client-auth") {
        arguments.extend(["--tls-ca", text(&authority.certificate)]);
    }
    arguments.extend(more);
    let server = Server::start(&data, &arguments);
    Secure { server, authority, identity, client, _directory: directory }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn both_versions_are_spoken_and_large_values_pass() {
    let secure = secure(&[]);
    let address = secure.server.address_of("tls");
    for version in [&TLS12, &TLS13] {
        let mut client = TlsClient::connect(address, &secure.authority, None, &[version]);
        assert_eq!(client.call(&[b"PING"]).unwrap(), "+PONG\r\n");
        let value = crate::support::noise(7, 5 << 20);
        let set = crate::support::resp::encode(&[b"SET", b"k", &value]);
        assert_eq!(client.exchange(&set, 5).unwrap(), b"+OK\r\n");
        let header = format!("${}\r\n", value.len());
        let get = crate::support::resp::encode(&[b"GET", b"k"]);
        let got = client.exchange(&get, header.len() + value.len() + 2).unwrap();
        assert!(got[header.len()..].starts_with(&value), "{version:?}");
        // Also many small ones in a pipeline.
        let pings = b"PING\r\n".repeat(5000);
        assert_eq!(client.exchange(&pings, 7 * 5000).unwrap(), b"+PONG\r\n".repeat(5000));
        // An idle connection is still usable.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(client.call(&[b"ECHO", b"a"]).unwrap(), "$1\r\na\r\n");
    }
    // The plain port serves the same data.
    assert_eq!(secure.server.client().get(b"k").unwrap().len(), 5 << 20);
    assert!(secure.server.terminate().success());
}

#[test]
fn clients_show_a_certificate_where_they_must() {
    let versions = [&TLS12, &TLS13];
    let ping: &[&[u8]] = &[b"PING"];
    let temp = tempfile::tempdir().unwrap();
    let foreign = Authority::new(temp.path(), "foreign").sign("other");
    for (whether, without, with_foreign) in
        [("no", true, true), ("optional", true, false), ("required", false, false)]
    {
        let secure = secure(&["--tls-client-auth", whether]);
        let address = secure.server.address_of("tls");
        for version in versions {
            let works = |identity: Option<&Identity>| {
                TlsClient::connect(address, &secure.authority, identity, &[version])
                    .call(ping)
                    .is_ok_and(|reply| reply == "+PONG\r\n")
            };
            assert!(works(Some(&secure.client)), "{whether}: a certificate of the authority");
            assert_eq!(works(None), without, "{whether}: none");
            assert_eq!(works(Some(&foreign)), with_foreign, "{whether}: of another authority");
        }
        assert!(secure.server.terminate().success());
    }
}

#[test]
fn the_plain_port_can_be_off_and_input_without_tls_is_refused() {
    let secure = secure(&["--resp", "off"]);
    assert!(!secure.server.ready.contains("resp="), "{}", secure.server.ready);
    let address = secure.server.address_of("tls");
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+PONG"), "{answer:?}");
    // A client that starts a handshake and does not continue has five seconds.
    let started = Instant::now();
    let mut silent = TcpStream::connect(address).unwrap();
    silent.write_all(&[0x16, 3, 1]).unwrap();
    assert_eq!(silent.read(&mut [0; 10]).unwrap_or(0), 0);
    assert!((4..15).contains(&started.elapsed().as_secs()), "after {:?}", started.elapsed());
    let mut client = TlsClient::connect(address, &secure.authority, None, &[&TLS13]);
    let port = client.call(&[b"CONFIG", b"GET", b"port"]).unwrap();
    assert!(port.ends_with("$1\r\n0\r\n"), "{port}");
    assert!(secure.server.terminate().success());
}

#[test]
fn certificates_are_read_again_at_sighup() {
    let secure = secure(&[]);
    let address = secure.server.address_of("tls");
    let connect = || {
        let mut client = TlsClient::connect(address, &secure.authority, None, &[&TLS13]);
        assert_eq!(client.call(&[b"PING"]).unwrap(), "+PONG\r\n");
        client
    };
    let mut old = connect();
    let first = old.server_certificate();
    // An invalid certificate changes nothing, and the server reports it.
    let good = fs::read(&secure.identity.certificate).unwrap();
    fs::write(&secure.identity.certificate, "not a certificate").unwrap();
    secure.server.signal(libc::SIGHUP);
    secure.server.await_said("server.crt");
    assert_eq!(connect().server_certificate(), first);
    fs::write(&secure.identity.certificate, good).unwrap();
    let renewed = secure.authority.sign("server");
    assert_eq!(renewed.certificate, secure.identity.certificate);
    secure.server.signal(libc::SIGHUP);
    wait_for(|| connect().server_certificate() != first);
    assert_eq!(old.call(&[b"PING"]).unwrap(), "+PONG\r\n", "what was connected stays");
    assert!(secure.server.terminate().success());
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn files_that_are_no_good_are_named_with_the_reason() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 * MIB, &["--units", "4"]);
    let authority = Authority::new(temp.path(), "authority");
    let (server, other) = (authority.sign("server"), authority.sign("other"));
    let garbage = temp.path().join("garbage.pem");
    fs::write(&garbage, "-----BEGIN PRIVATE KEY-----\nmarker-of-a-key\n").unwrap();
    let missing = PathBuf::from("/nowhere/server.crt");
    let cases: [(&Path, &Path, &[&str], &[&str]); 6] = [
        (&missing, &server.key, &[], &["/nowhere/server.crt", "No such file"]),
        (&server.certificate, &garbage, &[], &["garbage.pem", "PEM"]),
        (&server.key, &server.key, &[], &["server.key", "no certificate"]),
        (&server.certificate, &server.certificate, &[], &["server.crt", "no private key"]),
        (&server.certificate, &other.key, &[], &["server.crt with", "other.key"]),
        (&server.certificate, &server.key, &["--tls-client-auth", "required"], &["--tls-ca"]),
    ];
    for (certificate, key, more, words) in cases {
        let mut arguments =
            vec!["serve", "--data", text(&data), "--resp", "off", "--tls-port", "0"];
        arguments.extend(["--tls-cert", text(certificate), "--tls-key", text(key)]);
        arguments.extend(more);
        let output = softflash(&arguments);
        let said = said(&output);
        assert!(!output.status.success(), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert!(!said.contains("marker-of-a-key"), "{said}");
    }
    let nowhere = softflash(["serve", "--data", text(&data), "--resp", "off"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", said(&nowhere));
    assert!(said(&nowhere).contains("--tls-port"));
}

#[test]
fn redis_cli_speaks_tls_with_it() {
    let help = Command::new("redis-cli").arg("--help").output();
    let has_tls = help.is_ok_and(|output| said(&output).contains("--tls"));
    if !has_tls {
        return skip("a redis-cli with TLS");
    }
    let secure = secure(&["--tls-client-auth", "required"]);
    let port = secure.server.address_of("tls").port().to_string();
    let ask = |words: &[&str]| {
        let Identity { certificate, key } = &secure.client;
        let output = Command::new("redis-cli")
            .args(["-h", "127.0.0.1", "-p", &port, "--tls", "--cacert"])
            .args([text(&secure.authority.certificate), "--cert", text(certificate)])
            .args(["--key", text(key)])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    assert_eq!(ask(&["SET", "k", "v"]), "OK");
    assert_eq!(ask(&["GET", "k"]), "v");
    assert_eq!(ask(&["-3", "ACL", "WHOAMI"]), "default");
    assert!(secure.server.terminate().success());
}

const SESSION: &str = r#"
import sys, redis
port, authority, certificate, key = sys.argv[1:]
r = redis.Redis(host="localhost", port=int(port), ssl=True, ssl_ca_certs=authority,
                ssl_certfile=certificate, ssl_keyfile=key)
r.acl_setuser("ann", enabled=True, passwords=["+pw"], keys=["a:*"], categories=["+@all", "-@admin"])
assert r.acl_whoami() == "default"
assert set(r.acl_users()) == {"default", "ann"}
assert "ann" in " ".join(r.acl_list())
user = r.acl_getuser("ann")
assert "on" in user["flags"] and "+@all" in user["categories"], user
ann = redis.Redis(host="localhost", port=int(port), username="ann", password="pw", ssl=True,
                  ssl_ca_certs=authority, ssl_certfile=certificate, ssl_keyfile=key)
assert ann.set("a:1", b"\x00\xff" * 500000)
assert ann.get("a:1") == b"\x00\xff" * 500000
for forbidden in (lambda: ann.get("b:1"), lambda: ann.acl_list()):
    try:
        forbidden()
        raise SystemExit("that was not allowed")
    except redis.exceptions.NoPermissionError:
        pass
try:
    redis.Redis(host="localhost", port=int(port), username="ann", password="no", ssl=True,
                ssl_ca_certs=authority, ssl_certfile=certificate, ssl_keyfile=key).ping()
    raise SystemExit("a wrong password was right")
except redis.exceptions.RedisError as error:
    # redis-py 8 raises AuthenticationError without the code WRONGPASS.
    assert "invalid username-password pair" in str(error), error
assert r.acl_log()[0]["reason"] == "auth"
assert r.acl_save() and r.acl_load()
print("done")
"#;

#[test]
fn redis_py_speaks_tls_with_it_and_knows_its_users() {
    let pythons = pythons();
    if pythons.is_empty() {
        return skip("redis-py");
    }
    let secure = secure(&["--tls-client-auth", "required"]);
    let port = secure.server.address_of("tls").port().to_string();
    let Identity { certificate, key } = &secure.client;
    for python in pythons {
        let output = Command::new(&python)
            .args(["-c", SESSION, &port, text(&secure.authority.certificate)])
            .args([text(certificate), text(key)])
            .output()
            .unwrap();
        let said = said(&output);
        assert!(output.status.success() && said.contains("done"), "{python}: {said}");
    }
    assert!(secure.server.terminate().success());
}
