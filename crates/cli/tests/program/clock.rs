//! A wall clock that is ahead: commands do not move the store, a server says so, and the way back.

use crate::support::clients::skip;
use crate::support::http;
use crate::support::program::{Backend, binary, check, format_with, json, said, softflash};
use crate::support::resp::{Client, Reply};
use crate::support::server::Server;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use softflash_base::Time;
use softflash_datadir::DataDir;
use softflash_device::OpenOptions;
use softflash_runtime::{RealExecutor, Runtime, RuntimeHandle};
use softflash_store::{StoreOptions, open_all};
use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::path::Path;
use std::process::{Command, Output};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;
const YEAR_MS: u64 = 365 * DAY_MS;

/// The environment of a program whose wall clock is a year ahead, as words for a shell; none
/// without libfaketime.
fn a_year_ahead() -> Option<String> {
    let shown = Command::new("faketime").args(["-f", "+365d", "printenv", "LD_PRELOAD"]).output();
    let Some(shown) = shown.ok().filter(|shown| shown.status.success()) else {
        skip("faketime");
        return None;
    };
    let library = String::from_utf8(shown.stdout).unwrap();
    let library = library.trim();
    Some(format!("export LD_PRELOAD='{library}' FAKETIME=+365d FAKETIME_DONT_FAKE_MONOTONIC=1"))
}

/// Runs the program a year ahead.
fn ahead<S: AsRef<OsStr>>(environment: &str, arguments: &[S]) -> Output {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{environment} && exec \"$0\" \"$@\"")).arg(binary());
    shell.args(arguments).output().unwrap()
}

/// The runtime of a machine whose wall clock is a year ahead. (libfaketime does not reach a server,
/// which asks the kernel itself.)
struct Ahead(RuntimeHandle);

impl Runtime for Ahead {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wall_ms(&self) -> u64 {
        self.0.wall_ms() + YEAR_MS
    }

    fn sleep_until(&self, at: Time) -> LocalBoxFuture<'static, ()> {
        self.0.sleep_until(at)
    }

    fn readable(&self, fd: RawFd) -> LocalBoxFuture<'static, ()> {
        self.0.readable(fd)
    }

    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
}

/// Opens the store as a server does, a year ahead, and reads a key that has expired there.
fn open_ahead(data: &Path) {
    let directory = DataDir::open(data).unwrap();
    let (device, layout) = directory.open_device(OpenOptions::default()).unwrap();
    let executor = RealExecutor::new().unwrap();
    let runtime: RuntimeHandle = Rc::new(Ahead(executor.handle()));
    executor.block_on(async {
        let options = StoreOptions::default();
        let stores = open_all(device, &layout, &options, &runtime).await.unwrap();
        let found = stores[0].begin().get(&Bytes::from_static(b"ten-days")).await.unwrap();
        assert!(found.is_none(), "it has expired");
        for store in &stores {
            store.close().await.unwrap();
        }
    });
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// What TIME says.
fn time_ms(client: &mut Client) -> u64 {
    let Reply::Array(parts) = client.call(&[b"TIME"]) else { panic!("TIME is a list") };
    let number = |part: &Reply| part.clone().text().parse::<u64>().unwrap();
    number(&parts[0]) * 1000 + number(&parts[1]) / 1000
}

fn lead_ms(data: &Path) -> u64 {
    json(&softflash(["clock".as_ref(), data.as_os_str(), "-o".as_ref(), "json".as_ref()]))["lead_ms"]
        .as_u64()
        .unwrap()
}

/// A stopped store with a key that expires in ten days, one that does not, and their dump.
fn stopped(directory: &Path) -> [std::path::PathBuf; 2] {
    let (data, file) = (directory.join("data"), directory.join("keys.sfdump"));
    format_with(&data, Backend::File, 512 << 20, &["--units", "4", "--shards", "2"]);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    assert!(client.set(b"endless", b"1").is_ok());
    assert!(client.call(&[b"SET", b"ten-days", b"2", b"EX", b"864000"]).is_ok());
    assert!(server.terminate().success());
    let dumped = softflash([OsStr::new("dump"), data.as_os_str(), file.as_os_str()]);
    assert!(dumped.status.success(), "{}", said(&dumped));
    [data, file]
}

#[test]
fn commands_with_a_wall_clock_ahead_do_not_move_the_clock_of_the_store() {
    let Some(environment) = a_year_ahead() else { return };
    let temp = tempfile::tempdir().unwrap();
    let [data, file] = stopped(temp.path());
    let (data_name, file_name) = (data.to_str().unwrap(), file.to_str().unwrap());
    let other = temp.path().join("other.sfdump");
    for arguments in [
        &["dump", data_name, other.to_str().unwrap(), "--force"][..],
        &["info", data_name],
        &["units", data_name],
        &["check", data_name],
        &["check", data_name, "--repair"],
        &["clock", data_name],
        &["clock", data_name, "--set-back"],
        &["load", data_name, file_name],
    ] {
        let output = ahead(&environment, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        match arguments[0] {
            "dump" => assert!(said(&output).contains("2 keys"), "{}", said(&output)),
            "load" => {
                let text = said(&output);
                assert!(text.contains("1 key loaded, 1 had expired"), "{text}");
            }
            _ => {}
        }
        assert_eq!(lead_ms(&data), 0, "after {arguments:?}");
    }
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    assert!(time_ms(&mut client).abs_diff(now_ms()) < 60_000);
    assert_eq!(client.get(b"ten-days").as_deref(), Some(&b"2"[..]));
    let in_an_hour = (now_ms() / 1000 + 3600).to_string();
    assert!(client.call(&[b"SET", b"e", b"v", b"EXAT", in_an_hour.as_bytes()]).is_ok());
    assert!(client.get(b"e").is_some());
    assert_eq!(client.flash_stat("clock_lead_ms"), 0);
    assert!(!server.said().contains("ahead"), "{}", server.said());
    assert!(server.terminate().success());
}

#[test]
fn a_server_that_was_ahead_is_reported_and_set_back() {
    let temp = tempfile::tempdir().unwrap();
    let [data, file] = stopped(temp.path());
    open_ahead(&data);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    server.await_said("the store's clock is 36");
    server.await_said("ahead of this machine's: keys expire too early");
    let mut client = server.client();
    assert!(time_ms(&mut client) > now_ms() + YEAR_MS - DAY_MS, "the clock is ahead");
    assert_eq!(client.get(b"ten-days"), None);
    let lead = client.flash_stat("clock_lead_ms");
    assert!((YEAR_MS - DAY_MS..=YEAR_MS).contains(&lead), "{lead}");
    let metrics = http::get(server.address_of("http"), "/metrics");
    let gauge =
        metrics.lines().find(|line| line.starts_with("softflash_store_clock_lead_seconds "));
    assert!(gauge.is_some_and(|line| line.contains(" 3153")), "{gauge:?}");
    let in_an_hour = (now_ms() / 1000 + 3600).to_string();
    assert!(client.call(&[b"SET", b"e", b"v", b"EXAT", in_an_hour.as_bytes()]).is_ok());
    assert_eq!(client.get(b"e"), None, "dead by the store's clock");
    // Keys are counted by the store's clock, not by this machine's.
    let address = server.address().to_string();
    let loaded =
        softflash([OsStr::new("load"), "--resp".as_ref(), address.as_ref(), file.as_os_str()]);
    assert!(loaded.status.success(), "{}", said(&loaded));
    assert!(said(&loaded).contains("1 key loaded, 1 had expired"), "{}", said(&loaded));
    assert!(said(&loaded).contains("ahead of this machine's"), "{}", said(&loaded));
    assert!(client.call(&[b"SET", b"two-years", b"3", b"EX", b"63072000"]).is_ok());
    assert!(server.terminate().success());

    let loaded = softflash([OsStr::new("load"), data.as_os_str(), file.as_os_str()]);
    assert!(said(&loaded).contains("1 key loaded, 1 had expired"), "{}", said(&loaded));
    let report = check(&data).report.to_string();
    assert!(report.contains("ahead of this machine's"), "{report}");
    let shown = softflash([OsStr::new("clock"), data.as_os_str()]);
    assert!(said(&shown).contains("--set-back sets it"), "{}", said(&shown));
    assert!(lead_ms(&data) > YEAR_MS - DAY_MS);
    let arguments =
        ["clock".as_ref(), data.as_os_str(), "--set-back".as_ref(), "-o".as_ref(), "json".as_ref()];
    let done = json(&softflash(arguments));
    assert!(done["set_back"] == true && done["lead_ms"].as_u64() == Some(0), "{done}");
    assert!(done["keys_deleted"].as_u64().is_some_and(|keys| (1..=2).contains(&keys)), "{done}");
    let again = json(&softflash(arguments));
    assert!(again["set_back"] == false && again["keys_deleted"] == 0, "{again}");

    let server = Server::start(&data, &["--memory", "64MiB"]);
    let mut client = server.client();
    assert!(time_ms(&mut client).abs_diff(now_ms()) < 60_000);
    assert_eq!(client.get(b"ten-days"), None, "it was seen expired");
    assert!(client.get(b"endless").is_some() && client.get(b"two-years").is_some());
    assert!(client.call(&[b"SET", b"e", b"v", b"EXAT", in_an_hour.as_bytes()]).is_ok());
    assert!(client.get(b"e").is_some());
    std::thread::sleep(Duration::from_millis(200));
    assert!(!server.said().contains("ahead"), "{}", server.said());
    assert!(server.terminate().success());
    assert!(check(&data).ok);
}
