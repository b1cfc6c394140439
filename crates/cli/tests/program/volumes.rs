//! `softflash volume`, and directories with volume units.

use crate::support::noise;
use crate::support::program::{
    Backend, binary, check_clean, fails, format, format_with, json, said, softflash,
};
use crate::support::server::Server;
use serde_json::{Value, json as value};
use softflash_datadir::{DataDir, ShardDomain};
use softflash_device::OpenOptions;
use softflash_runtime::RealExecutor;
use softflash_volume::Domain;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A directory of two shards with a unit for the store and one for volumes each.
fn with_volume_units() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "2", "--volume-units", "2"];
    format_with(&data, Backend::File, 512 * MIB, &shares);
    (temp, data)
}

/// Runs `softflash volume COMMAND DIR ...` and returns what it says.
fn volume(command: &str, data: &Path, more: &[&str]) -> String {
    let arguments = [&["volume", command, data.to_str().unwrap()], more].concat();
    let output = softflash(&arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn list(data: &Path) -> Value {
    json(&softflash(["volume", "list", data.to_str().unwrap(), "-o", "json"]))
}

/// Calls `work` with the mounted domains of a directory, as a server does.
pub fn on_domains(data: &Path, work: impl AsyncFn(&ShardDomain, &Domain)) {
    let directory = DataDir::open(data).unwrap();
    let (device, _) = directory.open_device(OpenOptions::default()).unwrap();
    let executor = RealExecutor::new().unwrap();
    executor.block_on(async {
        for shard in directory.manifest().domains(device.info().units) {
            let queue = Arc::clone(&device).open_queue_pair(&shard.units).unwrap();
            let mounted = Domain::mount(queue, shard.config.clone(), executor.handle()).await;
            let (domain, _) = mounted.unwrap();
            work(&shard, &domain).await;
            domain.flush().await.unwrap();
            domain.stop();
        }
    });
}

#[test]
fn a_directory_with_volume_units_says_so_and_serves_keys_from_the_others() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    let info = json(&softflash(["info", path, "-o", "json"]));
    assert_eq!((&info["device"]["units"], &info["format_version"]), (&value!(4), &value!(4)));
    assert_eq!(
        (&info["volumes"]["units"], &info["volumes"]["op_percent"]),
        (&value!(2), &value!(7))
    );
    let shown = softflash(["info", path]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("2, units 2 to 3") && shown.contains("7 %"), "{shown}");
    let units = json(&softflash(["units", path, "-o", "json"]));
    assert_eq!(units.as_array().unwrap().len(), 4);

    volume("create", &data, &["disk", "1GiB"]);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for key in 0..64_u64 {
        let stored = client.set(key.to_string().as_bytes(), &noise(key, 100_000));
        assert!(stored.is_ok(), "{stored:?}");
    }
    assert!(server.terminate().success());
    check_clean(&data);
    assert_eq!(list(&data)[0]["name"], "disk");
    let dump = data.with_file_name("keys.sfdump");
    assert!(softflash(["dump", path, dump.to_str().unwrap()]).status.success());
    assert!(softflash(["check", path, "--repair"]).status.success());
    assert_eq!(list(&data)[0]["name"], "disk", "a repair of the store leaves volumes alone");
}

#[test]
fn format_says_how_many_units_are_for_volumes() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let path = data.to_str().unwrap();
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "3", "--volume-op", "25"];
    let output = softflash([&["format", path, "--size", "512MiB"], &shares[..]].concat());
    assert!(said(&output).contains("4 units, 3 of them for volumes"), "{}", said(&output));
    let manifest = fs::read_to_string(data.join("softflash.toml")).unwrap();
    assert!(manifest.contains("[volumes]\nunits = 3\nop_percent = 25"), "{manifest}");

    let plain = temp.path().join("plain");
    format(&plain, Backend::File, 256 * MIB);
    let manifest = fs::read_to_string(plain.join("softflash.toml")).unwrap();
    assert!(!manifest.contains("volume"), "{manifest}");
}

#[test]
fn a_model_of_an_array_has_volume_units_too() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "2"];
    format_with(&data, Backend::Model, 512 * MIB, &shares);
    volume("create", &data, &["disk", "64MiB"]);
    volume("snapshot", &data, &["disk", "first"]);
    assert_eq!(list(&data)[0]["snapshots"], value!(["first"]));
    check_clean(&data);
}

#[test]
fn volumes_snapshots_and_clones_outlive_the_commands_that_make_them() {
    let (_temp, data) = with_volume_units();
    assert!(volume("list", &data, &[]).contains("no volumes; create one with"));
    assert_eq!(list(&data), value!([]));
    volume("create", &data, &["disk", "1GiB"]);
    volume("create", &data, &["other", "2MiB"]);
    let written = noise(7, 1 << 20);
    on_domains(&data, async |_, domain| {
        if let Ok(disk) = domain.volume("disk") {
            disk.write(4096, &written).await.unwrap();
        }
    });
    volume("snapshot", &data, &["disk", "monday"]);
    on_domains(&data, async |_, domain| {
        if let Ok(disk) = domain.volume("disk") {
            disk.write(4096, &noise(8, 4096)).await.unwrap();
        }
    });
    volume("snapshot", &data, &["disk", "tuesday"]);
    volume("clone", &data, &["disk", "monday", "trial"]);
    let said = volume("resize", &data, &["other", "1MiB"]);
    assert!(said.contains("from 2.0 MiB to 1.0 MiB") && !said.contains("lost"), "{said}");

    let listed = |name: &str, size_bytes: u64, used_bytes: u64, snapshots: &[&str]| {
        value!({
            "name": name,
            "size_bytes": size_bytes,
            "used_bytes": used_bytes,
            "quota_bytes": null,
            "iops": null,
            "bandwidth_bytes_per_second": null,
            "weight": 100,
            "temperature": "warm",
            "stream": 0,
            "snapshots": snapshots,
            "set": if name == "other" { "vol-1" } else { "vol-0" },
        })
    };
    let disk = listed("disk", 1 << 30, (1 << 20) + 4096, &["monday", "tuesday"]);
    let other = listed("other", 1 << 20, 0, &[]);
    let mut trial = listed("trial", 1 << 30, 0, &[]);
    trial["clone_of"] = value!("disk@monday");
    assert_eq!(list(&data), value!([disk, other, trial]));
    on_domains(&data, async |shard, domain| {
        // Both are empty at first, so the second volume goes to the other shard.
        assert_eq!(domain.volume("disk").is_ok(), shard.shard.0 == 0);
        assert_eq!(domain.volume("other").is_ok(), shard.shard.0 == 1);
        if let Ok(trial) = domain.volume("trial") {
            let mut read = vec![0; written.len()];
            trial.read(4096, &mut read).await.unwrap();
            assert!(read == written, "the clone has the contents of the snapshot");
        }
    });
    let table = volume("list", &data, &[]);
    for part in ["1.0 GiB", "monday, tuesday", "disk@monday", "shard 0", "shard 1", "usable"] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }

    let path = data.to_str().unwrap();
    let kept = ["volume", "delete-snapshot", path, "disk", "monday"];
    fails(1, &kept, &["disk@monday", "trial", "delete the clone first"]);
    fails(1, &["volume", "delete", path, "disk"], &["`tuesday`", "snapshots first"]);
    volume("delete", &data, &["trial"]);
    volume("delete-snapshot", &data, &["disk", "monday"]);
    volume("delete-snapshot", &data, &["disk", "tuesday"]);
    volume("delete", &data, &["disk"]);
    let names: Vec<Value> = list(&data).as_array().unwrap().clone();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0]["name"], "other");
    check_clean(&data);
}

#[test]
fn many_commands_do_not_fill_the_flash() {
    let (_temp, data) = with_volume_units();
    // Each mount writes to superblocks that it opens, and there are 15 for each shard.
    for round in 0..24 {
        volume("create", &data, &[&format!("v{round}"), "1GiB"]);
        if round % 2 == 1 {
            volume("delete", &data, &[&format!("v{}", round - 1)]);
        }
    }
    assert_eq!(list(&data).as_array().unwrap().len(), 12);
}

#[test]
fn killed_commands_do_not_fill_the_flash() {
    let (_temp, data) = with_volume_units();
    let list_in_time = || {
        let mut listing = start("list", &data, &[]);
        let started = Instant::now();
        while listing.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(60) {
                listing.kill().unwrap();
                panic!("the volumes cannot be mounted any more");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(listing.wait().unwrap().success());
    };
    for round in 0..80_u64 {
        let mut killed = start("create", &data, &[&format!("v{round}"), "1GiB"]);
        std::thread::sleep(Duration::from_millis(10 + round * 7 % 50));
        killed.kill().unwrap();
        killed.wait().unwrap();
        if round % 20 == 19 {
            list_in_time();
        }
    }
    volume("create", &data, &["last", "1GiB"]);
}

/// Starts `softflash volume COMMAND DIR ...`, which says nothing.
fn start(command: &str, data: &Path, more: &[&str]) -> Child {
    let mut child = Command::new(binary());
    child.args(["volume", command]).arg(data).args(more);
    child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn names_are_unique_over_all_shards() {
    let (_temp, data) = with_volume_units();
    volume("create", &data, &["a", "1MiB"]);
    volume("create", &data, &["b", "1MiB"]);
    volume("snapshot", &data, &["a", "s"]);
    let path = data.to_str().unwrap();
    for name in ["a", "b"] {
        let taken = [&format!("`{name}` exists"), "another name"];
        fails(1, &["volume", "create", path, name, "1MiB"], &taken);
        fails(1, &["volume", "clone", path, "a", "s", name], &taken);
    }
    fails(1, &["volume", "snapshot", path, "a", "s"], &["`a@s` exists"]);
    assert_eq!(list(&data).as_array().unwrap().len(), 2);
}

#[test]
fn a_running_server_keeps_its_volumes_to_itself() {
    let (_temp, data) = with_volume_units();
    volume("create", &data, &["disk", "1MiB"]);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let (path, pid) = (data.to_str().unwrap(), server.pid().to_string());
    let busy = [path, "busy", &pid, "redis-cli FLASH.VOLUME"];
    fails(1, &["volume", "list", path], &busy);
    fails(1, &["volume", "create", path, "other", "1MiB"], &busy);
    fails(1, &["volume", "resize", path, "disk", "2MiB"], &busy);
    fails(1, &["volume", "delete", path, "disk"], &busy);
    fails(1, &["volume", "snapshot", path, "disk", "s"], &busy);
    fails(1, &["volume", "clone", path, "disk", "s", "t"], &busy);
    fails(1, &["volume", "delete-snapshot", path, "disk", "s"], &busy);
    assert!(server.terminate().success());
    assert_eq!(list(&data)[0]["size_bytes"], MIB);
}

#[test]
fn wrong_names_and_sizes_are_refused_with_the_rule() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    fails(2, &["volume", "create", path, "a/b", "1MiB"], &[path, "`a/b`", "letters, digits"]);
    fails(2, &["volume", "create", path, ".a", "1MiB"], &["do not start with"]);
    fails(2, &["volume", "create", path, &"a".repeat(65), "1MiB"], &["1 to 64 characters"]);
    fails(2, &["volume", "create", path, "disk", "1000"], &["1000 bytes", "multiples of 4096"]);
    fails(2, &["volume", "create", path, "disk", "0"], &["not 0"]);
    fails(2, &["volume", "create", path, "disk", "17TiB"], &["at most 16 TiB"]);
    fails(2, &["volume", "create", path, "disk", "big"], &["`big` is not a size", "GiB"]);
    fails(2, &["volume", "create", path, "disk"], &["SIZE"]);
    fails(1, &["volume", "delete", path, "disk"], &["no volume `disk`", "softflash volume list"]);
    fails(1, &["volume", "snapshot", path, "disk", "s"], &["no volume `disk`"]);
    volume("create", &data, &["disk", "1MiB"]);
    fails(2, &["volume", "resize", path, "disk", "5000"], &["multiples of 4096"]);
    fails(2, &["volume", "snapshot", path, "disk", "a b"], &["`a b`", "letters, digits"]);
    fails(1, &["volume", "clone", path, "disk", "s", "t"], &["`disk` has no snapshot `s`"]);
    fails(1, &["volume", "delete-snapshot", path, "disk", "s"], &["`disk` has no snapshot `s`"]);
}

#[test]
fn wrong_shares_for_volumes_are_refused_and_leave_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let refused = |shares: &[&str], parts: &[&str]| {
        let base = ["format", data.to_str().unwrap(), "--size", "256MiB", "--units", "4"];
        fails(2, &[&base, shares].concat(), parts);
        assert!(!data.exists(), "{shares:?}");
    };
    refused(&["--shards", "2", "--volume-units", "1"], &["evenly over 2 shards", "multiple of 2"]);
    let all = ["--shards", "2", "--volume-units", "4"];
    refused(&all, &["4 of 4 units are for volumes", "leaves 0", "fewer units aside for volumes"]);
    let copies = ["--shards", "2", "--volume-units", "2", "--copies", "2"];
    refused(&copies, &["2 copies", "fewer units aside for volumes"]);
    refused(&["--volume-units", "0"], &["--volume-units"]);
    refused(&["--volume-units", "many"], &["many", "--volume-units"]);
    refused(&["--shards", "1", "--volume-units", "1", "--volume-op", "101"], &["101", "0..=100"]);
    refused(&["--volume-op", "10"], &["--volume-units"]);
}

#[test]
fn a_device_without_room_for_volumes_is_refused_with_the_least_size_that_has_some() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let path = data.to_str().unwrap();
    let cases = [
        ("40MiB", ["--units", "4", "--shards", "1", "--volume-units", "1"]),
        ("60MiB", ["--units", "8", "--shards", "2", "--volume-units", "2"]),
    ];
    for (too_small, shares) in cases {
        let arguments = |size| [&["format", path, "--size", size, "--force"], &shares[..]].concat();
        let error = said(&softflash(arguments(too_small)));
        let named = error.split_once("a size of at least ").expect(&error).1;
        let named = named.split_once(" bytes").expect(&error).0;
        let least: u64 = named.parse().unwrap();
        let too_small = (least - 1).to_string();
        fails(2, &arguments(&too_small), &["a size of at least", named]);
        assert!(!data.exists(), "{shares:?}");
        for arguments in [arguments(named), vec!["volume", "create", path, "disk", "64KiB"]] {
            let output = softflash(&arguments);
            assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        }
        fs::remove_dir_all(&data).unwrap();
    }
}

#[test]
fn a_directory_without_volume_units_names_the_remedy() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let path = data.to_str().unwrap();
    let remedy = [path, "without volume units", "softflash format DIR --size SIZE --volume-units"];
    fails(1, &["volume", "list", path], &remedy);
    fails(1, &["volume", "create", path, "disk", "1MiB"], &remedy);
    let missing = temp.path().join("missing");
    fails(1, &["volume", "list", missing.to_str().unwrap()], &["no such directory"]);
}
