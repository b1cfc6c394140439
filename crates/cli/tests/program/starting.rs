//! The start of a server: what it refuses, what that leaves behind, and what it tells people.

use crate::support::certificates::Authority;
use crate::support::clients::skip;
use crate::support::program::{Backend, binary, fails, format, said};
use crate::support::server::Server;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

#[test]
fn an_address_in_use_leaves_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let identity = Authority::new(temp.path(), "authority").sign("server");
    let certificates = [
        "--tls-cert",
        identity.certificate.to_str().unwrap(),
        "--tls-key",
        identity.key.to_str().unwrap(),
    ];
    let (missing, empty) = (temp.path().join("missing"), temp.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    for data in [&missing, &empty] {
        for (flag, more) in
            [("--resp", &[][..]), ("--http", &[]), ("--tls-port", &certificates[..])]
        {
            let serve = ["serve", "--data", data.to_str().unwrap(), flag, &taken];
            let free = if flag == "--resp" { &[][..] } else { &["--resp", "127.0.0.1:0"] };
            let arguments = [&serve[..], free, more].concat();
            fails(1, &arguments, &["cannot listen on", &taken, "choose another address"]);
            assert!(!missing.exists(), "{flag}: no directory is made");
            assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{flag}: nor a file");
        }
    }
}

#[test]
fn users_that_cannot_serve_leave_nothing_behind() {
    let temp = tempfile::tempdir().unwrap();
    let (data, users) = (temp.path().join("data"), temp.path().join("users"));
    let serve = |resp: &'static str| {
        let (data, users) = (data.to_str().unwrap(), users.to_str().unwrap());
        ["serve", "--data", data, "--acl-file", users, "--resp", resp].map(str::to_owned)
    };
    fs::write(&users, "user default on nopass ~* +@all\nuser ann on >pass\n").unwrap();
    fails(2, &serve("0.0.0.0:0"), &["refusing to listen", "without a password"]);
    fs::write(&users, "user ann on +@nothing\n").unwrap();
    fails(1, &serve("127.0.0.1:0"), &["users", "line 1"]);
    assert!(!data.exists());
}

/// A client program that can connect as redis-cli does.
fn has_redis_cli() -> bool {
    let mut help = Command::new("redis-cli");
    help.arg("--help");
    help.output().is_ok_and(|output| said(&output).contains("--tls"))
}

/// The command that a server has printed, between backquotes after `connect with`.
fn hint(server: &Server) -> String {
    server.await_said("connect with");
    let said = server.said();
    let rest = said.split("connect with `").nth(1).unwrap();
    rest.split('`').next().unwrap().to_owned()
}

/// Runs a printed command in a shell, in another directory, with these words and this input.
fn run(command: &str, words: &str, input: &str) -> String {
    let line = format!("printf '%s\\n' '{input}' | {command} {words}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir("/").env_remove("SOFTFLASH_PASSWORD");
    said(&shell.output().unwrap())
}

#[test]
fn the_printed_command_connects() {
    if !has_redis_cli() {
        return skip("a redis-cli with TLS");
    }
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("my data");
    format(&data, Backend::File, 512 * MIB);
    let serve = |arguments: &[&str]| {
        Server::start(&data, &[&["--memory", "32MiB"][..], arguments].concat())
    };
    let pings = |server: Server, input: &str| {
        let answer = run(&hint(&server), "PING", input);
        assert!(answer.contains("PONG"), "{}: {answer}", hint(&server));
        assert!(server.terminate().success());
    };
    pings(serve(&[]), "");
    pings(serve(&["--resp", "0.0.0.0:0", "--protected-mode", "no"]), "");

    let password = temp.path().join("my password");
    fs::write(&password, "it's \"secret\" $HOME\n").unwrap();
    let password = password.to_str().unwrap();
    pings(serve(&["--password-file", password]), "");
    let acl = temp.path().join("users");
    fs::write(&acl, "user default on >pass ~* +@all\n").unwrap();
    pings(serve(&["--acl-file", acl.to_str().unwrap()]), "pass");

    let authority = Authority::new(temp.path(), "authority");
    let (identity, client) = (authority.sign("server"), authority.sign("client"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (certificate, key) = (text(&identity.certificate), text(&identity.key));
    let authorities = text(&authority.certificate);
    let tls = ["--resp", "off", "--tls-port", "0", "--tls-cert", &certificate, "--tls-key", &key];
    let server = serve(&tls);
    let command = hint(&server).replace("AUTHORITY", &authorities);
    assert!(
        run(&command, "PING", "").contains("PONG"),
        "{command}: only a person knows the authority"
    );
    assert!(server.terminate().success());
    let with_ca = [&tls[..], &["--tls-ca", &authorities, "--tls-client-auth"]].concat();
    pings(serve(&[&with_ca[..], &["no"]].concat()), "");
    let server = serve(&[&with_ca[..], &["required"]].concat());
    let (shown, key_shown) = (text(&client.certificate), text(&client.key));
    let command = hint(&server).replace("CERTIFICATE", &shown).replace("KEY", &key_shown);
    let answer = run(&command, "PING", "");
    assert!(answer.contains("PONG"), "{command}: {answer}");
    assert!(server.terminate().success());
}

/// The remedies of errors are commands that work.
#[test]
fn a_directory_that_an_error_proposes_can_be_made() {
    let temp = tempfile::tempdir().unwrap();
    let missing = temp.path().join("it's new");
    let mut info = Command::new(binary());
    let output = info.arg("info").arg(&missing).stdin(Stdio::null()).output().unwrap();
    let error = said(&output);
    let command = error.split('`').nth(1).unwrap_or_else(|| panic!("a command in {error}"));
    let command = command.replace("8GiB", "256MiB --units 2");
    let rest = command.strip_prefix("softflash").unwrap_or_else(|| panic!("{command}"));
    let line = format!("exec \"$0\" {rest}");
    let output = Command::new("sh").args(["-c", &line]).arg(binary()).output().unwrap();
    assert!(output.status.success(), "{command}: {}", said(&output));
    assert!(missing.join("softflash.toml").exists());
}
