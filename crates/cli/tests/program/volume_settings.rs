//! Quotas, limits, weights and hints of volumes: on a stopped store, and as NBD clients see them.

use crate::nbd::{change, serve, volume, with_volume_units};
use crate::nbd_clients::{all_exist, attempt, run, uri};
use crate::support::http;
use crate::support::nbd::{ENOSPC, FLUSH, NbdClient, TRIM, WRITE};
use crate::support::noise;
use crate::support::program::{Backend, fails, format_with, json, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use serde_json::{Value, json as value};
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn stopped(command: &str, data: &Path, more: &[&str]) {
    let arguments = [&["volume", command, data.to_str().unwrap()], more].concat();
    let output = softflash(&arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
}

fn listed(data: &Path) -> Value {
    json(&softflash(["volume", "list", data.to_str().unwrap(), "-o", "json"]))
}

/// The settings of the only volume, as a list of strings.
fn settings_of(volume: &Value) -> Vec<String> {
    let names =
        ["quota_bytes", "iops", "bandwidth_bytes_per_second", "weight", "temperature", "stream"];
    names.iter().map(|&name| volume[name].to_string().replace('"', "")).collect()
}

fn connect(server: &Server, export: &str) -> NbdClient {
    NbdClient::connect(server.address_of("nbd"), export)
}

fn metric(server: &Server, line: &str) -> u64 {
    let page = http::get(server.address_of("http"), "/metrics");
    let found = page.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("`{line}` is missing in\n{page}"))
}

#[test]
fn settings_of_a_stopped_store_are_kept_listed_and_changed_one_by_one() {
    let (_temp, data) = with_volume_units();
    let limits = ["--quota", "10GiB", "--iops", "500", "--bandwidth", "50MiB"];
    let hints = ["--weight", "300", "--temperature", "hot", "--stream", "2"];
    stopped("create", &data, &[&["disk", "20GiB"], &limits[..], &hints[..]].concat());
    let (quota, bandwidth) = ((10_u64 << 30).to_string(), (50 * MIB).to_string());
    let all = [&quota, "500", &bandwidth, "300", "hot", "2"];
    assert_eq!(settings_of(&listed(&data)[0]), all);
    stopped("set", &data, &["disk", "--iops", "none", "--bandwidth", "0", "--weight", "1"]);
    assert_eq!(settings_of(&listed(&data)[0]), [&quota, "null", "null", "1", "hot", "2"]);
    let table = String::from_utf8(softflash(["volume", "list", data.to_str().unwrap()]).stdout);
    let table = table.unwrap();
    for part in ["quota", "10.0 GiB", "hot 2"] {
        assert!(table.contains(part), "`{part}` is missing in\n{table}");
    }
    stopped("set", &data, &["disk", "--quota", "none", "--temperature", "warm", "--stream", "0"]);
    assert_eq!(settings_of(&listed(&data)[0]), ["null", "null", "null", "1", "warm", "0"]);
}

#[test]
fn wrong_settings_are_refused_with_the_range() {
    let (_temp, data) = with_volume_units();
    let path = data.to_str().unwrap();
    stopped("create", &data, &["disk", "1MiB"]);
    for (flag, wrong, range) in [
        ("--quota", "100", "4KiB to 16TiB, or none"),
        ("--iops", "many", "1 to 10000000 requests a second, or none"),
        ("--iops", "-1", "1 to 10000000 requests a second, or none"),
        ("--bandwidth", "2TiB", "4KiB to 1TiB a second, or none"),
        ("--weight", "1001", "1 to 1000"),
        ("--temperature", "tepid", "hot, warm or cold"),
        ("--stream", "8", "0 to 7"),
    ] {
        fails(2, &["volume", "set", path, "disk", flag, wrong], &[flag, wrong, range]);
        fails(2, &["volume", "create", path, "new", "1MiB", flag, wrong], &[flag, wrong, range]);
    }
    fails(2, &["volume", "set", path, "disk"], &["nothing to change", "--quota", "--stream"]);
    fails(
        1,
        &["volume", "set", path, "none", "--iops", "5"],
        &["no volume `none`", "softflash volume list"],
    );
    assert_eq!(listed(&data).as_array().unwrap().len(), 1);
    assert_eq!(listed(&data)[0]["weight"], value!(100));
}

#[test]
fn settings_of_a_running_server_survive_kill_9_and_wrong_ones_change_nothing() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1GiB", "iops", "100", "Temperature", "cold"]);
    change(&server, &["SET", "disk", "QUOTA", "64MiB", "weight", "7", "stream", "1"]);
    for (words, part) in [
        (&["SET", "disk", "iops", "5", "weight", "0"][..], "1 to 1000"),
        (&["SET", "disk", "speed", "9"], "no setting `speed`"),
        (&["SET", "disk", "iops", "x"], "the iops of a volume cannot be `x`: 1 to 10000000"),
        (&["SET", "disk", "iops"], "wrong number of arguments"),
        (&["SET", "disk", "iops", "5", "weight"], "syntax error"),
        (&["SET", "none", "iops", "5"], "no volume `none`; FLASH.VOLUME LIST has all"),
        (&["CREATE", "new", "1MiB", "stream", "8"], "0 to 7"),
    ] {
        let reply = volume(&server, words);
        let error = reply.error().unwrap_or_else(|| panic!("{words:?}: {reply:?}"));
        assert!(error.contains(part), "{words:?}: {error}");
    }
    let Reply::Array(all) = volume(&server, &["LIST"]) else { panic!("no list") };
    let Reply::Array(fields) = &all[0] else { panic!("a map is a flat list in RESP2: {all:?}") };
    assert_eq!((all.len(), fields[11].clone().bulk()), (1, None), "there is no bandwidth");
    server.kill();
    let quota = (64 * MIB).to_string();
    assert_eq!(settings_of(&listed(&data)[0]), [&quota, "100", "null", "7", "cold", "1"]);
}

#[test]
fn a_server_tells_the_state_of_the_units_of_volumes_too() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    assert_eq!(connect(&server, "disk").write(0, &noise(1, 4 << 20)), 0);
    let lines = server.client().call(&[b"FLASH.UNITS"]);
    let lines = lines.text();
    let units = lines.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("unit:")?.split_once(',')?;
        let programs = rest.split_once("programs=")?.1.split(',').next()?;
        Some((number, programs.parse::<u64>().ok()?))
    });
    let (numbers, programs): (Vec<&str>, Vec<u64>) = units.unzip();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert!(programs[4..].iter().sum::<u64>() > 0, "{lines}");
    let page = http::get(server.address_of("http"), "/api/units");
    let units: Value = serde_json::from_str(page.split("\r\n\r\n").last().unwrap()).unwrap();
    assert_eq!(units.as_array().map(Vec::len), Some(8));
    let page = http::get(server.address_of("http"), "/metrics");
    assert!(page.contains("softflash_unit_programs_total{unit=\"7\"} "), "{page}");
    assert!(server.terminate().success());
}

#[test]
fn a_full_quota_refuses_writes_of_its_volume_only_and_trims_make_room() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "small", "64MiB", "quota", "8MiB"]);
    change(&server, &["CREATE", "other", "64MiB"]);
    let (mut small, mut other) = (connect(&server, "small"), connect(&server, "other"));
    let block = noise(1, MIB as usize);
    for place in 0..8 {
        assert_eq!(small.write(place * MIB, &block), 0);
    }
    assert_eq!(small.write(8 * MIB, &block), ENOSPC);
    assert_eq!(small.write(0, &block), 0, "it holds these already");
    assert_eq!(small.flush(), 0);
    assert_eq!(other.write(0, &noise(2, 20 << 20)), 0);
    assert_eq!(small.call(TRIM, 0, 0, MIB as u32), 0);
    assert_eq!(small.write(8 * MIB, &block), 0, "the trim has made room");
    change(&server, &["SET", "small", "quota", "none"]);
    assert_eq!(small.write(20 * MIB, &block), 0);
    assert!(
        metric(&server, "softflash_volume_refusals_total{volume=\"small\",limit=\"quota\"}") > 0
    );
    if all_exist(&["qemu-io"]) {
        change(&server, &["SET", "small", "quota", "4KiB"]);
        let small = uri(&server, "small");
        let output = attempt("qemu-io", &["-f", "raw", "-c", "write 40M 64k", &small]);
        assert!(said(&output).contains("No space left on device"), "{}", said(&output));
    }
    assert!(server.terminate().success());
}

#[test]
fn a_limit_of_requests_holds_as_a_client_sees_it() {
    let (_temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB", "iops", "100"]);
    let mut client = connect(&server, "disk");
    let started = Instant::now();
    for place in 0..61 {
        assert_eq!(client.write(place * 4096, &noise(place, 4096)), 0);
    }
    // A burst of a tenth of a second passes at once; a slow machine takes longer.
    let least = Duration::from_millis(490);
    assert!(started.elapsed() >= least, "61 writes in {:?}", started.elapsed());
    let waits = metric(&server, "softflash_volume_waits_total{volume=\"disk\",limit=\"iops\"}");
    // None had to wait if the machine was slower than the limit.
    assert!(waits <= 61, "{waits}");
    let writes = "softflash_volume_requests_total{volume=\"disk\",operation=\"write\"}";
    assert_eq!(metric(&server, writes), 61);
    if all_exist(&["fio"]) {
        let uri = format!("--uri={}", uri(&server, "disk"));
        let job = ["--name=limit", "--ioengine=nbd", &uri, "--size=64M", "--rw=randrw", "--bs=4k"];
        let how = ["--iodepth=16", "--time_based", "--runtime=3", "--output-format=json"];
        let report = run("fio", &[&job[..], &how[..]].concat());
        let start = report.find('{').unwrap();
        let report: Value = serde_json::from_str(&report[start..]).unwrap();
        let job = &report["jobs"][0];
        let count = |of: &str| job[of]["total_ios"].as_u64().unwrap();
        let (requests, ms) = (count("read") + count("write"), job["job_runtime"].as_u64().unwrap());
        let most = 100 * (ms + 100) / 1000 + 17;
        println!("fio: {requests} requests in {ms} ms, at most {most}");
        assert!(requests <= most && requests > 100, "{requests} in {ms} ms");
    }
    assert!(server.terminate().success());
}

#[test]
fn data_that_wait_for_a_limit_do_not_hold_up_another_volume_of_the_thread() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let shares = ["--units", "4", "--shards", "1", "--volume-units", "2"];
    format_with(&data, Backend::File, 1024 * MIB, &shares);
    let server = serve(&data);
    change(&server, &["CREATE", "slow", "256MiB", "bandwidth", "4KiB"]);
    change(&server, &["CREATE", "fast", "256MiB"]);
    let block = noise(1, 32 << 20);
    // More than all requests of a thread may hold; the first passes, and the next waits for hours.
    let mut senders = Vec::new();
    for connection in 0..5_u64 {
        let (mut client, block) = (connect(&server, "slow"), block.clone());
        senders.push(std::thread::spawn(move || {
            // The server takes no more than the limit of the volume, and goes in the end.
            let _ = client.send(WRITE, 0, connection * 32 * MIB, block.len() as u32, &block);
        }));
    }
    let waits = "softflash_volume_waits_total{volume=\"slow\",limit=\"bandwidth\"}";
    let started = Instant::now();
    while metric(&server, waits) == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "no request waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut fast = connect(&server, "fast");
    for place in 0..8 {
        assert_eq!(fast.write(place * 32 * MIB % (64 * MIB), &block), 0);
    }
    let mut slow = connect(&server, "slow");
    assert_eq!(slow.call(FLUSH, 0, 0, 0), 0, "flushes do not wait for the limit");
    change(&server, &["RESIZE", "slow", "512MiB"]);
    server.kill();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}
