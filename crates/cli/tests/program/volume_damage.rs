//! Damage of volumes: keys and other volumes are served, reads return current data or errors, and
//! `check` finds it.

use crate::support::damage::DeviceMap;
use crate::support::http;
use crate::support::nbd::{NbdClient, list as exports};
use crate::support::noise;
use crate::support::program::{Backend, check, check_clean, fails, format_with, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::volume_map::{LEAF, ROOT, VolumeMap};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const BYTES: usize = 3 << 20;

/// The first unit of the volumes of each shard.
const UNITS: [u64; 2] = [2, 3];

/// A directory of two shards, each with a volume that has some data, stopped cleanly.
fn with_two_volumes() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "2", "--volume-units", "2"];
    format_with(&data, Backend::File, 512 * MIB, &shares);
    for name in ["disk", "other"] {
        let created = softflash(["volume", "create", data.to_str().unwrap(), name, "64MiB"]);
        assert!(created.status.success(), "{}", said(&created));
    }
    let server = serve(&data);
    assert!(server.client().set(b"key", b"value").is_ok());
    for (seed, name) in [(1, "disk"), (2, "other")] {
        let mut client = NbdClient::connect(server.address_of("nbd"), name);
        assert_eq!(client.write(4 * MIB, &noise(seed, BYTES)), 0);
        assert_eq!(client.flush(), 0);
    }
    assert!(server.terminate().success());
    check_clean(&data);
    (temp, data)
}

fn serve(data: &Path) -> Server {
    Server::start(data, &["--memory", "64MiB", "--nbd", "127.0.0.1:0"])
}

/// The volume has all of its data, and reads as zeros elsewhere.
fn is_whole(server: &Server, seed: u64, name: &str) {
    let mut client = NbdClient::connect(server.address_of("nbd"), name);
    assert!(client.read(4 * MIB, BYTES).unwrap() == noise(seed, BYTES), "the data of {name}");
    assert_eq!(client.read(MIB, 8192).unwrap(), vec![0; 8192]);
    assert_eq!(client.read(40 * MIB, 8192).unwrap(), vec![0; 8192]);
}

/// `check --repair -o json`: its report, and whether it says that all is well.
fn repair(data: &Path, more: &[&str]) -> (Value, bool) {
    let arguments = [&["check", data.to_str().unwrap(), "--repair", "-o", "json"], more].concat();
    let output = softflash(arguments);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(report["ok"].as_bool(), Some(output.status.success()), "{}", said(&output));
    (report, output.status.success())
}

#[test]
fn a_damaged_page_of_the_map_costs_nothing_and_a_repair_writes_it_again() {
    let (_temp, data) = with_two_volumes();
    let map = VolumeMap::read(&data);
    let leaves = map.all(UNITS[0], LEAF);
    assert!(leaves.len() >= 4, "two copies of two halves, but {} mapping units", leaves.len());
    for damaged in [leaves[0], leaves[leaves.len() - 1]] {
        map.flip([damaged + 2000]);
    }
    let checked = check(&data);
    assert!(!checked.ok);
    assert!(checked.report["volumes"]["domains"][0]["damaged_copies"].as_u64() > Some(0));
    assert_eq!(checked.report["volumes"]["lost_bytes"], 0);
    let (dry, _) = repair(&data, &["--dry-run"]);
    assert_eq!((&dry["volumes_found"]["ok"], &dry["check"]["ok"]), (&json!(false), &json!(false)));
    let (done, is_well) = repair(&data, &[]);
    assert!(is_well, "{done:#}");
    assert_eq!(done["volumes_done"][0]["shard"], 0);
    check_clean(&data);
    let server = serve(&data);
    is_whole(&server, 1, "disk");
    is_whole(&server, 2, "other");
}

#[test]
fn leaves_without_a_readable_copy_are_rebuilt() {
    let (_temp, data) = with_two_volumes();
    let map = VolumeMap::read(&data);
    map.flip(map.all(UNITS[0], LEAF).into_iter().map(|leaf| leaf + 100));
    let checked = check(&data);
    assert!(!checked.ok);
    let domain = &checked.report["volumes"]["domains"][0];
    assert!(domain["rebuilt_halves"].as_u64() > Some(1), "{domain:#}");
    assert_eq!(
        (&domain["lost_halves"], &checked.report["volumes"]["lost_bytes"]),
        (&json!(0), &json!(0))
    );
    let server = serve(&data);
    is_whole(&server, 1, "disk");
    is_whole(&server, 2, "other");
    assert!(server.terminate().success());
    check_clean(&data);
}

#[test]
fn each_copy_of_a_root_can_be_damaged() {
    let (_temp, data) = with_two_volumes();
    let map = VolumeMap::read(&data);
    let roots = map.all(UNITS[1], ROOT);
    let newest = *roots.last().unwrap();
    map.flip([newest + 30]);
    assert!(!check(&data).ok);
    let (report, is_well) = repair(&data, &[]);
    assert!(is_well, "{report:#}");
    is_whole(&serve(&data), 2, "other");
}

/// All that the frames of a shard's volumes say is unreadable.
fn damage_all_heads(data: &Path, unit: u64) {
    let map = VolumeMap::read(data);
    map.flip(map.frames(unit).into_iter().map(|frame| frame.head + 70));
}

#[test]
fn a_domain_that_cannot_be_mounted_leaves_keys_and_other_volumes_served() {
    let (_temp, data) = with_two_volumes();
    damage_all_heads(&data, UNITS[1]);
    let path = data.to_str().unwrap();

    let server = serve(&data);
    server.await_said("the volumes of shard 1 are not served");
    let mut client = server.client();
    assert_eq!(client.get(b"key"), Some(b"value".to_vec()));
    assert!(client.set(b"new", b"value").is_ok());
    is_whole(&server, 1, "disk");
    assert_eq!(exports(server.address_of("nbd")), ["disk"]);
    let unknown = NbdClient::try_connect(server.address_of("nbd"), "other").unwrap();
    assert!(unknown.is_err(), "an export of a domain that is not mounted");
    assert_eq!(client.flash_stat("volume_shards_not_mounted"), 1);
    let mut refused = |words: &[&[u8]]| {
        let reply = client.call(&[&[&b"FLASH.VOLUME"[..]], words].concat());
        let error = reply.error().unwrap_or_else(|| panic!("{reply:?}")).to_owned();
        assert!(error.contains("shard 1") && error.contains("softflash check"), "{error}");
        error
    };
    refused(&[b"RESIZE", b"other", b"1GiB"]);
    refused(&[b"SNAPSHOT", b"other", b"now"]);
    assert!(refused(&[b"CREATE", b"third", b"1GiB"]).contains("`third` may be the name"));
    refused(&[b"CLONE", b"disk", b"now", b"third"]);
    let snapshot = client.call(&[b"FLASH.VOLUME", b"SNAPSHOT", b"disk", b"now"]);
    assert!(snapshot.is_ok(), "{snapshot:?}");
    let listed = client.call(&[b"FLASH.VOLUME", b"LIST"]);
    let Reply::Array(listed) = listed else { panic!("{listed:?}") };
    let Some(Reply::Array(missing)) = listed.last() else { panic!("{listed:?}") };
    assert_eq!((missing[0].clone().text(), missing[1].integer()), ("shard".to_owned(), 1));
    let error = missing[3].clone().text();
    assert!(error.contains("shard 1") && error.contains("softflash check"), "{error}");
    let http_address = server.address_of("http");
    let health = http::get(http_address, "/health");
    assert!(
        health.contains("degraded") && health.contains("\"volumes_not_mounted\":[1]"),
        "{health}"
    );
    let metrics = http::get(http_address, "/metrics");
    for line in [
        "softflash_volume_mounted{shard=\"0\",set=\"vol-0\"} 1",
        "softflash_volume_mounted{shard=\"1\",set=\"vol-1\"} 0",
    ] {
        assert!(metrics.contains(line), "`{line}` is missing in {metrics}");
    }
    assert!(server.terminate().success());

    let listed = softflash(["volume", "list", path]);
    let text = said(&listed);
    assert_eq!(listed.status.code(), Some(1), "{text}");
    assert!(text.contains("disk") && text.contains("volumes of shard 1"), "{text}");
    fails(1, &["volume", "resize", path, "other", "1GiB"], &["shard 1", "softflash check"]);
    fails(1, &["volume", "create", path, "third", "1GiB"], &["shard 1", "softflash check"]);

    let checked = check(&data);
    assert!(!checked.ok);
    assert!(checked.report["volumes"]["domains"][1]["error"].is_string(), "{:#}", checked.report);
    let findings = checked.report["findings"].to_string();
    assert!(findings.contains("give-up") && findings.contains("--domain 1"), "{findings}");
    let (report, is_well) = repair(&data, &[]);
    assert!(!is_well && report["check"]["ok"] == false, "{report:#}");
}

#[test]
fn the_volumes_of_a_damaged_domain_can_be_given_up() {
    let (_temp, data) = with_two_volumes();
    let path = data.to_str().unwrap();
    let asked = softflash(["volume", "give-up", path, "--domain", "1"]);
    let text = said(&asked);
    assert_eq!(asked.status.code(), Some(1), "{text}");
    for part in ["volume `other` of 64.0 MiB", "3.0 MiB", "nothing was changed", "--force"] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
    check_clean(&data);
    damage_all_heads(&data, UNITS[1]);
    // The other sets are listed.
    let sets = softflash(["set", "list", path, "-o", "json"]);
    assert_eq!(sets.status.code(), Some(1), "{}", said(&sets));
    let listed: Value = serde_json::from_slice(&sets.stdout).unwrap();
    for (number, set) in listed.as_array().unwrap().iter().enumerate() {
        assert_eq!(set["used_bytes"].is_null(), number == 3, "{set}");
    }
    let asked = softflash(["volume", "give-up", path, "--domain", "1"]);
    let text = said(&asked);
    assert_eq!(asked.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot be read") && text.contains("nothing was changed"), "{text}");
    let given_up = softflash(["volume", "give-up", path, "--domain", "1", "--force"]);
    assert!(given_up.status.success(), "{}", said(&given_up));
    check_clean(&data);
    let server = serve(&data);
    assert_eq!(server.client().get(b"key"), Some(b"value".to_vec()));
    is_whole(&server, 1, "disk");
    assert_eq!(exports(server.address_of("nbd")), ["disk"]);
    let created = server.client().call(&[b"FLASH.VOLUME", b"CREATE", b"other", b"64MiB"]);
    assert!(created.is_ok(), "{created:?}");
    let mut client = NbdClient::connect(server.address_of("nbd"), "other");
    assert_eq!(client.read(4 * MIB, 8192).unwrap(), vec![0; 8192]);
    assert_eq!(client.write(4 * MIB, &noise(3, BYTES)), 0);
    assert!(server.terminate().success());
    is_whole(&serve(&data), 3, "other");
    fails(1, &["volume", "give-up", path, "--domain", "7"], &["no shard or set `7` has volumes"]);
    fails(2, &["volume", "give-up", path], &["--domain"]);
}

#[test]
fn a_volume_can_be_given_up_with_its_snapshots() {
    let (_temp, data) = with_two_volumes();
    let path = data.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = softflash(arguments);
        (output.status.code(), said(&output))
    };
    assert_eq!(run(&["volume", "snapshot", path, "disk", "monday"]).0, Some(0));
    assert_eq!(run(&["volume", "clone", path, "disk", "monday", "trial"]).0, Some(0));
    fails(1, &["volume", "give-up", path, "disk", "--force"], &["disk@monday", "`trial`"]);
    assert_eq!(run(&["volume", "give-up", path, "trial", "--force"]).0, Some(0));
    let (code, text) = run(&["volume", "give-up", path, "disk"]);
    assert_eq!(code, Some(1), "{text}");
    for part in ["volume `disk` of 64.0 MiB", "3.0 MiB of data", "monday", "nothing was changed"] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
    is_whole(&serve(&data), 1, "disk");
    assert_eq!(run(&["volume", "give-up", path, "disk", "--force"]).0, Some(0));
    let server = serve(&data);
    assert_eq!(exports(server.address_of("nbd")), ["other"]);
    is_whole(&server, 2, "other");
    drop(server);
    fails(1, &["volume", "give-up", path, "disk"], &["no volume `disk`"]);
}

#[test]
fn check_names_the_ranges_of_volumes_that_cannot_be_read() {
    let (_temp, data) = with_two_volumes();
    let map = VolumeMap::read(&data);
    let written = noise(1, BYTES);
    for unit in [7, 8, 20] {
        let found = map.find(&written[unit * 4096..][..64]);
        assert!(!found.is_empty(), "the data of the volume are on the device");
        map.flip(found.into_iter().map(|offset| offset + 99));
    }
    let checked = check(&data);
    assert!(!checked.ok);
    let volumes = &checked.report["volumes"];
    assert_eq!((&volumes["ok"], &volumes["lost_bytes"]), (&json!(false), &json!(3 * 4096)));
    assert!(volumes["units_read"].as_u64() >= Some(2 * BYTES as u64 / 4096), "{volumes:#}");
    let offset = |unit: u64| 4 * MIB + unit * 4096;
    let lost = json!([
        {"offset": offset(7), "bytes": 8192},
        {"offset": offset(20), "bytes": 4096},
    ]);
    let disk = &volumes["domains"][0]["volumes"][0];
    assert_eq!((&disk["name"], &disk["lost"]), (&json!("disk"), &lost));
    assert_eq!(volumes["domains"][1]["volumes"][0]["lost"], json!([]));
    let shown = said(&softflash(["check", data.to_str().unwrap()]));
    let range = format!("{}..{}", offset(7), offset(9));
    assert!(shown.contains("volume `disk`") && shown.contains(&range), "{shown}");
    let (report, is_well) = repair(&data, &[]);
    assert!(!is_well, "{report:#}");
    let (path, to) = (data.to_str().unwrap(), data.with_file_name("volumes"));
    let to = to.to_str().unwrap();
    fails(1, &["volume", "export", path, to], &["volume `disk`", "softflash check"]);
    assert!(!Path::new(to).exists(), "no half of an export");

    let server = serve(&data);
    let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
    assert!(client.read(offset(7), 4096).is_err());
    assert!(client.read(offset(9), 4096).unwrap() == written[9 * 4096..10 * 4096]);
    for unit in [7_u64, 8, 20] {
        assert_eq!(client.write(offset(unit), &written[unit as usize * 4096..][..4096]), 0);
    }
    drop(client);
    is_whole(&server, 1, "disk");
    assert!(server.terminate().success());
    check_clean(&data);
}

/// After a clean stop, the newest root has the generations of all units.
#[test]
fn a_unit_restored_from_an_older_image_is_named_and_gives_errors_in_place_of_older_data() {
    const EIO: u32 = 5;
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "2"];
    format_with(&data, Backend::File, 512 * MIB, &shares);
    let path = data.to_str().unwrap();
    let created = softflash(["volume", "create", path, "disk", "64MiB"]);
    assert!(created.status.success(), "{}", said(&created));
    let write = |seed: u64| {
        let server = serve(&data);
        let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
        assert_eq!(client.write(4 * MIB, &noise(seed, BYTES)), 0);
        assert_eq!(client.flush(), 0);
        assert!(server.terminate().success());
        check_clean(&data);
    };
    write(1);
    let map = DeviceMap::read(&data);
    let older = map.image(UNITS[0]);
    write(2);
    map.restore(UNITS[0], &older);

    let checked = check(&data);
    assert!(!checked.ok);
    let domain = &checked.report["volumes"]["domains"][0];
    assert_eq!(domain["stale_units"], json!([UNITS[0]]), "{domain:#}");
    let shown = said(&softflash(["check", path]));
    for part in ["unit 2 was restored from an older image", "volume `disk`"] {
        assert!(shown.contains(part), "`{part}` is missing in {shown}");
    }
    let listed = softflash(["volume", "list", path]);
    assert_eq!(listed.status.code(), Some(1), "{}", said(&listed));
    for part in ["disk", "of the volumes are lost", "softflash check"] {
        assert!(said(&listed).contains(part), "`{part}` is missing in {}", said(&listed));
    }

    let server = serve(&data);
    let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
    let mut lost = 0;
    for (unit, expected) in noise(2, BYTES).chunks(4096).enumerate() {
        match client.read(4 * MIB + unit as u64 * 4096, 4096) {
            Ok(bytes) => assert!(bytes == expected, "older data in mapping unit {unit}"),
            Err(error) => {
                assert_eq!(error, EIO, "mapping unit {unit}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0, "the unit had data of the volume");
    println!("{lost} mapping units of {} are lost", BYTES / 4096);
}
