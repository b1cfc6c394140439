//! Larger devices: a directory that is nearly full gets twice the units, and keeps every byte.

use crate::nbd::{change, serve};
use crate::sets::{
    field, listed, of_set, read_volume, set, set_of, softflash_ok, units_of, write_volume,
};
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{
    Backend, binary, check_clean, fails, format_with, json, said, softflash,
};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::signals::send;
use serde_json::{Value, json as value};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const VALUE_BYTES: usize = 20_000;

/// A small directory: two shards, each with two units for keys and two for volumes.
fn small(bytes: u64) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "8", "--shards", "2", "--volume-units", "4", "--slices", "4"];
    format_with(&data, Backend::File, bytes, &shares);
    (temp, data)
}

/// `grow` with these words, and its JSON.
fn grow(data: &Path, size: &str, more: &[&str]) -> Value {
    let words = [&["grow", data.to_str().unwrap(), "--size", size, "-o", "json"], more].concat();
    json(&softflash(words))
}

fn info(data: &Path) -> Value {
    json(&softflash(["info", data.to_str().unwrap(), "-o", "json"]))
}

/// The keys and volumes of a test: what they have to hold.
struct Load {
    keys: u64,
    /// Mebibytes of each of the volumes `disk-0` and `disk-1`, written from their beginning.
    mebibytes: u64,
}

impl Load {
    fn value_of(key: u64) -> Vec<u8> {
        noise(1_000_000 + key, VALUE_BYTES)
    }

    fn part_of(disk: u64, mebibyte: u64) -> Vec<u8> {
        noise(disk * 100_000 + mebibyte, MIB as usize)
    }

    /// Writes keys until they have so many bytes.
    fn write_keys_to(&mut self, server: &Server, bytes: u64) {
        let mut client = server.client();
        while self.keys * (VALUE_BYTES as u64) < bytes {
            let reply =
                client.set(format!("key:{}", self.keys).as_bytes(), &Load::value_of(self.keys));
            assert!(reply.is_ok(), "key {}: {reply:?}", self.keys);
            self.keys += 1;
        }
    }

    /// Writes both volumes up to so many mebibytes.
    fn write_volumes_to(&mut self, server: &Server, mebibytes: u64) {
        for disk in 0..2 {
            let mut client = NbdClient::connect(server.address_of("nbd"), &format!("disk-{disk}"));
            for mebibyte in self.mebibytes..mebibytes {
                let written = client.write(mebibyte * MIB, &Load::part_of(disk, mebibyte));
                assert_eq!(written, 0, "disk {disk}, mebibyte {mebibyte}");
            }
            assert_eq!(client.flush(), 0);
        }
        self.mebibytes = mebibytes;
    }

    fn compare(&self, server: &Server) {
        let mut client = server.client();
        for key in 0..self.keys {
            let found = client.get(format!("key:{key}").as_bytes());
            assert!(found == Some(Load::value_of(key)), "key {key} is not as it was written");
        }
        for disk in 0..2 {
            let mut client = NbdClient::connect(server.address_of("nbd"), &format!("disk-{disk}"));
            for mebibyte in 0..self.mebibytes {
                let read = client.read(mebibyte * MIB, MIB as usize).unwrap();
                assert!(read == Load::part_of(disk, mebibyte), "disk {disk}, mebibyte {mebibyte}");
            }
        }
    }
}

/// A directory with two volumes, filled to 90 %, and its server.
fn filled(data: &Path) -> (Server, Load, u64, u64) {
    let usable = info(data)["usable_bytes"].as_u64().unwrap();
    let server = serve(data);
    for disk in 0..2 {
        change(
            &server,
            &["CREATE", &format!("disk-{disk}"), "1GiB", "SET", &format!("vol-{disk}")],
        );
    }
    let of_volume = of_set_bytes(&server);
    let mut load = Load { keys: 0, mebibytes: 0 };
    load.write_keys_to(&server, usable / 10 * 9);
    load.write_volumes_to(&server, of_volume / 10 * 9 / MIB);
    (server, load, usable, of_volume)
}

/// The usable bytes of the set `vol-0` of a server.
fn of_set_bytes(server: &Server) -> u64 {
    let Reply::Array(sets) = set_of(server, &["LIST"]) else { panic!("no list") };
    let is_first = |set: &&Reply| field(set, "name").clone().text() == "vol-0";
    field(sets.iter().find(is_first).unwrap(), "usable_bytes").clone().integer() as u64
}

#[test]
fn a_directory_that_is_nearly_full_grows_to_twice_its_size() {
    let (_temp, data) = small(512 * MIB);
    let (server, mut load, usable, of_volume) = filled(&data);
    assert!(server.terminate().success());

    let before = info(&data);
    let manifest = std::fs::read(data.join("softflash.toml")).unwrap();
    let dry = grow(&data, "1GiB", &["--dry-run"]);
    assert_eq!((&dry["changed"], info(&data)), (&value!(false), before));
    assert_eq!(std::fs::read(data.join("softflash.toml")).unwrap(), manifest);
    let grown = grow(&data, "1GiB", &[]);
    assert_eq!((&grown["changed"], &grown["device_units"]), (&value!(true), &value!(16)));
    assert_eq!((&grown["sets"], &grown["spare_units"]), (&dry["sets"], &value!([])));
    let units = |name: &str| of_set(&data, name)["units"].clone();
    assert_eq!(
        (units("store-0"), units("store-1")),
        (value!([0, 1, 8, 9]), value!([2, 3, 10, 11]))
    );
    assert_eq!((units("vol-0"), units("vol-1")), (value!([4, 5, 12, 13]), value!([6, 7, 14, 15])));
    let again = grow(&data, "1GiB", &[]);
    assert_eq!((&again["changed"], &again["device_units"]), (&value!(false), &value!(16)));
    check_clean(&data);

    let server = serve(&data);
    load.compare(&server);
    // More than the directory had room for.
    load.write_keys_to(&server, usable / 10 * 18);
    load.write_volumes_to(&server, of_volume / 10 * 18 / MIB);
    load.compare(&server);
    server.kill();
    let server = serve(&data);
    load.compare(&server);
    assert!(server.terminate().success());
    check_clean(&data);
    let store = of_set(&data, "store-0");
    assert!(store["used_bytes"].as_u64().unwrap() > usable / 2, "{store}");
}

/// Killed at any time, `grow` leaves the directory as it was or as it will be, with its data, and
/// the command again completes it.
#[test]
fn a_growth_that_ends_early_loses_nothing() {
    let (_temp, data) = small(512 * MIB);
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "32MiB", "--set", "vol-0"]);
    let of_disk = noise(6, 16 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    let server = serve(&data);
    assert!(server.client().set(b"key", &of_disk[..MIB as usize]).is_ok());
    assert!(server.terminate().success());
    let unit_bytes = info(&data)["device"]["bytes"].as_u64().unwrap() / 8;
    let (signals, mut interrupted, mut units) = ([libc::SIGKILL, libc::SIGINT], 0, 8);
    for (signal, millis) in signals.into_iter().cycle().zip([2, 5, 10, 15, 25, 40, 60, 80, 120]) {
        let size = (MIB + (units + 2) * unit_bytes).to_string();
        let mut growth = Command::new(binary());
        growth.args(["grow", path, "--size", &size, "--store", "1", "-o", "json"]);
        let growth = growth.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = growth.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let device_units = || info(&data)["device"]["units"].as_u64().unwrap();
        assert!([units, units + 2].contains(&device_units()), "{}", said(&output));
        interrupted += i32::from(!output.status.success());
        // Whether a program looks, or opens it for writes.
        check_clean(&data);
        let (of, read) = read_volume(&data, "disk", of_disk.len());
        assert!(of == "vol-0" && read == of_disk, "lost after {millis} ms: {}", said(&output));
        assert!(!data.join("softflash.toml.growing").exists(), "after {millis} ms");
        let file_bytes = std::fs::metadata(data.join("flash.sfd")).unwrap().len();
        assert_eq!(file_bytes, MIB + device_units() * unit_bytes, "after {millis} ms");

        let completed = grow(&data, &size, &["--store", "1"]);
        units += 2;
        assert_eq!(completed["device_units"], units, "after {millis} ms: {}", said(&output));
        let spare = info(&data)["spare_units"].clone();
        assert_eq!(spare, value!([]), "after {millis} ms: {}", said(&output));
    }
    assert!(interrupted > 2, "growths were too fast to be interrupted");
    let server = serve(&data);
    assert!(server.client().get(b"key").unwrap() == of_disk[..MIB as usize]);
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn what_cannot_grow_is_refused_with_the_remedy() {
    let (temp, data) = small(256 * MIB);
    let path = data.to_str().unwrap();
    let bytes = std::fs::metadata(data.join("flash.sfd")).unwrap().len();
    fails(1, &["grow", path, "--size", "128MiB"], &["cannot become smaller", "at least"]);
    fails(2, &["grow", path], &["--size"]);
    fails(2, &["grow", path, "--size", "much"], &["`much` is not a size"]);
    let shares = ["grow", path, "--size", "512MiB", "--store", "9"];
    fails(2, &shares, &["9 units are named", "gets 8 more"]);
    fails(1, &["grow", path, "--size", "1000000GiB"], &["give a smaller size"]);
    fails(1, &["grow", path, "--size", "4000GiB"], &["no space for", "smaller size"]);
    assert_eq!(std::fs::metadata(data.join("flash.sfd")).unwrap().len(), bytes);
    assert!(!data.join("softflash.toml.growing").exists());
    assert_eq!(info(&data)["format_version"], 4, "nothing has changed");
    let almost = said(&softflash(["grow", path, "--size", "257MiB"]));
    assert!(almost.contains("nothing to change") && almost.contains("the next needs"), "{almost}");

    let server = Server::start(&data, &["--memory", "64MiB"]);
    fails(1, &["grow", path, "--size", "512MiB"], &["busy", "FLASH.GROW"]);
    let dry = grow(&data, "512MiB", &["--dry-run", "--spare", "8"]);
    assert_eq!(dry["spare_units"], value!([8, 9, 10, 11, 12, 13, 14, 15]), "beside a server");
    assert!(server.terminate().success());

    let model = temp.path().join("model");
    format_with(&model, Backend::Model, 256 * MIB, &[]);
    let path = model.to_str().unwrap();
    fails(1, &["grow", path, "--size", "1GiB"], &["`model` device keeps the units", "dump"]);
}

#[test]
fn spare_units_of_a_growth_are_for_new_sets() {
    let (_temp, data) = small(256 * MIB);
    let path = data.to_str().unwrap();
    let grown = grow(&data, "384MiB", &["--store", "2", "--spare", "2"]);
    assert_eq!(grown["spare_units"], value!([10, 11]));
    let table = said(&softflash(["grow", path, "--size", "512MiB", "--dry-run"]));
    assert!(table.contains("0-1,8 -> 0-1,8,12"), "{table}");
    set(&data, "create", &["fast", "--units", "2", "--shard", "1"]);
    softflash_ok(&["volume", "create", path, "index", "8MiB", "--set", "fast"]);
    let of_index = noise(2, 4 * MIB as usize);
    write_volume(&data, "index", &of_index);
    assert_eq!(read_volume(&data, "index", of_index.len()), ("fast".to_owned(), of_index));
    assert_eq!(listed(&data).as_array().unwrap().len(), 5);
    check_clean(&data);
}

/// `FLASH.GROW`.
fn grow_live(server: &Server, words: &[&str]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    server.client().call(&[&[&b"FLASH.GROW"[..]], &words[..]].concat())
}

/// Clients that overwrite some keys and the first part of a volume, round after round, until they
/// are told to stop.
struct Overwriting {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

const HOT_KEYS: u64 = 200;

impl Overwriting {
    fn value_of(key: u64, round: u64) -> Vec<u8> {
        noise(5_000_000 + round * HOT_KEYS + key, 4000)
    }

    fn start(server: &Server) -> Overwriting {
        let stop = Arc::<AtomicBool>::default();
        let (told, mut client) = (Arc::clone(&stop), server.client());
        let keys = std::thread::spawn(move || {
            let mut round = 0;
            while !told.load(Ordering::Relaxed) {
                for key in 0..HOT_KEYS {
                    let value = Overwriting::value_of(key, round);
                    let reply = client.set(format!("hot:{key}").as_bytes(), &value);
                    assert!(reply.is_ok(), "round {round}, key {key}: {reply:?}");
                }
                round += 1;
            }
            round
        });
        let (told, address) = (Arc::clone(&stop), server.address_of("nbd"));
        let volume = std::thread::spawn(move || {
            let (mut disk, mut round) = (NbdClient::connect(address, "disk-0"), 0);
            while !told.load(Ordering::Relaxed) {
                // The same bytes: what is compared later stays.
                assert_eq!(disk.write(0, &Load::part_of(0, 0)), 0);
                assert_eq!(disk.write(MIB, &Load::part_of(0, 1)), 0);
                assert_eq!(disk.flush(), 0);
                round += 1;
            }
            round
        });
        Overwriting { stop, threads: vec![keys, volume] }
    }

    /// Stops; returns the rounds of each client.
    fn stop(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    fn compare(server: &Server, rounds: u64) {
        let mut client = server.client();
        for key in 0..HOT_KEYS {
            let found = client.get(format!("hot:{key}").as_bytes());
            assert!(found == Some(Overwriting::value_of(key, rounds - 1)), "hot key {key}");
        }
    }
}

#[test]
fn a_server_that_is_nearly_full_grows_to_twice_its_size_under_load() {
    let (_temp, data) = small(512 * MIB);
    let (server, mut load, usable, of_volume) = filled(&data);
    let overwriting = Overwriting::start(&server);
    std::thread::sleep(Duration::from_millis(500));
    let reply = grow_live(&server, &["1GiB"]);
    assert!(reply.is_ok(), "{reply:?}");
    assert_eq!(units_of(&server, "store-1"), [2, 3, 10, 11]);
    assert_eq!(units_of(&server, "vol-0"), [4, 5, 12, 13]);
    assert!(grow_live(&server, &["1GiB"]).is_ok(), "nothing to do");
    // More than the directory had room for, without a restart.
    load.write_keys_to(&server, usable / 10 * 17);
    load.write_volumes_to(&server, of_volume / 10 * 17 / MIB);
    let rounds = overwriting.stop();
    assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
    load.compare(&server);
    Overwriting::compare(&server, rounds[0]);
    let units = json_of_units(&server);
    let programs = |unit: u64| units[unit as usize]["bytes_programmed"].as_u64().unwrap();
    assert!((8..16).all(|unit| programs(unit) > MIB), "each new unit takes data: {units}");
    server.kill();

    check_clean(&data);
    let server = serve(&data);
    load.compare(&server);
    Overwriting::compare(&server, rounds[0]);
    assert!(server.terminate().success());
    check_clean(&data);
    assert_eq!(info(&data)["device"]["units"], 16);
}

/// `/api/units`, in the order of their numbers.
fn json_of_units(server: &Server) -> Value {
    let page = crate::support::http::get(server.address_of("http"), "/api/units");
    let mut units: Vec<Value> =
        serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    units.sort_by_key(|unit| unit["unit"].as_u64());
    units.into()
}

/// Killed at any time, a server leaves the device of before or of after, with its data.
#[test]
fn a_server_that_is_killed_while_it_grows_loses_nothing() {
    let (_temp, data) = small(512 * MIB);
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "32MiB", "--set", "vol-0"]);
    let of_disk = noise(6, 16 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    let unit_bytes = info(&data)["device"]["bytes"].as_u64().unwrap() / 8;
    let (mut units, mut grown) = (8, 0);
    for millis in [2, 5, 10, 20, 30, 50, 80, 500] {
        let server = serve(&data);
        assert!(server.client().set(b"key", &of_disk[..MIB as usize]).is_ok());
        let mut client = server.client();
        let size = (MIB + (units + 4) * unit_bytes).to_string();
        client.send(&[b"FLASH.GROW", size.as_bytes()]).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        server.kill();
        check_clean(&data);
        let (of, read) = read_volume(&data, "disk", of_disk.len());
        assert!(of == "vol-0" && read == of_disk, "lost after {millis} ms");
        let now = info(&data);
        let device_units = now["device"]["units"].as_u64().unwrap();
        assert!([units, units + 4].contains(&device_units), "{now}");
        assert!(!data.join("softflash.toml.growing").exists(), "after {millis} ms");
        if device_units > units {
            assert_eq!(now["spare_units"], value!([]), "after {millis} ms");
            (units, grown) = (device_units, grown + 1);
        }
        let server = serve(&data);
        assert!(server.client().get(b"key").unwrap() == of_disk[..MIB as usize]);
        assert!(server.terminate().success());
    }
    assert!((1..8).contains(&grown), "{grown} of 8 growths were complete");
}

#[test]
fn a_server_without_volumes_grows_and_refuses_what_cannot_be() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 256 * MIB, &["--units", "4", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    let refused = |words: &[&str], part: &str| {
        let reply = grow_live(&server, words);
        let error = reply.error().unwrap_or_else(|| panic!("{words:?} is accepted"));
        assert!(error.contains(part), "{words:?}: {error}");
    };
    refused(&["128MiB"], "cannot become smaller");
    refused(&["much"], "`much` is not a size");
    refused(&["ALL"], "a size");
    refused(&["512MiB", "STORE"], "syntax");
    refused(&["512MiB", "SETS", "2"], "syntax");
    refused(&["512MiB", "STORE", "x"], "'x' is no number of units");
    refused(&["512MiB", "STORE", "9"], "9 units are named");
    refused(&["512MiB", "VOLUMES", "1"], "no set for volumes");
    refused(&["8000GiB"], "no space for");
    assert!(!data.join("softflash.toml.growing").exists());
    assert_eq!(info(&data)["format_version"], 4, "nothing has changed");
    assert!(grow_live(&server, &["512MiB", "spare", "2"]).is_ok());
    assert_eq!(units_of(&server, "store-0"), [0, 1, 2, 3, 4, 5]);
    assert!(server.client().set(b"key", b"value").is_ok());
    assert!(server.terminate().success());
    let server = Server::start(&data, &["--memory", "64MiB"]);
    assert_eq!(server.client().get(b"key").unwrap(), b"value");
    assert!(set_of(&server, &["CREATE", "fast", "2"]).is_ok());
    assert_eq!(units_of(&server, "fast"), [6, 7]);
    assert!(server.terminate().success());
    check_clean(&data);
}
