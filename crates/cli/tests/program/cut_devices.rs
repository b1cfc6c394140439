//! Devices that are cut short, and damage of the label: no command advises to destroy what is left.

use crate::support::damage::{DeviceMap, LABEL_COPIES};
use crate::support::noise;
use crate::support::program::{Backend, check, check_clean, format_with, json, said, softflash};
use crate::support::server::Server;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const KEYS: u64 = 300;

fn with_keys(backend: Backend, more: &[&str]) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, backend, 256 * MIB, &[&["--shards", "1"], more].concat());
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for key in 0..KEYS {
        assert!(client.set(format!("k{key}").as_bytes(), &noise(key, 9000)).is_ok());
    }
    assert!(server.terminate().success());
    (temp, data)
}

fn cut(data: &Path, to: impl Fn(u64) -> u64) {
    let file = OpenOptions::new().write(true).open(data.join("flash.sfd")).unwrap();
    file.set_len(to(file.metadata().unwrap().len())).unwrap();
}

fn run(command: &str, data: &Path, more: &[&str]) -> Output {
    let output = softflash([&[command, data.to_str().unwrap()], more].concat());
    assert!(!said(&output).contains("--force"), "{command}: {}", said(&output));
    output
}

fn serve_says(data: &Path) -> String {
    let refused = Server::try_start(data, &["--memory", "32MiB"]).err().expect("it does not start");
    assert_eq!(refused.status.code(), Some(1));
    assert!(!said(&refused).contains("--force"), "{}", said(&refused));
    said(&refused)
}

/// Every command is refused for this reason, and advises a backup and no new format.
fn all_advise_a_backup(data: &Path, reason: &str) {
    let mut all = vec![serve_says(data)];
    for (command, more) in [
        ("info", &[][..]),
        ("units", &[]),
        ("check", &[]),
        ("check", &["--repair"]),
        ("dump", &["-"]),
        ("clock", &[]),
    ] {
        let output = run(command, data, more);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", said(&output));
        all.push(said(&output));
    }
    for text in all {
        assert!(text.contains(reason) && text.contains("from a backup"), "{reason}: {text}");
        assert!(!text.contains("softflash format"), "{reason}: {text}");
    }
}

#[test]
fn a_device_one_byte_short_is_read_and_becomes_whole_again() {
    for backend in [Backend::File, Backend::Model] {
        let (temp, data) = with_keys(backend, &["--units", "4"]);
        cut(&data, |len| len - 1);
        let said_by_server = serve_says(&data);
        assert!(said_by_server.contains("cut short"), "{said_by_server}");
        assert!(said_by_server.contains("check --repair"), "{said_by_server}");
        let info = run("info", &data, &[]);
        assert_eq!(info.status.code(), Some(1), "{}", said(&info));
        assert!(said(&info).contains("cut short"), "{}", said(&info));
        let checked = check(&data);
        assert!(!checked.ok && checked.report.to_string().contains("cut short"));
        let dump = temp.path().join("dump");
        let dumped = run("dump", &data, &[dump.to_str().unwrap()]);
        assert!(said(&dumped).contains("300 keys"), "{backend:?}: {}", said(&dumped));
        let dry = run("check", &data, &["--repair", "--dry-run"]);
        assert!(
            said(&dry).contains("found: ") && said(&dry).contains("cut short"),
            "{}",
            said(&dry)
        );
        assert!(said(&dry).contains("a repair gives the device its size"), "{}", said(&dry));
        let repaired = run("check", &data, &["--repair"]);
        assert!(repaired.status.success(), "{backend:?}: {}", said(&repaired));
        assert!(said(&repaired).contains("the device has its size again"), "{}", said(&repaired));
        check_clean(&data);
        let server = Server::start(&data, &["--memory", "32MiB"]);
        assert_eq!(server.client().call(&[b"DBSIZE"]).integer() as u64, KEYS);
        assert!(server.terminate().success());
    }
}

#[test]
fn a_device_cut_to_a_quarter_tells_so_everywhere() {
    let (temp, data) = with_keys(Backend::File, &["--units", "8"]);
    cut(&data, |len| len / 4);
    assert!(serve_says(&data).contains("cut short"));
    let info = run("info", &data, &["-o", "json"]);
    assert_eq!(info.status.code(), Some(1));
    assert!(said(&info).contains("cut short"), "{}", said(&info));
    let units = run("units", &data, &[]);
    assert!(units.status.success(), "what is left of each unit: {}", said(&units));
    assert!(!check(&data).ok);
    // A dump of what is left, or an error that says what is missing: never other data. Which
    // superblocks are behind the end differs from run to run.
    let dump = temp.path().join("dump");
    let dumped = run("dump", &data, &[dump.to_str().unwrap()]);
    if !dumped.status.success() {
        let salvaged = run("dump", &data, &[dump.to_str().unwrap(), "--salvage"]);
        assert_eq!(salvaged.status.code(), Some(1), "{}", said(&salvaged));
        if !dump.exists() {
            assert!(said(&salvaged).contains("superblock"), "{}", said(&salvaged));
            return;
        }
    }
    let copy = temp.path().join("copy");
    format_with(&copy, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let loaded = run("load", &copy, &[dump.to_str().unwrap()]);
    assert!(loaded.status.success(), "{}", said(&loaded));
    let server = Server::start(&copy, &["--memory", "32MiB"]);
    let mut client = server.client();
    let kept = (0..KEYS).filter(|key| {
        let found = client.get(format!("k{key}").as_bytes());
        found.inspect(|value| assert!(*value == noise(*key, 9000), "k{key}")).is_some()
    });
    println!("{} of {KEYS} keys are left", kept.count());
    assert!(server.terminate().success());
}

#[test]
fn a_list_of_the_volumes_of_a_device_that_is_cut_short_says_so() {
    let (_temp, data) = with_keys(Backend::File, &["--units", "4", "--volume-units", "2"]);
    let created = softflash(["volume", "create", data.to_str().unwrap(), "disk", "8MiB"]);
    assert!(created.status.success(), "{}", said(&created));
    cut(&data, |len| len / 4);
    let listed = softflash(["volume", "list", data.to_str().unwrap()]);
    assert_eq!(listed.status.code(), Some(1), "{}", said(&listed));
    assert!(said(&listed).contains("cut short"), "{}", said(&listed));
}

/// What is left of a shard looks as it did before its newest log was written: only the cut tells
/// that keys may be missing.
#[test]
fn where_superblocks_were_cut_off_a_repair_does_not_say_that_all_is_well() {
    let of_volumes = &["--volume-units", "2"][..];
    for (more, left, beyond, named) in [
        (&[][..], 4, 0, "shard 1:"),
        // The first superblock of the shard is left, with the beginning of its log.
        (&[][..], 4, MIB, "shard 1:"),
        (of_volumes, 5, 0, "volumes of shard 1:"),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        let units = ["--units", "4", "--shards", "2"];
        format_with(&data, Backend::File, 512 * MIB, &[&units, more].concat());
        let server = Server::start(&data, &["--memory", "64MiB"]);
        let mut client = server.client();
        for key in 0..KEYS {
            assert!(client.set(format!("k{key}").as_bytes(), &noise(key, 9000)).is_ok());
        }
        assert!(server.terminate().success());
        cut(&data, |len| len / 8 * left + beyond);
        let dry = run("check", &data, &["--repair", "--dry-run"]);
        assert_eq!(dry.status.code(), Some(1), "{}", said(&dry));
        assert!(said(&dry).contains(&format!("found: {named}")), "{}", said(&dry));
        assert!(said(&dry).contains("a repair gives the device its size"), "{}", said(&dry));
        let repaired = run("check", &data, &["--repair", "-o", "json"]);
        assert_eq!(repaired.status.code(), Some(1), "{}", said(&repaired));
        let report: serde_json::Value = serde_json::from_slice(&repaired.stdout).unwrap();
        assert_eq!(report["ok"], false);
        let unproven = report["unproven"].as_array().unwrap();
        let names = |one: &serde_json::Value| one.as_str().unwrap().starts_with(named);
        assert!(unproven.iter().any(names), "{unproven:?}");
    }
}

/// A salvage keeps what a repair would: the keys of the shard that is whole. It names the other.
#[test]
fn a_salvage_keeps_the_shard_that_a_cut_has_left() {
    for backend in [Backend::File, Backend::Model] {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        format_with(&data, backend, 256 * MIB, &["--units", "4", "--shards", "2"]);
        let server = Server::start(&data, &["--memory", "64MiB"]);
        let mut client = server.client();
        for key in 0..KEYS {
            assert!(client.set(format!("k{key}").as_bytes(), &noise(key, 900)).is_ok());
        }
        assert!(server.terminate().success());
        cut(&data, |len| len / 2);
        let length = || fs::metadata(data.join("flash.sfd")).unwrap().len();
        let (saved, whole) = (temp.path().join("saved"), temp.path().join("whole"));
        let left = length();
        let dumped = run("dump", &data, &[saved.to_str().unwrap()]);
        assert_eq!(dumped.status.code(), Some(1), "{backend:?}: {}", said(&dumped));
        assert!(!saved.exists(), "{backend:?}: a dump has all keys");
        let salvaged = run("dump", &data, &[saved.to_str().unwrap(), "--salvage"]);
        assert_eq!(salvaged.status.code(), Some(1), "{backend:?}: {}", said(&salvaged));
        for told in ["cut short", "shard 1: superblocks of it were cut off"] {
            assert!(said(&salvaged).contains(told), "{backend:?}: {}", said(&salvaged));
        }
        assert!(!said(&salvaged).contains("shard 0:"), "{backend:?}: {}", said(&salvaged));
        assert_eq!(length(), left, "{backend:?}: a salvage changes nothing");
        let repaired = run("check", &data, &["--repair", "--accept-log-loss"]);
        assert_eq!(repaired.status.code(), Some(1), "{backend:?}: {}", said(&repaired));
        let dumped = run("dump", &data, &[whole.to_str().unwrap()]);
        assert!(dumped.status.success(), "{backend:?}: {}", said(&dumped));
        let keys = |output: &Output| {
            let text = said(output);
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut counts = words.windows(2).filter(|pair| pair[1].starts_with("keys"));
            counts.find_map(|pair| pair[0].parse::<u64>().ok()).expect("a number of keys")
        };
        assert_eq!(keys(&salvaged), keys(&dumped), "{backend:?}: {}", said(&salvaged));
        assert!((1..KEYS).contains(&keys(&dumped)), "{backend:?}: {}", said(&dumped));
    }
}

/// The file system of the device may not be mounted: a new device would take its place.
#[test]
fn where_a_file_is_missing_the_first_advice_is_a_backup() {
    let (temp, data) = with_keys(Backend::File, &["--units", "4"]);
    for (name, told) in [("flash.sfd", "no such device"), ("softflash.toml", "is missing")] {
        let aside = temp.path().join(name);
        fs::rename(data.join(name), &aside).unwrap();
        all_advise_a_backup(&data, told);
        fs::rename(aside, data.join(name)).unwrap();
    }
    check_clean(&data);
}

#[test]
fn a_damaged_label_copy_is_used_repaired_and_told() {
    for copy in LABEL_COPIES {
        for all in [false, true] {
            let (_temp, data) = with_keys(Backend::File, &["--units", "4"]);
            let file = OpenOptions::new().write(true).open(data.join("flash.sfd")).unwrap();
            let zeros = vec![0; if all { 512 << 10 } else { 100 }];
            file.write_all_at(&zeros, copy).unwrap();
            let info = run("info", &data, &[]);
            assert!(said(&info).contains("label copy"), "{}", said(&info));
            let checked = check(&data);
            assert!(!checked.ok && checked.report.to_string().contains("label copy"));
            if all {
                let repaired = run("check", &data, &["--repair"]);
                assert!(repaired.status.success(), "{}", said(&repaired));
                assert!(said(&repaired).contains("label is intact again"), "{}", said(&repaired));
            } else {
                let server = Server::start(&data, &["--memory", "32MiB"]);
                server.await_said("was repaired from the other one");
                assert_eq!(server.client().call(&[b"DBSIZE"]).integer() as u64, KEYS);
                assert!(server.terminate().success());
            }
            check_clean(&data);
        }
    }
}

/// Whatever speaks against serving a device: its size, a manifest that does not fit, a lost log. In
/// the last case the units are mounted, and free superblocks may be erased.
#[test]
fn the_label_of_a_device_that_is_refused_is_left_as_it_is() {
    for reason in ["cut short", "units", "log"] {
        let (_temp, data) = with_keys(Backend::File, &["--units", "4"]);
        let device = data.join("flash.sfd");
        let manifest = data.join("softflash.toml");
        match reason {
            "cut short" => cut(&data, |len| len - 1),
            "units" => {
                let text = fs::read_to_string(&manifest).unwrap();
                let shards = text.replace("shards = 1", "shards = 5");
                assert_ne!(text, shards, "{text}");
                fs::write(&manifest, shards).unwrap();
            }
            _ => {
                let map = DeviceMap::read(&data);
                let headers: Vec<u64> = map.all_frames().iter().map(|it| it.offset + 20).collect();
                map.flip(&device, &headers);
            }
        }
        let file = OpenOptions::new().write(true).open(&device).unwrap();
        file.write_all_at(&[0; 100], LABEL_COPIES[0]).unwrap();
        let before = fs::read(&device).unwrap();
        let told = serve_says(&data);
        assert!(told.contains(reason) && !told.contains("repaired"), "{reason}: {told}");
        let after = fs::read(&device).unwrap();
        let compared = if reason == "log" { MIB as usize } else { before.len() };
        assert!(after[..compared] == before[..compared], "{reason}: the device has changed");
    }
}

#[test]
fn a_check_of_a_device_that_is_cut_short_says_so_once_and_counts_what_follows() {
    let (_temp, data) = with_keys(Backend::File, &["--units", "8"]);
    cut(&data, |len| len / 4);
    let table = run("check", &data, &[]);
    assert_eq!(table.status.code(), Some(1), "{}", said(&table));
    let text = said(&table);
    assert_eq!(text.matches("cut short").count(), 1, "{text}");
    let of_superblocks =
        text.lines().filter(|line| line.contains("unit ") && line.contains("superblock"));
    assert!(of_superblocks.count() < 20, "{text}");
    let report = run("check", &data, &["-o", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().len();
    assert!(findings > 100, "{findings}: all of them");
    assert!(text.contains(" more of this kind"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn without_a_whole_label_the_first_advice_is_a_backup() {
    let (_temp, data) = with_keys(Backend::File, &["--units", "4"]);
    let device = data.join("flash.sfd");
    let label = fs::read(&device).unwrap()[..MIB as usize].to_vec();
    let mut recognised = label.clone();
    for copy in LABEL_COPIES {
        recognised[copy as usize + 45] ^= 0x10;
    }
    let file = OpenOptions::new().write(true).open(&device).unwrap();
    for (left, told) in [(vec![0; MIB as usize], "not a SoftFlash device"), (recognised, "damaged")]
    {
        file.write_all_at(&left, 0).unwrap();
        all_advise_a_backup(&data, told);
    }
    file.write_all_at(&label, 0).unwrap();
    assert!(json(&run("check", &data, &["-o", "json"]))["ok"].as_bool().unwrap());
}
