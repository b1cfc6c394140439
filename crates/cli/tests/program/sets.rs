//! The sets of units: of a stopped store and of a server.

use crate::nbd::{change, serve, with_volume_units};
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{Backend, fails, format_with, json, said, softflash};
use crate::support::resp::Reply;
use serde_json::{Value, json as value};
use std::path::Path;

const MIB: u64 = 1 << 20;

fn listed(data: &Path) -> Value {
    json(&softflash(["set", "list", data.to_str().unwrap(), "-o", "json"]))
}

fn column(sets: &Value, name: &str) -> Vec<Value> {
    sets.as_array().unwrap().iter().map(|set| set[name].clone()).collect()
}

/// The field of a set in the reply of a server.
fn field<'a>(set: &'a Reply, name: &str) -> &'a Reply {
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
