//! Moves of volumes that fail on a server: what clients have under way then, and the record of the
//! move.

use crate::nbd::{change, serve, volume as asked};
use crate::sets::{field, of_set, softflash_ok, write_volume};
use crate::support::nbd::{NbdClient, WRITE};
use crate::support::noise;
use crate::support::program::check_clean;
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::volume_moves::directory;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Two sets of one small unit each: `disk` with so much data in one, `other` in the other.
fn two_sets(temp: &TempDir, mib: u64) -> PathBuf {
    let data = directory(temp, "data", 2, 2);
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "96MiB", "--set", "vol-0"]);
    softflash_ok(&["volume", "create", path, "other", "256MiB", "--set", "vol-1"]);
    write_volume(&data, "disk", &noise(1, (mib * MIB) as usize));
    data
}

/// Writes to `other` until its set has room for so much and a little more; returns where it ends.
fn leave_room(client: &mut NbdClient, usable: u64, mib: u64) -> u64 {
    let held = usable / MIB - mib - 6;
    for number in 0..held {
        assert_eq!(client.write(number * MIB, &noise(number, MIB as usize)), 0);
    }
    held * MIB
}

fn usable(data: &Path) -> u64 {
    of_set(data, "vol-1")["usable_bytes"].as_u64().unwrap()
}

fn entry(server: &Server, name: &str) -> Vec<(String, Reply)> {
    let Reply::Array(all) = asked(server, &["LIST"]) else { panic!("no list") };
    let found = all.into_iter().find(|it| field(it, "name").clone().text() == name);
    let Some(Reply::Array(words)) = found else { panic!("`{name}` is not listed") };
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().map(|[key, value]| (key.clone().text(), value.clone())).collect()
}

fn number(server: &Server, name: &str, key: &str) -> Option<i64> {
    let entry = entry(server, name);
    entry.into_iter().find(|(found, _)| found == key).map(|(_, value)| value.integer())
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(started.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Writes until the set takes nothing more.
fn fill(client: &mut NbdClient, held: u64) {
    let mut offset = held;
    for bytes in [MIB as usize, 4096] {
        while client.write(offset, &noise(offset, bytes)) == 0 {
            offset += bytes as u64;
        }
    }
    assert!(offset > held, "the set was full before");
}

/// A client whose requests wait for a limit is disconnected, so that the volume can leave. What has
/// not begun then is never carried out.
#[test]
fn requests_that_wait_for_a_limit_are_not_carried_out_behind_a_move() {
    let temp = tempfile::tempdir().unwrap();
    let data = two_sets(&temp, 8);
    let usable = usable(&data);
    let server = serve(&data);
    let address = server.address_of("nbd");
    let mut other = NbdClient::connect(address, "other");
    let held = leave_room(&mut other, usable, 8);
    change(&server, &["SET", "disk", "iops", "1"]);
    let mut slow = NbdClient::connect(address, "disk");
    for number in 0..40_u64 {
        slow.send(WRITE, 0, (16 + number) * MIB, 4096, &noise(number, 4096)).unwrap();
    }
    let refused = std::thread::scope(|scope| {
        let moving = scope.spawn(|| asked(&server, &["MOVE", "disk", "vol-1"]));
        let copied = || number(&server, "disk", "copied_bytes") >= Some(8 * MIB as i64);
        wait_for("copy of the data", copied);
        // The last changes find no room.
        fill(&mut other, held);
        moving.join().unwrap()
    });
    let error = refused.error().unwrap_or_default().to_owned();
    assert!(error.contains("space"), "{refused:?}");
    let used = || number(&server, "disk", "used_bytes").unwrap();
    let at_once = used();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(used(), at_once, "a write was carried out behind the move");
    assert!((9..40).contains(&(at_once / 4096 - 2048)), "{at_once} bytes");
    // Clients go on.
    change(&server, &["SET", "disk", "iops", "none"]);
    let mut client = NbdClient::connect(address, "disk");
    assert_eq!(client.write(16 * MIB, &noise(99, 4096)), 0);
    assert!(client.read(16 * MIB, 4096).unwrap() == noise(99, 4096));
    assert!(server.terminate().success());
    check_clean(&data);
}

/// The next start would delete a new volume whose name the record of a move has.
#[test]
fn names_of_a_move_stay_reserved_until_its_end_is_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let data = two_sets(&temp, 60);
    let usable = usable(&data);
    let server = serve(&data);
    let address = server.address_of("nbd");
    let mut other = NbdClient::connect(address, "other");
    let held = leave_room(&mut other, usable, 60);
    let (manifest, blocker) = (data.join("softflash.toml"), data.join("softflash.toml.tmp"));
    let is_recorded = || fs::read_to_string(&manifest).unwrap().contains("[unfinished_move]");
    let refused = std::thread::scope(|scope| {
        let moving = scope.spawn(|| asked(&server, &["MOVE", "disk", "vol-1"]));
        wait_for("record of the move", is_recorded);
        // No manifest can be written from now on.
        fs::create_dir(&blocker).unwrap();
        fill(&mut other, held);
        moving.join().unwrap()
    });
    assert!(refused.error().is_some() && is_recorded(), "{refused:?}");
    drop(other);
    change(&server, &["DELETE", "other"]);
    change(&server, &["DELETE", "disk"]);
    for words in [
        &["CREATE", "disk", "8MiB", "SET", "vol-1"][..],
        &["CREATE", "disk", "8MiB", "SET", "vol-0"],
    ] {
        let refused = asked(&server, words);
        let error = refused.error().unwrap_or_default();
        assert!(
            error.contains("`disk` is a name of a move of volumes whose record is still there"),
            "{refused:?}"
        );
    }
    change(&server, &["CREATE", "another", "8MiB", "SET", "vol-1"]);
    let refused = asked(&server, &["RENAME", "another", "disk"]);
    assert!(refused.error().is_some(), "{refused:?}");
    // Once it can be written, the server records the end by itself.
    fs::remove_dir(&blocker).unwrap();
    wait_for("end of the move", || !is_recorded());
    wait_for("free name", || asked(&server, &["RENAME", "another", "disk"]).is_ok());
    server.kill();
    let server = serve(&data);
    assert_eq!(number(&server, "disk", "size_bytes"), Some(8 * MIB as i64));
    assert!(server.terminate().success());
    check_clean(&data);
}
