//! `dump`, `load` and `record` by TLS.

use crate::support::certificates::{Authority, Identity, self_signed};
use crate::support::program::{Backend, binary, fails, format_with, said, softflash};
use crate::support::server::Server;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(arguments: &[&str]) {
    let output = softflash(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
}

/// A server that only speaks TLS, with further arguments.
fn serve(data: &Path, identity: &Identity, more: &[&str]) -> Server {
    let pair = [text(&identity.certificate), text(&identity.key)];
    let tls = ["--resp", "off", "--tls-port", "0", "--tls-cert", pair[0], "--tls-key", pair[1]];
    Server::start(data, &[&["--memory", "32MiB"][..], &tls, more].concat())
}

fn format(data: &Path) {
    format_with(data, Backend::File, 512 * MIB, &["--units", "4", "--shards", "2"]);
}

#[test]
fn keys_are_dumped_and_loaded_and_requests_recorded_by_tls() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let plain = Server::start(&data, &["--memory", "32MiB"]);
    let value = crate::support::noise(3, 5 << 20);
    assert!(plain.client().set(b"large", &value).is_ok());
    for number in 0..2000_u32 {
        assert!(plain.client().set(&number.to_be_bytes(), b"value").is_ok());
    }
    assert!(plain.terminate().success());

    let authority = Authority::new(temp.path(), "authority");
    let (identity, client) = (authority.sign("server"), authority.sign("client"));
    let password = temp.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    let ca = text(&authority.certificate);
    let required = ["--tls-ca", ca, "--password-file", text(&password)];
    let server = serve(&data, &identity, &required);
    let port = server.address_of("tls").port();
    let address = format!("localhost:{port}");
    let shown = ["--tls-cert", text(&client.certificate), "--tls-key", text(&client.key)];
    let access = [&["--tls", "--tls-ca", ca, "--password-file", text(&password)][..], &shown];
    let access = access.concat();
    let dump = temp.path().join("dump");
    run(&[&["dump", "--resp", &address, text(&dump)][..], &access].concat());
    run(&[&["load", "--resp", &address, text(&dump)][..], &access].concat());
    let trace = temp.path().join("trace");
    let record = ["record", text(&trace), "--connect", &address, "--duration", "50ms"];
    run(&[&record[..], &access].concat());
    assert!(trace.exists());
    assert!(server.terminate().success());

    let second = temp.path().join("second");
    format(&second);
    run(&["load", text(&second), text(&dump)]);
    let copy = Server::start(&second, &["--memory", "32MiB"]);
    assert_eq!(copy.client().call(&[b"DBSIZE"]).integer(), 2001);
    assert_eq!(copy.client().get(b"large").unwrap(), value);
    assert!(copy.terminate().success());
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused_with_the_remedy() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let authority = Authority::new(temp.path(), "authority");
    let (identity, foreign) = (authority.sign("server"), Authority::new(temp.path(), "foreign"));
    let server = serve(&data, &identity, &["--tls-ca", text(&authority.certificate)]);
    let port = server.address_of("tls").port();
    let (address, file) = (format!("localhost:{port}"), temp.path().join("dump"));
    let dump = |more: &[&str], parts: &[&str]| {
        let arguments = [&["dump", "--resp", &address, text(&file)][..], more].concat();
        fails(1, &arguments, parts);
    };
    let (ca, other) = (text(&authority.certificate), text(&foreign.certificate));
    dump(&[], &["--tls"]);
    dump(&["--tls", "--tls-ca", other], &["UnknownIssuer", "--tls-ca"]);
    dump(
        &["--tls", "--tls-ca", ca, "--tls-name", "other.example"],
        &["other.example", "--tls-name"],
    );
    dump(&["--tls", "--tls-ca", ca], &["requires a certificate", "--tls-cert"]);
    dump(&["--tls", "--tls-ca", text(&file)], &[text(&file)]);
    assert!(server.terminate().success());
    assert!(!file.exists());

    let plain = Server::start(&data, &["--memory", "32MiB"]);
    let address = plain.address().to_string();
    let arguments = ["dump", "--resp", &address, text(&file), "--tls", "--tls-ca", ca];
    fails(1, &arguments, &["port for TLS"]);
    fails(2, &["dump", text(&data), text(&file), "--tls"], &["--resp"]);
    fails(2, &["dump", "--resp", &address, text(&file), "--tls-ca", ca], &["--tls"]);
    assert!(plain.terminate().success());
}

#[test]
fn a_self_signed_certificate_is_trusted_if_it_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    for is_authority in [false, true] {
        let identity = self_signed(temp.path(), &format!("own-{is_authority}"), is_authority);
        let server = serve(&data, &identity, &[]);
        let address = server.address_of("tls").to_string();
        let file = temp.path().join("dump");
        let dump = ["dump", "--force", "--resp", &address, text(&file), "--tls", "--tls-ca"];
        run(&[&dump[..], &[text(&identity.certificate)]].concat());
        server.await_said("connect with");
        let hint = format!("--cacert {}", text(&identity.certificate));
        assert!(server.said().contains(&hint), "{}", server.said());
        assert!(server.terminate().success());
    }
}

#[test]
fn without_a_file_the_authorities_of_the_system_are_trusted() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data);
    let authority = Authority::new(temp.path(), "authority");
    let server = serve(&data, &authority.sign("server"), &[]);
    let address = server.address_of("tls").to_string();
    let file = temp.path().join("dump");
    let dump = |system: &Path| {
        let mut dump = Command::new(binary());
        dump.args(["dump", "--tls", "--resp", &address, text(&file), "--force"]);
        dump.env("SSL_CERT_FILE", system).output().unwrap()
    };
    let trusted = dump(&authority.certificate);
    assert!(trusted.status.success(), "{}", said(&trusted));
    let foreign = dump(&Authority::new(temp.path(), "foreign").certificate);
    assert!(said(&foreign).contains("UnknownIssuer"), "{}", said(&foreign));
    let missing = dump(&temp.path().join("missing.crt"));
    assert!(said(&missing).contains("missing.crt"), "{}", said(&missing));
    assert!(server.terminate().success());
}
