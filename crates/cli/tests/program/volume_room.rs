//! The room for volumes, and the metrics of each.

use crate::nbd::{change, serve};
use crate::support::http::get;
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{Backend, format_with, json, said, softflash};
use serde_json::Value;

const MIB: u64 = 1 << 20;

#[test]
fn format_and_info_tell_the_room_that_a_domain_has() {
    for (backend, size) in [("file", "1GiB"), ("model", "512MiB")] {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        let path = data.to_str().unwrap();
        let shares = ["--units", "8", "--shards", "2", "--volume-units", "4", "--backend", backend];
        let formatted = softflash([&["format", path, "--size", size], &shares[..]].concat());
        assert!(said(&formatted).contains("room for volumes: 2 x about"), "{}", said(&formatted));
        let info = json(&softflash(["info", path, "-o", "json"]));
        let rooms: Vec<u64> =
            serde_json::from_value(info["volumes"]["usable_bytes"].clone()).unwrap();
        assert_eq!(rooms.len(), 2);
        let shown = softflash(["info", path]);
        assert!(said(&shown).contains("volume room"), "{}", said(&shown));

        let server = serve(&data);
        let stats: Value = body(&get(server.address_of("http"), "/api/stats"));
        let usable = stats["volumes"][0]["volume_usable_bytes"].as_u64().unwrap();
        assert!(usable <= rooms[0] && usable >= rooms[0] / 20 * 19, "{usable} of {rooms:?}");
        if backend == "file" {
            assert_eq!(usable, rooms[0]);
        }
        change(&server, &["CREATE", "huge", "100GiB"]);
        server.await_said("larger than the space");
        change(&server, &["CREATE", "small", "1MiB"]);
        assert!(!server.said().contains("small"));
        change(&server, &["RESIZE", "small", "100GiB"]);
        server.await_said("volume=\"small\"");
        change(&server, &["SNAPSHOT", "small", "now"]);
        change(&server, &["CLONE", "small", "now", "copy"]);
        server.await_said("volume=\"copy\"");
        assert!(server.terminate().success());
        let created = softflash(["volume", "create", path, "vast", "100GiB"]);
        assert!(
            created.status.success() && said(&created).contains("warning"),
            "{}",
            said(&created)
        );
        let created = softflash(["volume", "create", path, "tiny", "1MiB"]);
        assert!(created.status.success() && !said(&created).contains("warning"));
        for (change, warns) in [
            (&["resize", path, "tiny", "2MiB"][..], false),
            (&["resize", path, "tiny", "100GiB"], true),
            (&["snapshot", path, "tiny", "now"], false),
            (&["clone", path, "tiny", "now", "other"], true),
        ] {
            let changed = softflash([&["volume"], change].concat());
            assert!(changed.status.success(), "{}", said(&changed));
            assert_eq!(said(&changed).contains("warning"), warns, "{}", said(&changed));
        }
    }
}

fn body(page: &str) -> Value {
    serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[test]
fn each_volume_has_size_data_quota_and_latencies() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "2"];
    format_with(&data, Backend::File, 512 * MIB, &shares);
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB", "quota", "32MiB"]);
    change(&server, &["CREATE", "idle", "8MiB"]);
    let mut client = NbdClient::connect(server.address_of("nbd"), "disk");
    for at in 0..10 {
        assert_eq!(client.write(at * 8192, &noise(at, 8192)), 0);
    }
    assert_eq!(client.flush(), 0);
    assert!(client.read(0, 4096).is_ok());
    let page = get(server.address_of("http"), "/metrics");
    let value = |metric: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {metric} in {page}")).parse::<f64>().unwrap()
    };
    assert_eq!(value("softflash_volume_size_bytes{volume=\"disk\"}"), 64.0 * MIB as f64);
    assert_eq!(value("softflash_volume_held_bytes{volume=\"disk\"}"), 81_920.0);
    assert_eq!(value("softflash_volume_held_bytes{volume=\"idle\"}"), 0.0);
    assert_eq!(value("softflash_volume_quota_bytes{volume=\"disk\"}"), 32.0 * MIB as f64);
    assert!(!page.contains("softflash_volume_quota_bytes{volume=\"idle\"}"), "it has none");
    let duration = |operation: &str, part: &str| {
        let labels = format!("{{volume=\"disk\",operation=\"{operation}\"}}");
        value(&format!("softflash_volume_duration_seconds_{part}{labels}"))
    };
    assert_eq!(duration("write", "count"), 10.0);
    assert_eq!((duration("read", "count"), duration("flush", "count")), (1.0, 1.0));
    assert!(duration("write", "sum") > 0.0 && duration("write", "sum") < 60.0);
    assert!(!page.contains("operation=\"discard\",le"), "there was none");
    let stats = body(&get(server.address_of("http"), "/api/stats"));
    let disk = &stats["volumes"][0]["by_volume"][0];
    assert_eq!((&disk["size_bytes"], &disk["used_bytes"]), (&(64 * MIB).into(), &81_920.into()));
    drop(client);
    assert!(server.terminate().success());
}
