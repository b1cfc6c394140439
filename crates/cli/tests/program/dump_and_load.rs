//! Dump from one store and load into another, offline and with a running server.

use crate::support::mute::Mute;
use crate::support::program::{Backend, binary, check_clean, fails, format_with, said, softflash};
use crate::support::resp::Client;
use crate::support::server::Server;
use crate::support::signals;
use crate::support::{has_unfinished, noise};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MIB: u64 = 1 << 20;
const KEYS: u64 = 1500;

fn run(arguments: &[&str]) {
    let output = softflash(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
}

fn format(directory: &Path, shards: &str) {
    format_with(directory, Backend::File, 512 * MIB, &["--units", "4", "--shards", shards]);
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    // A few are longer than a frame.
    let len = if number.is_multiple_of(500) { 3 << 20 } else { number as usize % 3000 };
    noise(number, len)
}

/// A third of the keys expires in an hour.
fn fill(client: &mut Client) {
    for number in 0..KEYS {
        assert!(client.set(&key(number), &value(number)).is_ok());
        if number.is_multiple_of(3) {
            assert_eq!(client.call(&[b"EXPIRE", &key(number), b"3600"]).integer(), 1);
        }
    }
}

fn verify(client: &mut Client) {
    assert_eq!(client.call(&[b"DBSIZE"]).integer() as u64, KEYS);
    // Rounded as EXPIRETIME rounds.
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let now = (now_ms + 500) / 1000;
    for number in 0..KEYS {
        assert_eq!(client.get(&key(number)).unwrap(), value(number), "key {number}");
        let expiry = client.call(&[b"EXPIRETIME", &key(number)]).integer();
        match number.is_multiple_of(3) {
            true => assert!((now + 3000..=now + 3600).contains(&expiry), "key {number}: {expiry}"),
            false => assert_eq!(expiry, -1, "key {number}"),
        }
    }
}

#[test]
fn every_way_out_and_in_keeps_everything() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (first, second, third) = (path("first"), path("second"), path("third"));
    format(Path::new(&first), "2");
    let server = Server::start(Path::new(&first), &["--memory", "64MiB"]);
    fill(&mut server.client());
    let address = server.address().to_string();
    run(&["dump", "--resp", &address, &path("online")]);
    assert!(server.terminate().success());
    run(&["dump", &first, &path("offline")]);

    // Into a directory, twice: a second load changes nothing.
    format(Path::new(&second), "1");
    run(&["load", &second, &path("online")]);
    run(&["load", &second, &path("online")]);
    check_clean(Path::new(&second));
    let server = Server::start(Path::new(&second), &["--memory", "64MiB"]);
    verify(&mut server.client());
    assert!(server.terminate().success());

    // Into a server.
    format(Path::new(&third), "2");
    let server = Server::start(Path::new(&third), &["--memory", "64MiB"]);
    let address = server.address().to_string();
    run(&["load", "--resp", &address, &path("offline")]);
    verify(&mut server.client());
    assert!(server.terminate().success());
}

#[test]
fn a_dump_over_the_network_needs_the_password() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, "1");
    let password = temp.path().join("password");
    fs::write(&password, "secret\n").unwrap();
    let password = password.to_str().unwrap();
    let server = Server::start(&data, &["--memory", "32MiB", "--password-file", password]);
    let (address, file) = (server.address().to_string(), temp.path().join("dump"));
    let file = file.to_str().unwrap();
    let refused = softflash(["dump", "--resp", &address, file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("NOAUTH"), "{}", said(&refused));
    run(&["dump", "--resp", &address, "--password-file", password, file]);
    assert!(server.terminate().success());
}

#[test]
fn options_for_a_server_are_refused_with_a_directory() {
    for option in [&["--tls"][..], &["--password-file", "password"]] {
        for command in ["dump", "load"] {
            let arguments = [&[command, "data", "keys.sfdump"][..], option].concat();
            fails(2, &arguments, &["are for a running server", "--resp HOST:PORT"]);
        }
    }
}

#[test]
fn damaged_files_are_refused_and_failures_leave_no_half_file() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let data = path("data");
    format(Path::new(&data), "1");
    let server = Server::start(Path::new(&data), &["--memory", "64MiB"]);
    for number in 0..50 {
        assert!(server.client().set(&key(number), &value(number + 1)).is_ok());
    }
    assert!(server.terminate().success());
    let file = path("dump");
    run(&["dump", &data, &file]);

    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for (name, bytes) in [("flipped", &flipped[..]), ("short", &whole[..whole.len() - 1])] {
        fs::write(path(name), bytes).unwrap();
        let output = softflash(["load", &data, &path(name)]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", said(&output));
        assert!(said(&output).contains("damaged at byte"), "{name}: {}", said(&output));
        assert!(said(&output).contains("--skip"), "{name}: {}", said(&output));
    }
    // The records before the damage are loaded.
    let before = path("before");
    format(Path::new(&before), "1");
    fs::write(path("more"), [&whole[..], b"and something else"].concat()).unwrap();
    fails(1, &["load", &before, &path("more")], &["no other dump", "continue with --skip 50"]);
    fails(1, &["load", &before, &file, "--skip", "51"], &["beyond its end", "50 records"]);
    run(&["load", &before, &file, "--skip", "50"]);
    let server = Server::start(Path::new(&before), &["--memory", "64MiB"]);
    assert_eq!(server.client().call(&[b"DBSIZE"]).integer(), 50);
    assert!(server.terminate().success());
    fs::write(path("other"), "these are not the bytes of a dump, but of a letter").unwrap();
    assert!(said(&softflash(["load", &data, &path("other")])).contains("not a SoftFlash dump"));

    let refused = softflash(["dump", "--resp", "127.0.0.1:1", &path("never")]);
    assert_eq!(refused.status.code(), Some(1));
    let names: Vec<_> = fs::read_dir(temp.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.ends_with(".tmp") || name == "never"), "{names:?}");
}

/// Ctrl-C, and the end of the terminal, which `nohup` takes away.
#[test]
fn an_interrupted_load_says_where_to_continue() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (data, file) = (path("data"), path("dump"));
    format(Path::new(&data), "1");
    let server = Server::start(Path::new(&data), &["--memory", "64MiB"]);
    fill(&mut server.client());
    assert!(server.terminate().success());
    run(&["dump", &data, &file]);
    let whole = fs::read(&file).unwrap();
    for signal in [libc::SIGINT, libc::SIGHUP] {
        let copy = path(&format!("copy{signal}"));
        format(Path::new(&copy), "1");
        let mut child = Command::new(binary())
            .args(["load", &copy, "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&whole[..whole.len() / 2]).unwrap();
        // It has read that, and waits for the rest.
        std::thread::sleep(Duration::from_millis(300));
        signals::send(&child, signal);
        let _ = input.write_all(&whole[whole.len() / 2..]);
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let said = said(&output);
        assert!(said.contains("interrupted"), "{said}");
        let skip = said.split("continue with --skip ").nth(1).unwrap().trim();
        assert!((1..KEYS).contains(&skip.parse().unwrap()), "{said}");
        run(&["load", &copy, &file, "--skip", skip]);
        let server = Server::start(Path::new(&copy), &["--memory", "64MiB"]);
        verify(&mut server.client());
        assert!(server.terminate().success());
    }
}

#[test]
fn a_command_under_nohup_goes_on_when_its_terminal_closes() {
    let temp = tempfile::tempdir().unwrap();
    let (data, file) = (temp.path().join("data"), temp.path().join("dump"));
    format(&data, "1");
    for (nohup, has_ended) in [("", true), ("trap '' HUP; ", false)] {
        let server = Mute::start(&[b":5\r\n"]);
        let address = server.address;
        let script = format!("{nohup}exec \"$0\" dump --resp {address} {}", file.display());
        let mut child = Command::new("sh")
            .args(["-c", &script, binary().to_str().unwrap()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _connection = server.await_silence();
        signals::send(&child, libc::SIGHUP);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(child.try_wait().unwrap().is_some(), has_ended, "{script}");
        assert_eq!(has_unfinished(temp.path()), !has_ended);
        if !has_ended {
            signals::send(&child, libc::SIGTERM);
            assert_eq!(child.wait().unwrap().code(), Some(1));
        }
        assert!(!has_unfinished(temp.path()));
    }
}

#[test]
fn an_existing_file_is_replaced_only_by_force_and_only_when_the_dump_is_complete() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (data, file) = (path("data"), path("dump"));
    format(Path::new(&data), "1");
    fs::write(&file, "last year's").unwrap();
    fails(1, &["dump", &data, &file], &[&file, "exists", "--force"]);
    fails(1, &["dump", &data, &data, "--force"], &[&data, "not a file"]);
    let intact = || assert_eq!(fs::read(&file).unwrap(), b"last year's");
    intact();

    // It counts its keys, and never answers the first SCAN.
    let server = Mute::start(&[b":5\r\n"]);
    let mut child = Command::new(binary())
        .args(["dump", "--resp", &server.address.to_string(), &file, "--force"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _connection = server.await_silence();
    assert!(has_unfinished(temp.path()), "it dumps");
    signals::send(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!has_unfinished(temp.path()));
    intact();

    run(&["dump", &data, &file, "--force"]);
    run(&["load", &data, &file]);
}
