//! `softflash volume move` and `FLASH.VOLUME MOVE`: volumes go from one set to another, on a
//! stopped store and while clients write to them, and a crash leaves each of them in one set.

use crate::nbd::{change, serve, volume as asked, with_volume_units};
use crate::sets::{field, of_set, softflash_ok};
use crate::support::nbd::{FLUSH, NbdClient, WRITE, list as exports};
use crate::support::noise;
use crate::support::program::{binary, check_clean, fails, json, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::time_of_day_us;
use crate::volume_moves::{contents, directory, list, listed, ten_volumes, volume};
use serde_json::{Value, json as value};
use softflash_base::random::Rng;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// The sets of the volumes, by name.
fn sets_of(data: &Path, names: &[&str]) -> Vec<Value> {
    let listed = listed(data);
    let all = listed.as_array().unwrap();
    let set = |name: &&str| all.iter().find(|it| it["name"] == **name).unwrap()["set"].clone();
    names.iter().map(set).collect()
}

fn version(data: &Path) -> Value {
    json(&softflash(["info", data.to_str().unwrap(), "-o", "json"]))["format_version"].clone()
}

#[test]
fn a_volume_moves_with_all_that_share_data_with_it() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let temp = tempfile::tempdir().unwrap();
    let data = directory(&temp, "data", 2, 2);
    ten_volumes(&data, &mut Rng::seeded(seed));
    let (before, held) = (contents(&data), list(&data));
    let path = data.to_str().unwrap();

    // A clone of a clone brings them all.
    let moved = json(&softflash(["volume", "move", path, "a0", "--set", "vol-1", "-o", "json"]));
    assert_eq!(moved["volumes"], value!(["x0", "d0", "a0"]));
    assert_eq!((&moved["from"], &moved["set"]), (&value!("vol-0"), &value!("vol-1")));
    assert!(moved["copied_bytes"].as_u64().unwrap() > 0);
    assert_eq!(sets_of(&data, &["x0", "d0", "a0"]), ["vol-1"; 3]);
    assert_eq!(sets_of(&data, &["b0", "c0", "x1"]), ["vol-0", "vol-0", "vol-1"]);
    let told = volume("move", &data, &["b1", "--set", "vol-0"]);
    assert!(told.contains("moved `b1` from the set `vol-1` to `vol-0`"), "{told}");
    assert_eq!(list(&data), held, "seed {seed}");
    assert!(contents(&data) == before, "seed {seed}: contents differ");
    assert_eq!(version(&data), 4, "a finished move leaves no trace");
    check_clean(&data);
}

#[test]
fn what_cannot_move_is_refused_and_stays() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    softflash_ok(&["set", "resize", path, "vol-1", "--units", "1"]);
    softflash_ok(&["volume", "create", path, "disk", "1GiB", "--set", "vol-0"]);
    crate::sets::write_volume(&data, "disk", &noise(1, 300 * MIB as usize));
    let text = || fs::read_to_string(data.join("softflash.toml")).unwrap();
    let before = text();
    let to = |set: &'static str| ["volume", "move", path, "disk", "--set", set];
    let needed = format!("`disk` hold {} bytes, and the set `vol-1` has room for", 300 * MIB);
    fails(1, &to("vol-1"), &[&needed, "set resize"]);
    fails(1, &to("vol-0"), &["`disk` is in the set `vol-0` already"]);
    fails(1, &to("vol-9"), &["no set for volumes is named `vol-9`", "`vol-0`, `vol-1`"]);
    fails(1, &to("store-0"), &["`store-0`"]);
    fails(1, &["volume", "move", path, "none", "--set", "vol-1"], &["no volume `none`", "list"]);
    fails(2, &["volume", "move", path, "disk"], &["--set"]);
    assert_eq!((text(), &of_set(&data, "vol-1")["used_bytes"]), (before, &value!(0)));
    softflash_ok(&["set", "create", path, "copy", "--units", "1", "--shard", "1"]);
    softflash_ok(&["set", "pair", path, "vol-1", "copy"]);
    fails(1, &to("vol-1"), &["`vol-1` is one of a pair", "set delete"]);
    softflash_ok(&["set", "delete", path, "copy"]);
    assert_eq!(sets_of(&data, &["disk"]), ["vol-0"]);
    check_clean(&data);

    let server = serve(&data);
    let refused = |words: &[&str], parts: &[&str]| {
        let reply = asked(&server, words);
        let error = reply.error().unwrap_or_else(|| panic!("{words:?} was done"));
        parts.iter().for_each(|part| assert!(error.contains(part), "{error}"));
    };
    refused(&["MOVE", "disk", "vol-1"], &[&needed, "FLASH.SET RESIZE"]);
    refused(&["MOVE", "disk", "vol-0"], &["already"]);
    refused(&["MOVE", "disk", "vol-9"], &["no set for volumes is named `vol-9`"]);
    refused(&["MOVE", "none", "vol-1"], &["no volume `none`"]);
    assert!(asked(&server, &["MOVE", "disk"]).error().is_some());
    assert!(server.terminate().success());
    check_clean(&data);
}

/// Writes to a volume until told to stop: block `n` of it has the noise of the last round that
/// reached it. Returns the rounds that were complete and flushed.
fn write_rounds(mut client: NbdClient, stop: &AtomicBool, rounds: &AtomicU64) {
    for round in 1.. {
        for block in 0..BLOCKS {
            let data = noise(round * BLOCKS + block, BLOCK_BYTES);
            match client.try_call(WRITE, 0, block * BLOCK_BYTES as u64, BLOCK_BYTES as u32, &data) {
                Ok(0) => {}
                Ok(error) => panic!("a write failed with {error}"),
                Err(_) => return,
            }
            if stop.load(Ordering::Relaxed) && block + 1 == BLOCKS {
                assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
                rounds.store(round, Ordering::Relaxed);
                return;
            }
        }
        match client.try_call(FLUSH, 0, 0, 0, &[]) {
            Ok(0) => rounds.store(round, Ordering::Relaxed),
            Ok(error) => panic!("a flush failed with {error}"),
            Err(_) => return,
        }
    }
}

const BLOCKS: u64 = 40;
/// They are not of whole mapping units.
const BLOCK_BYTES: usize = 200_000;

/// Whether each block has the data of round `flushed`, or of the one after it.
fn check_rounds(found: &[u8], flushed: u64) {
    for block in 0..BLOCKS {
        let start = block as usize * BLOCK_BYTES;
        let found = &found[start..start + BLOCK_BYTES];
        // A later round may have reached some of its mapping units.
        let old = noise(flushed * BLOCKS + block, BLOCK_BYTES);
        let new = noise((flushed + 1) * BLOCKS + block, BLOCK_BYTES);
        let zeros = vec![0; BLOCK_BYTES];
        let old = if flushed == 0 { zeros } else { old };
        let is_either = |place: usize| found[place] == old[place] || found[place] == new[place];
        let wrong = (0..BLOCK_BYTES).find(|&place| !is_either(place));
        assert_eq!(wrong, None, "block {block} after round {flushed}");
    }
}

fn has_field(entry: &Reply, name: &str) -> bool {
    let Reply::Array(words) = entry else { return false };
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().any(|[key, _]| key.clone().text() == name)
}

fn moved(server: &Server, name: &str, set: &str) {
    let reply = asked(server, &["MOVE", name, set]);
    assert!(reply.is_ok(), "MOVE {name} {set}: {reply:?}");
}

fn entry(server: &Server, name: &str) -> Reply {
    let Reply::Array(all) = asked(server, &["LIST"]) else { panic!("no list") };
    let mut of_name = all.into_iter().filter(|it| field(it, "name").clone().text() == name);
    let entry = of_name.next().unwrap_or_else(|| panic!("`{name}` is not listed"));
    assert!(of_name.next().is_none(), "`{name}` is listed twice");
    entry
}

#[test]
fn a_volume_moves_between_threads_while_clients_write() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "128MiB", "--set", "vol-0"]);
    crate::sets::write_volume(&data, "disk", &noise(0, 100 * MIB as usize));
    let server = serve(&data);
    change(&server, &["SNAPSHOT", "disk", "monday"]);
    change(&server, &["CLONE", "disk", "monday", "trial"]);
    let address = server.address_of("nbd");
    let mut trial = NbdClient::connect(address, "trial");
    assert_eq!(trial.write(50 * MIB + 77, &noise(5, 100_000)), 0);
    let mut monday = NbdClient::connect(address, "disk@monday");
    let (stop, rounds, seen) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let client = NbdClient::connect(address, "disk");
        let (stop, rounds, seen) = (&stop, &rounds, &seen);
        let server = &server;
        scope.spawn(|| write_rounds(client, stop, rounds));
        let looking = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let entry = entry(server, "disk");
                if has_field(&entry, "moving_to") {
                    let left = field(&entry, "left_bytes").clone().integer();
                    assert!((0..300 * MIB as i64).contains(&left), "{left}");
                    if seen.fetch_add(1, Ordering::Relaxed) == 0 {
                        let refused = asked(server, &["SNAPSHOT", "disk", "friday"]);
                        let error = refused.error().unwrap_or_default();
                        assert!(error.contains("is moving to the set"), "{error}");
                    }
                }
            }
        });
        for set in ["vol-1", "vol-0", "vol-1"] {
            let before = rounds.load(Ordering::Relaxed);
            moved(server, "trial", set);
            for name in ["disk", "trial"] {
                assert_eq!(field(&entry(server, name), "set").clone().text(), set);
            }
            // The clients go on.
            assert!(
                monday.read(30 * MIB, 4096).unwrap()
                    == noise(0, 100 * MIB as usize)[30 * MIB as usize..][..4096]
            );
            assert!(trial.read(50 * MIB + 77, 100_000).unwrap() == noise(5, 100_000));
            assert_eq!(trial.write(60 * MIB, &noise(6, 10_000)), 0);
            while rounds.load(Ordering::Relaxed) < before + 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        stop.store(true, Ordering::Relaxed);
        looking.join().unwrap();
    });
    assert!(seen.load(Ordering::Relaxed) > 0, "no move was seen under way");
    assert_eq!(exports(address), ["disk", "disk@monday", "trial"]);
    // New clients find them, too, and snapshots can be taken again.
    let mut disk = NbdClient::connect(address, "disk");
    let last = rounds.load(Ordering::Relaxed);
    let written = BLOCKS * BLOCK_BYTES as u64;
    let expected: Vec<u8> =
        (0..BLOCKS).flat_map(|block| noise(last * BLOCKS + block, BLOCK_BYTES)).collect();
    assert!(disk.read(0, written as usize).unwrap() == expected, "a write was lost");
    change(&server, &["SNAPSHOT", "disk", "friday"]);
    assert_eq!(trial.call(FLUSH, 0, 0, 0), 0);
    server.kill();

    check_clean(&data);
    let found = contents(&data);
    assert!(found["disk"][..written as usize] == expected && found["disk@friday"] == found["disk"]);
    let monday = noise(0, 100 * MIB as usize);
    assert!(found["disk@monday"][..monday.len()] == monday);
    let mut of_trial = found["disk@monday"].clone();
    of_trial[(50 * MIB + 77) as usize..][..100_000].copy_from_slice(&noise(5, 100_000));
    of_trial[60 * MIB as usize..][..10_000].copy_from_slice(&noise(6, 10_000));
    assert!(found["trial"] == of_trial);
    assert_eq!(sets_of(&data, &["disk", "trial"]), ["vol-1"; 2]);
    assert_eq!(of_set(&data, "vol-0")["used_bytes"], 0, "nothing is left behind");
    assert_eq!(version(&data), 4);
}

/// Killed at any time, a server leaves a volume in one of the two sets, with all flushed data.
#[test]
fn a_server_that_is_killed_while_a_volume_moves_loses_nothing() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "64MiB", "--set", "vol-0"]);
    softflash_ok(&["volume", "snapshot", path, "disk", "empty"]);
    let (mut outcomes, mut most_millis) = ([0, 0], 60);
    for number in 0..40 {
        let (before, others) = match sets_of(&data, &["disk"])[0] == "vol-0" {
            true => ("vol-0", "vol-1"),
            false => ("vol-1", "vol-0"),
        };
        let server = serve(&data);
        let address = server.address_of("nbd");
        let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let client = NbdClient::connect(address, "disk");
            let (stop, rounds) = (&stop, &rounds);
            scope.spawn(move || write_rounds(client, stop, rounds));
            let mut client = server.client();
            client.send(&[b"FLASH.VOLUME", b"MOVE", b"disk", others.as_bytes()]).unwrap();
            std::thread::sleep(Duration::from_millis(rng.below(most_millis)));
            server.kill();
        });
        let after = sets_of(&data, &["disk"]);
        assert!(after == [before] || after == [others], "kill {number}: in {after:?}");
        outcomes[usize::from(after == [others])] += 1;
        // As long as a move takes on this machine, and a little longer.
        most_millis = if after == [others] { most_millis } else { most_millis * 5 / 4 };
        let listed = list(&data);
        assert_eq!(listed.as_array().unwrap().len(), 1, "kill {number}: {listed}");
        let found = contents(&data);
        assert_eq!(found.len(), 2, "kill {number}");
        check_rounds(&found["disk"], rounds.load(Ordering::Relaxed));
        check_clean(&data);
        let empty = if after == [before] { others } else { before };
        assert_eq!(of_set(&data, empty)["used_bytes"], 0, "kill {number}: a copy is left");
        softflash_ok(&["volume", "rollback", path, "disk", "empty", "--force"]);
        if number >= 9 && outcomes.iter().all(|&count| count > 0) {
            break;
        }
    }
    println!("{} kills before the switch, {} after it", outcomes[0], outcomes[1]);
    assert!(outcomes.iter().all(|&count| count > 0), "both outcomes: {outcomes:?}");
    assert_eq!(version(&data), 4);
}

#[test]
fn a_command_that_is_killed_or_interrupted_leaves_a_volume_in_one_set() {
    let seed = u64::from(time_of_day_us());
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    let data = directory(&temp, "data", 2, 2);
    ten_volumes(&data, &mut rng);
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "large", "64MiB", "--set", "vol-0"]);
    crate::sets::write_volume(&data, "large", &noise(3, 48 * MIB as usize));
    let before = contents(&data);
    let began = Instant::now();
    softflash_ok(&["volume", "move", path, "large", "--set", "vol-1"]);
    let mut most_millis = began.elapsed().as_millis() as u64 * 5 / 4;
    let mut outcomes = [0, 0];
    for number in 0..40 {
        let from = sets_of(&data, &["large"])[0].clone();
        let to = if from == "vol-0" { "vol-1" } else { "vol-0" };
        let mut command = Command::new(binary());
        command.args(["volume", "move", path, "large", "--set", to]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(rng.below(most_millis)));
        let signal = if rng.chance(0.3) { libc::SIGTERM } else { libc::SIGKILL };
        crate::support::signals::send(&child, signal);
        child.wait().unwrap();
        // A command that reads finds each volume once; so does one that writes.
        let listed = list(&data);
        assert_eq!(listed.as_array().unwrap().len(), 11, "seed {seed}, {number}: {listed}");
        let has_moved = sets_of(&data, &["large"])[0] != from;
        outcomes[usize::from(has_moved)] += 1;
        // As long as a move takes on this machine now, and a little longer.
        most_millis = if has_moved { most_millis } else { most_millis * 5 / 4 };
        assert!(contents(&data) == before, "seed {seed}, {number}: contents differ");
        assert_eq!(version(&data), 4);
        if number >= 9 && outcomes.iter().all(|&count| count > 0) {
            break;
        }
    }
    check_clean(&data);
    println!("{} ends before the switch, {} after it", outcomes[0], outcomes[1]);
    assert!(outcomes.iter().all(|&count| count > 0), "both outcomes: {outcomes:?}");
}

#[test]
fn an_unfinished_move_is_finished_and_a_wrong_record_of_one_is_refused() {
    let (_temp, data) = with_volume_units();
    let path = data.join("softflash.toml");
    let text = fs::read_to_string(&path).unwrap();
    let unfinished = "[unfinished_move]\nvolumes = [\"disk\"]\nfrom = 1\nto = 2\n\
                      has_arrived = false\nformat_version = 4\n";
    let parts = [text.replace("format_version = 4", "format_version = 7"), unfinished.to_owned()];
    fs::write(&path, parts.concat()).unwrap();
    let data = data.to_str().unwrap();
    assert_eq!(version(data.as_ref()), 7);
    let listed = said(&softflash(["volume", "list", data]));
    assert!(listed.contains("no volumes"), "{listed}");
    // A command that writes finishes it.
    softflash_ok(&["volume", "create", data, "disk", "1MiB", "--set", "vol-1"]);
    assert_eq!(version(data.as_ref()), 4);
    for (wrong, problem) in [
        (text.replace("format_version = 4", "format_version = 7"), "needs the table"),
        ([text.as_str(), unfinished].concat(), "needs format_version 7"),
        (parts.concat().replace("to = 2", "to = 1"), "no move between two sets"),
    ] {
        fs::write(&path, wrong).unwrap();
        fails(1, &["volume", "list", data], &[problem]);
    }
}
