//! The sets of units: of a stopped store and of a server.

use crate::nbd::{change, serve, volume, with_volume_units};
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{
    Backend, binary, check_clean, fails, format_with, json, said, softflash,
};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::signals::send;
use crate::volumes::on_domains;
use serde_json::{Value, json as value};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

pub fn listed(data: &Path) -> Value {
    json(&softflash(["set", "list", data.to_str().unwrap(), "-o", "json"]))
}

fn column(sets: &Value, name: &str) -> Vec<Value> {
    sets.as_array().unwrap().iter().map(|set| set[name].clone()).collect()
}

/// The field of a set in the reply of a server.
pub fn field<'a>(set: &'a Reply, name: &str) -> &'a Reply {
    let Reply::Array(words) = set else { panic!("{set:?} is no map") };
    let (pairs, _) = words.as_chunks::<2>();
    let of_name = |[key, _]: &&[Reply; 2]| key.clone().text() == name;
    &pairs.iter().find(of_name).unwrap_or_else(|| panic!("`{name}` is missing in {set:?}"))[1]
}

#[test]
fn each_owner_of_units_is_a_set_with_its_space() {
    let (_temp, data) = with_volume_units();
    let sets = listed(&data);
    assert_eq!(column(&sets, "name"), ["store-0", "store-1", "vol-0", "vol-1"]);
    assert_eq!(column(&sets, "kind"), ["store", "store", "mapped", "mapped"]);
    assert_eq!(column(&sets, "id"), [0, 0, 1, 2]);
    assert_eq!(column(&sets, "shard"), [0, 1, 0, 1]);
    assert_eq!(value!(column(&sets, "units")), value!([[0, 1], [2, 3], [4, 5], [6, 7]]));
    assert_eq!(value!(column(&sets, "op_percent")), value!([null, null, 7, 7]));
    for set in sets.as_array().unwrap() {
        let usable = set["usable_bytes"].as_u64().unwrap();
        assert!(usable > 256 * MIB && usable < 512 * MIB, "{set}");
        assert!(set["used_bytes"].as_u64().unwrap() < 64 * MIB, "{set}");
        for none in ["waf", "pair", "window"] {
            assert!(set[none].is_null(), "{set}");
        }
        assert!(set["erases_mean"].as_f64().unwrap() < 10.0, "{set}");
    }
    let table = said(&softflash(["set", "list", data.to_str().unwrap()]));
    for part in ["erases mean", "vol-1", "6-7", "7 %"] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }
}

#[test]
fn a_server_lists_its_sets_with_their_write_amplification() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    fails(1, &["set", "list", data.to_str().unwrap()], &["busy", "FLASH.SET LIST"]);
    let mut client = server.client();
    for number in 0..64 {
        assert!(client.set(format!("key{number}").as_bytes(), &noise(1, 100_000)).is_ok());
    }
    change(&server, &["CREATE", "disk", "64MiB"]);
    let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
    assert_eq!(disk.write(0, &noise(2, 8 * MIB as usize)), 0);
    let Reply::Array(sets) = client.call(&[b"FLASH.SET", b"LIST"]) else { panic!("no list") };
    let names: Vec<String> = sets.iter().map(|set| field(set, "name").clone().text()).collect();
    assert_eq!(names, ["store-0", "store-1", "vol-0", "vol-1"]);
    let waf = |set: &Reply| -> Option<f64> {
        match field(set, "waf").clone() {
            Reply::Bulk(None) => None,
            other => Some(other.text().parse().unwrap()),
        }
    };
    let (of_store, of_volumes) = sets.split_at(2);
    for set in of_store {
        assert!(waf(set).is_some_and(|waf| waf > 1.0), "{set:?}");
        assert!(field(set, "used_bytes").clone().integer() > 0, "{set:?}");
    }
    let wafs: Vec<Option<f64>> = of_volumes.iter().map(waf).collect();
    assert!(
        wafs.contains(&None) && wafs.iter().flatten().all(|waf| (1.0..1.5).contains(waf)),
        "only one domain was written to: {wafs:?}"
    );
    let used: i64 = of_volumes.iter().map(|set| field(set, "used_bytes").clone().integer()).sum();
    assert_eq!(used, 8 * MIB as i64);
    assert!(matches!(client.call(&[b"FLASH.SET", b"HELP"]), Reply::Array(_)));
    assert!(client.call(&[b"FLASH.SET", b"LIST", b"all"]).error().is_some());
    drop(disk);
    assert!(server.terminate().success());
    let sets = listed(&data);
    let used: u64 = column(&sets, "used_bytes")[2..].iter().map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(used, 8 * MIB);
}

#[test]
fn a_directory_without_volumes_has_the_sets_of_its_shards() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 * MIB, &["--units", "4", "--shards", "1"]);
    let sets = listed(&data);
    assert_eq!(column(&sets, "name"), ["store-0"]);
    assert_eq!(value!(column(&sets, "units")), value!([[0, 1, 2, 3]]));
}

/// A subcommand of `set` with success, and its JSON.
pub fn set(data: &Path, subcommand: &str, more: &[&str]) -> Value {
    let words = [&["set", subcommand, data.to_str().unwrap()], more, &["-o", "json"]].concat();
    json(&softflash(words))
}

pub fn of_set(data: &Path, name: &str) -> Value {
    let sets = listed(data);
    let found = sets.as_array().unwrap().iter().find(|set| set["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no `{name}` in {sets}"))
}

pub fn write_volume(data: &Path, name: &str, bytes: &[u8]) {
    on_domains(data, async |_, domain| {
        if let Ok(volume) = domain.volume(name) {
            volume.write(0, bytes).await.unwrap();
        }
    });
}

/// The name of the set that holds a volume, and the beginning of its data.
pub fn read_volume(data: &Path, name: &str, bytes: usize) -> (String, Vec<u8>) {
    let found = std::cell::RefCell::new(None);
    on_domains(data, async |of, domain| {
        if let Ok(volume) = domain.volume(name) {
            let mut read = vec![0; bytes];
            volume.read(0, &mut read).await.unwrap();
            *found.borrow_mut() = Some((of.name.clone(), read));
        }
    });
    found.into_inner().unwrap()
}

/// A unit passes from a set with data to a new one, and back. The data are compared after each
/// step, and the sizes follow the units.
#[test]
fn a_unit_passes_to_a_new_set_and_back() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let before = listed(&data);
    softflash_ok(&["volume", "create", path, "disk", "150MiB", "--set", "vol-0"]);
    let of_disk = noise(1, 48 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    let is_whole = |data: &Path| {
        let (set, read) = read_volume(data, "disk", of_disk.len());
        assert!(set == "vol-0" && read == of_disk, "`disk` has lost data, in {set}");
    };

    let shrunk = set(&data, "resize", &["vol-0", "--units", "1"]);
    assert_eq!((&shrunk["units"], &shrunk["spare_units"]), (&value!([4]), &value!([5])));
    let state = of_set(&data, "vol-0");
    assert_eq!((&state["units"], &state["used_bytes"]), (&value!([4]), &value!(48 * MIB)));
    assert!(state["usable_bytes"].as_u64().unwrap() < before[2]["usable_bytes"].as_u64().unwrap());
    is_whole(&data);
    let older_table = std::fs::read(data.join("softflash.toml")).unwrap();
    let info = json(&softflash(["info", path, "-o", "json"]));
    assert_eq!((&info["format_version"], &info["spare_units"]), (&value!(5), &value!([5])));
    let units = json(&softflash(["units", path, "-o", "json"]));
    assert_eq!(column(&units, "unit"), [0, 1, 2, 3, 4, 5, 6, 7]);

    let created = set(&data, "create", &["fast", "--units", "1", "--shard", "1", "--op", "20"]);
    assert_eq!((&created["units"], &created["spare_units"]), (&value!([5]), &value!([])));
    let state = of_set(&data, "fast");
    assert_eq!(
        (&state["id"], &state["shard"], &state["kind"]),
        (&value!(3), &value!(1), &value!("mapped"))
    );
    assert_eq!((&state["op_percent"], &state["used_bytes"]), (&value!(20), &value!(0)));
    let created = said(&softflash(["volume", "create", path, "index", "8MiB", "--set", "fast"]));
    assert!(created.contains("created volume `index`"), "{created}");
    let of_index = noise(2, 4 * MIB as usize);
    write_volume(&data, "index", &of_index);
    assert_eq!(read_volume(&data, "index", of_index.len()), ("fast".to_owned(), of_index.clone()));

    let server = serve(&data);
    change(&server, &["CREATE", "scratch", "8MiB", "SET", "fast", "weight", "200"]);
    let refused = volume(&server, &["CREATE", "other", "8MiB", "set", "slow"]);
    let refused = refused.error().unwrap();
    assert!(
        refused.contains("`slow`") && refused.contains("`vol-0`, `vol-1`, `fast`"),
        "{refused}"
    );
    let export = |name: &str| NbdClient::connect(server.address_of("nbd"), name);
    let (mut disk, mut index, mut scratch) = (export("disk"), export("index"), export("scratch"));
    assert_eq!(scratch.write(0, &noise(3, MIB as usize)), 0);
    assert_eq!(disk.write(64 * MIB, &noise(4, MIB as usize)), 0);
    assert!(disk.read(0, MIB as usize).unwrap() == of_disk[..MIB as usize]);
    assert!(index.read(0, MIB as usize).unwrap() == of_index[..MIB as usize]);
    let Reply::Array(sets) = server.client().call(&[b"FLASH.SET", b"LIST"]) else {
        panic!("no list")
    };
    let used = |set: &Reply| field(set, "used_bytes").clone().integer();
    let used: Vec<i64> = sets[2..].iter().map(used).collect();
    assert_eq!(used, [49, 0, 5].map(|mebibytes| mebibytes * MIB as i64));
    fails(1, &["set", "resize", path, "vol-0", "--units", "2"], &["busy", "FLASH.SET RESIZE"]);
    drop((disk, index, scratch));
    assert!(server.terminate().success());
    is_whole(&data);
    let (of_scratch, read) = read_volume(&data, "scratch", MIB as usize);
    assert!(of_scratch == "fast" && read == noise(3, MIB as usize));
    check_clean(&data);
    let newest_table = std::fs::read(data.join("softflash.toml")).unwrap();
    std::fs::write(data.join("softflash.toml"), older_table).unwrap();
    fails(1, &["volume", "list", path], &["`vol-0`", "table of sets is older than the flash"]);
    std::fs::write(data.join("softflash.toml"), newest_table).unwrap();

    fails(1, &["set", "delete", path, "fast"], &["`fast` holds 2 volumes", "`index`"]);
    for name in ["index", "scratch"] {
        softflash_ok(&["volume", "delete", path, name, "--force"]);
    }
    let deleted = set(&data, "delete", &["fast"]);
    assert_eq!((&deleted["units"], &deleted["spare_units"]), (&value!([]), &value!([5])));
    assert_eq!(column(&listed(&data), "name"), ["store-0", "store-1", "vol-0", "vol-1"]);
    let grown = set(&data, "resize", &["vol-0", "--units", "2"]);
    assert_eq!((&grown["units"], &grown["spare_units"]), (&value!([4, 5]), &value!([])));
    let state = of_set(&data, "vol-0");
    assert_eq!(state["usable_bytes"], before[2]["usable_bytes"]);
    assert_eq!(state["used_bytes"], 49 * MIB);
    is_whole(&data);
    let created = set(&data, "resize", &["vol-1", "--units", "1"]);
    assert_eq!(created["spare_units"], value!([7]));
    set(&data, "create", &["fast", "--units", "1"]);
    assert_eq!(of_set(&data, "fast")["id"], 4, "numbers are never used twice");
    check_clean(&data);
}

pub fn softflash_ok(words: &[&str]) {
    let output = softflash(words);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
}

#[test]
fn wrong_changes_of_sets_are_refused_and_change_nothing() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let before = listed(&data);
    for wrong in [
        &["create", path, "fast"][..],
        &["create", path, "fast", "--units", "0"],
        &["create", path, "fast", "--units", "1", "--op", "101"],
        &["resize", path, "vol-0", "--units", "0"],
        &["resize", path, "vol-0"],
        &["delete", path],
    ] {
        fails(2, &[&["set"], wrong].concat(), &[]);
    }
    let create = ["set", "create", path];
    fails(2, &[&create[..], &["a b", "--units", "1"]].concat(), &["`a b`", "letters, digits"]);
    let spare = ["needs 1,", "there are 0", "softflash set resize"];
    fails(1, &[&create[..], &["fast", "--units", "1"]].concat(), &spare);
    fails(1, &[&create[..], &["vol-1", "--units", "1"]].concat(), &["already"]);
    let shard = ["--units", "1", "--shard", "2"];
    fails(1, &[&create[..], &["fast"], &shard].concat(), &["shard 2", "numbered from 0"]);
    let resize =
        |name: &'static str, units: &'static str| ["set", "resize", path, name, "--units", units];
    fails(1, &resize("vol-0", "3"), &spare);
    fails(1, &resize("slow", "1"), &["`slow`", "`vol-0`, `vol-1`"]);
    fails(1, &resize("store-0", "3"), &spare);
    fails(1, &resize("store-2", "1"), &["`store-2`", "`vol-0`, `vol-1`"]);
    fails(
        1,
        &["set", "delete", path, "store-1"],
        &["`store-1`", "softflash set resize", "`vol-0`"],
    );
    fails(1, &["volume", "create", path, "disk", "1MiB", "--set", "slow"], &["`slow`"]);
    fails(1, &["volume", "create", path, "disk", "1MiB", "--set", "store-0"], &["`store-0`"]);
    assert!(said(&softflash(resize("vol-0", "2"))).contains("nothing to change"));
    let after = listed(&data);
    for same in ["id", "name", "units", "op_percent", "used_bytes", "usable_bytes"] {
        assert_eq!(column(&after, same), column(&before, same));
    }
    let info = json(&softflash(["info", path, "-o", "json"]));
    assert_eq!(info["format_version"], 4, "nothing was changed");

    softflash_ok(&["volume", "create", path, "disk", "400MiB", "--set", "vol-0"]);
    let of_disk = noise(5, 300 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    fails(1, &resize("vol-0", "1"), &["bytes"]);
    assert!(read_volume(&data, "disk", of_disk.len()).1 == of_disk);
    assert_eq!(json(&softflash(["info", path, "-o", "json"]))["format_version"], 4);
}

#[test]
fn a_directory_without_sets_for_volumes_serves_keys() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    for name in ["vol-0", "vol-1"] {
        set(&data, "delete", &[name]);
    }
    assert_eq!(column(&listed(&data), "name"), ["store-0", "store-1"]);
    fails(1, &["volume", "list", path], &["softflash set create"]);
    fails(1, &["set", "delete", path, "vol-0"], &["there are none"]);
    let server = Server::start(&data, &["--memory", "64MiB"]);
    assert!(server.client().set(b"key", b"value").is_ok());
    let none = volume(&server, &["CREATE", "disk", "8MiB"]);
    let none = none.error().unwrap();
    assert!(none.contains("FLASH.SET CREATE"), "{none}");
    assert!(server.terminate().success());
    check_clean(&data);
    fails(1, &["serve", "--data", path, "--nbd", "127.0.0.1:0"], &["softflash set create"]);
    let all = set(&data, "create", &["all", "--units", "4"]);
    assert_eq!((&all["units"], &all["spare_units"]), (&value!([4, 5, 6, 7]), &value!([])));
    let server = serve(&data);
    assert_eq!(server.client().get(b"key").unwrap(), b"value");
    change(&server, &["CREATE", "disk", "8MiB"]);
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn the_units_of_a_channel_are_in_one_set() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let path = data.to_str().unwrap();
    let array = ["--backend", "model", "--preset", "tssd", "--shards", "1", "--volume-units", "8"];
    softflash_ok(&[&["format", path], &array[..]].concat());
    fails(1, &["set", "resize", path, "vol-0", "--units", "5"], &["split a channel"]);
    fails(1, &["set", "resize", path, "store-0", "--units", "195"], &["split a channel"]);
    let shrunk = set(&data, "resize", &["vol-0", "--units", "4"]);
    assert_eq!(shrunk["spare_units"], value!([200, 201, 202, 203]));
    fails(1, &["set", "create", path, "fast", "--units", "2"], &["split a channel"]);
    let names = || column(&json(&softflash(["info", path, "-o", "json"]))["sets"], "name");
    assert_eq!(names(), ["store-0", "vol-0"]);
    set(&data, "create", &["fast", "--units", "4"]);
    assert_eq!(names(), ["store-0", "vol-0", "fast"]);
}

/// A drain that is interrupted or killed at any time leaves the set with its units and its data, or
/// is complete; the command works afterwards.
#[test]
fn a_resize_that_ends_early_loses_nothing() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    softflash_ok(&["volume", "create", path, "disk", "150MiB", "--set", "vol-0"]);
    let of_disk = noise(6, 100 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    let (signals, mut interrupted) = ([libc::SIGINT, libc::SIGKILL], 0);
    for (signal, millis) in signals.into_iter().cycle().zip([20, 10, 50, 40, 100, 80, 200, 160]) {
        let mut resize = Command::new(binary());
        resize.args(["set", "resize", path, "vol-0", "--units", "1"]);
        let child = resize.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let units = of_set(&data, "vol-0")["units"].clone();
        if output.status.success() {
            assert_eq!(units, value!([4]), "after {millis} ms");
            set(&data, "resize", &["vol-0", "--units", "2"]);
        } else {
            // It may be killed when the table is written.
            let is_complete = output.status.code().is_none() && units == value!([4]);
            interrupted += i32::from(!is_complete);
            match is_complete {
                true => drop(set(&data, "resize", &["vol-0", "--units", "2"])),
                false => assert_eq!(units, value!([4, 5]), "after {millis} ms: {}", said(&output)),
            }
            let is_told =
                output.status.code() != Some(1) || said(&output).contains("can be repeated");
            assert!(is_told, "after {millis} ms: {}", said(&output));
        }
        let (of, read) = read_volume(&data, "disk", of_disk.len());
        assert!(of == "vol-0" && read == of_disk, "lost after {millis} ms: {}", said(&output));
    }
    assert!(interrupted > 0, "no drain was interrupted");
    set(&data, "resize", &["vol-0", "--units", "1"]);
    assert!(read_volume(&data, "disk", of_disk.len()).1 == of_disk);
    check_clean(&data);
}

/// FLASH.SET with these words.
pub fn set_of(server: &Server, words: &[&str]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    server.client().call(&[&[&b"FLASH.SET"[..]], &words[..]].concat())
}

pub fn changed(server: &Server, words: &[&str]) {
    let reply = set_of(server, words);
    assert!(reply.is_ok(), "{words:?}: {reply:?}");
}

pub fn refused(server: &Server, words: &[&str], parts: &[&str]) {
    let reply = set_of(server, words);
    let error = reply.error().unwrap_or_else(|| panic!("{words:?} is accepted"));
    assert!(parts.iter().all(|part| error.contains(part)), "{words:?}: {error}");
}

/// The units of a set of a server.
pub fn units_of(server: &Server, name: &str) -> Vec<i64> {
    let Reply::Array(sets) = set_of(server, &["LIST"]) else { panic!("no list") };
    let found = sets.iter().find(|set| field(set, "name").clone().text() == name);
    let found = found.unwrap_or_else(|| panic!("no `{name}` in {sets:?}"));
    let Reply::Array(units) = field(found, "units").clone() else { panic!("{found:?}") };
    units.iter().map(Reply::integer).collect()
}

/// A server gives units from set to set while a client writes; then it is killed.
#[test]
fn a_server_changes_its_sets_under_load() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB", "SET", "vol-0"]);
    let address = server.address_of("nbd");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let load = std::thread::spawn(move || {
        let mut disk = NbdClient::connect(address, "disk");
        let mut round = 0_u64;
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            for mebibyte in 0..48 {
                assert_eq!(
                    disk.write(mebibyte * MIB, &noise(round * 48 + mebibyte, MIB as usize)),
                    0
                );
            }
            assert_eq!(disk.flush(), 0);
            let mebibyte = round % 48;
            let read = disk.read(mebibyte * MIB, MIB as usize).unwrap();
            assert!(read == noise(round * 48 + mebibyte, MIB as usize), "round {round}");
            round += 1;
        }
        round
    });
    changed(&server, &["RESIZE", "vol-0", "1"]);
    assert_eq!(units_of(&server, "vol-0"), [4]);
    changed(&server, &["CREATE", "fast", "1", "SHARD", "1", "OP", "20"]);
    assert_eq!((units_of(&server, "fast"), units_of(&server, "vol-1")), (vec![5], vec![6, 7]));
    change(&server, &["CREATE", "index", "8MiB", "SET", "fast"]);
    let mut index = NbdClient::connect(address, "index");
    assert_eq!(index.write(0, &noise(7, MIB as usize)), 0);
    refused(&server, &["DELETE", "fast"], &["`fast` holds 1 volume", "`index`"]);
    drop(index);
    change(&server, &["DELETE", "index"]);
    changed(&server, &["DELETE", "fast"]);
    refused(&server, &["RESIZE", "fast", "1"], &["`fast`", "`vol-0`, `vol-1`"]);
    // The unit comes back, and the other one goes.
    changed(&server, &["RESIZE", "vol-0", "2"]);
    assert_eq!(units_of(&server, "vol-0"), [4, 5]);
    changed(&server, &["RESIZE", "vol-1", "1"]);
    changed(&server, &["RESIZE", "vol-0", "3"]);
    assert_eq!(units_of(&server, "vol-0"), [4, 5, 7]);
    stop.send(()).unwrap();
    let rounds = load.join().unwrap();
    assert!(rounds > 0);
    server.kill();

    check_clean(&data);
    let (set, read) = read_volume(&data, "disk", 48 * MIB as usize);
    let expected: Vec<u8> =
        (0..48).flat_map(|mebibyte| noise((rounds - 1) * 48 + mebibyte, MIB as usize)).collect();
    assert!(set == "vol-0" && read == expected, "`disk` has lost data, in {set}");
    assert_eq!(of_set(&data, "vol-0")["units"], value!([4, 5, 7]));
    let server = serve(&data);
    assert_eq!(units_of(&server, "vol-1"), [6]);
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn wrong_changes_of_a_server_are_refused() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    for words in [
        &["CREATE", "fast"][..],
        &["CREATE", "fast", "1", "SHARD"],
        &["CREATE", "fast", "1", "SIZE", "2"],
        &["RESIZE", "vol-0"],
        &["DELETE"],
    ] {
        assert!(set_of(&server, words).error().is_some(), "{words:?}");
    }
    refused(&server, &["CREATE", "fast", "0"], &["at least one unit"]);
    refused(&server, &["CREATE", "fast", "x"], &["'x' is no number of units"]);
    refused(&server, &["CREATE", "fast", "1"], &["needs 1", "there are 0"]);
    refused(&server, &["CREATE", "vol-0", "1"], &["already"]);
    refused(&server, &["CREATE", "fast", "1", "OP", "101"], &["0 to 100"]);
    refused(&server, &["RESIZE", "store-0", "3"], &["needs 1", "there are 0"]);
    refused(&server, &["DELETE", "store-0"], &["`store-0`", "has the keys of a shard"]);
    refused(&server, &["RESIZE", "vol-0", "3"], &["needs 1", "there are 0"]);
    changed(&server, &["RESIZE", "vol-0", "2"]);
    change(&server, &["CREATE", "disk", "500MiB", "SET", "vol-0"]);
    let mut disk = NbdClient::connect(server.address_of("nbd"), "disk");
    for mebibyte in 0..300 {
        assert_eq!(disk.write(mebibyte * MIB, &noise(mebibyte, MIB as usize)), 0);
    }
    refused(&server, &["RESIZE", "vol-0", "1"], &["bytes"]);
    // The unit takes data as before.
    for mebibyte in 300..400 {
        assert_eq!(disk.write(mebibyte * MIB, &noise(mebibyte, MIB as usize)), 0);
    }
    drop(disk);
    assert!(server.terminate().success());
    assert_eq!(
        json(&softflash(["info", data.to_str().unwrap(), "-o", "json"]))["format_version"],
        4
    );
    check_clean(&data);
}

/// Killed at any time, a server leaves a set with the units of before or of after, and its data.
#[test]
fn a_server_that_is_killed_while_a_set_changes_loses_nothing() {
    let (_temp, data) = with_volume_units();
    softflash_ok(&["volume", "create", data.to_str().unwrap(), "disk", "150MiB", "--set", "vol-0"]);
    let of_disk = noise(8, 100 * MIB as usize);
    write_volume(&data, "disk", &of_disk);
    let mut changed = 0;
    for millis in [2, 400, 20, 900, 60, 150] {
        let before = of_set(&data, "vol-0")["units"].clone();
        let wanted: &[u8] = if before == value!([4]) { b"2" } else { b"1" };
        let server = serve(&data);
        let mut client = server.client();
        client.send(&[b"FLASH.SET", b"RESIZE", b"vol-0", wanted]).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        server.kill();
        let units = of_set(&data, "vol-0")["units"].clone();
        assert!([value!([4]), value!([4, 5])].contains(&units), "{units} after {millis} ms");
        changed += i32::from(units != before);
        let (of, read) = read_volume(&data, "disk", of_disk.len());
        assert!(of == "vol-0" && read == of_disk, "lost after {millis} ms, with {units}");
        check_clean(&data);
    }
    assert!(changed > 0, "no change was made in time");
}
