//! A flipped bit in each kind of metadata and of data: `check` reports it, and the server returns
//! the right value or an error, never anything else.

use crate::support::damage::{DeviceMap, LABEL_COPIES};
use crate::support::noise;
use crate::support::program::{Backend, check, check_clean, format, format_with, said};
use crate::support::resp::Client;
use crate::support::server::Server;
use std::fs;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// Keys that end up in patches, and keys that are only in the log at the end.
const OLD_KEYS: u64 = 9000;
const NEW_KEYS: u64 = 200;
const VALUE_BYTES: usize = 6000;

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:06}").into_bytes()
}

fn value(number: u64) -> Vec<u8> {
    noise(number + 1, VALUE_BYTES)
}

/// The key whose value's block is damaged in a patch.
const VICTIM: u64 = 17;

/// Expected behaviour of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Serves all data from a second copy.
    None,
    /// Returns an error for the victim's value only; or refuses to start.
    VictimLost,
    /// Refuses to start, or returns errors for some values.
    Some,
}

struct Case {
    name: &'static str,
    offsets: Vec<u64>,
    effect: Effect,
}

#[test]
fn a_flipped_bit_is_reported_and_never_returned() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    prepare(&data);
    let map = DeviceMap::read(&data);
    let mut failures = Vec::new();
    for case in cases(&map) {
        let copy = directory.path().join("copy");
        copy_directory(&data, &copy);
        map.flip(&copy.join(map.path().file_name().unwrap()), &case.offsets);
        let outcome = std::panic::catch_unwind(|| examine(&copy, &case));
        if outcome.is_err() {
            failures.push(case.name);
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    assert!(failures.is_empty(), "these damages were not met as they should: {failures:?}");
}

/// Both are whole, and neither is what it should be: taken for empty, they would be written over.
#[test]
fn units_in_each_other_s_place_are_not_taken_for_empty() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let shape = ["--units", "4", "--shards", "1", "--volume-units", "2"];
    format_with(&data, Backend::File, 256 * MIB, &shape);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for number in 0..200 {
        assert!(client.set(&key(number), &value(number)).is_ok());
    }
    assert!(client.call(&[b"FLASH.VOLUME", b"CREATE", b"disk", b"8MiB"]).is_ok());
    assert!(server.terminate().success());
    check_clean(&data);

    let map = DeviceMap::read(&data);
    for (one, other) in [(0, 1), (2, 3)] {
        map.exchange(one, other);
        let name = format!("unit {one}: it holds the superblocks of unit {other}");
        let checked = check(&data);
        assert!(!checked.ok && checked.report.to_string().contains(&name), "{}", checked.report);
        map.exchange(one, other);
        check_clean(&data);
    }
}

/// Data in patches and data in the log, left by a killed process.
fn prepare(data: &Path) {
    format(data, Backend::File, 512 * MIB);
    let server = Server::start(data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for start in (0..OLD_KEYS).step_by(100) {
        (start..start + 100)
            .for_each(|number| client.send(&[b"SET", &key(number), &value(number)]).unwrap());
        (start..start + 100).for_each(|number| {
            assert!(client.receive().unwrap().is_ok(), "key {number}");
        });
    }
    assert!(client.flash_stat("patches") > 0, "nothing was flushed");
    for number in OLD_KEYS..OLD_KEYS + NEW_KEYS {
        assert!(client.set(&key(number), &value(number)).is_ok());
    }
    server.kill();
    check_clean(data);
}

fn cases(map: &DeviceMap) -> Vec<Case> {
    let (segment, frames) = map.log();
    assert!(frames.len() > 20, "only {} frames in the newest segment", frames.len());
    let frame = frames[frames.len() / 2];
    // The value may also be in patches that were compacted away; the test does not know which one
    // counts.
    let patches = map.patches_with(&value(VICTIM));
    assert!(!patches.is_empty(), "the victim is in no patch");
    let in_patches = |place: fn(&crate::support::damage::Patch) -> u64| {
        patches.iter().map(|(_, patch, _)| place(patch)).collect::<Vec<_>>()
    };
    let case = |name, offsets, effect| Case { name, offsets, effect };
    let lost = Effect::VictimLost;
    vec![
        case("one copy of the device label", vec![LABEL_COPIES[0] + 50], Effect::None),
        case("the other copy of the device label", vec![LABEL_COPIES[1] + 20], Effect::None),
        case(
            "both copies of the device label",
            LABEL_COPIES.map(|copy| copy + 45).into(),
            Effect::Some,
        ),
        case("the erase header of a log segment", vec![segment.offset + 44], Effect::None),
        case("the opening header of a log segment", vec![segment.opening + 70], Effect::Some),
        case("the header of a log frame", vec![frame.offset + 20], Effect::Some),
        case(
            "the payload of a log frame",
            vec![frame.offset + 64 + frame.payload_len / 2],
            Effect::Some,
        ),
        case(
            "the erase header of a patch",
            patches.iter().map(|(s, ..)| s.offset + 60).collect(),
            Effect::None,
        ),
        case(
            "the opening header of a patch",
            patches.iter().map(|(s, ..)| s.opening + 100).collect(),
            lost,
        ),
        case("the header of a patch", in_patches(|patch| patch.header + 24), lost),
        case("the keys of a patch", in_patches(|patch| patch.keys + 2), lost),
        case("the fences of a patch", in_patches(|patch| patch.fences + 5), lost),
        case("the filter of a patch", in_patches(|patch| patch.filter + 40), lost),
        case(
            "a value in a block of a patch",
            patches.iter().map(|(.., at)| at + 3000).collect(),
            lost,
        ),
        case(
            "the first block's header in a patch",
            in_patches(|patch| patch.data + 9),
            Effect::Some,
        ),
    ]
}

/// Checks one damaged copy with `check`, then with a server.
fn examine(data: &Path, case: &Case) {
    let checked = check(data);
    eprintln!("{}: check says {}", case.name, checked.report["findings"]);
    assert!(!checked.ok, "{}: check finds nothing: {:#}", case.name, checked.report);

    match Server::try_start(data, &["--memory", "32MiB"]) {
        Err(output) => {
            let said = said(&output);
            eprintln!("{}: the server refuses: {said}", case.name);
            assert_ne!(
                case.effect,
                Effect::None,
                "{}: the server refuses to start: {said}",
                case.name
            );
            assert_eq!(output.status.code(), Some(1), "{}: {said}", case.name);
            assert!(said.contains("softflash") || said.contains("damage"), "{}: {said}", case.name);
        }
        Ok(server) => {
            let (errors, victim_lost) = read_everything(&mut server.client(), case.name);
            eprintln!("{}: the server gives {errors} errors", case.name);
            match case.effect {
                Effect::None => assert_eq!(errors, 0, "{}: values are lost", case.name),
                Effect::Some => assert!(errors > 0, "{}: nothing is amiss", case.name),
                Effect::VictimLost => {
                    assert!(victim_lost, "{}: the victim is served", case.name);
                    server.await_said("a client was told of data loss");
                    let lines =
                        server.said().lines().filter(|line| line.contains("data loss")).count();
                    assert!(lines <= 101, "{}: {lines} lines in the log", case.name);
                }
            }
        }
    }
}

/// Every key returns its value or an error. Returns the number of errors, and whether the victim's
/// is one.
fn read_everything(client: &mut Client, name: &str) -> (u64, bool) {
    let (mut errors, mut victim_lost) = (0, false);
    for start in (0..OLD_KEYS + NEW_KEYS).step_by(100) {
        (start..start + 100).for_each(|number| client.send(&[b"GET", &key(number)]).unwrap());
        for number in start..start + 100 {
            let reply = client.receive().unwrap();
            match reply.error() {
                Some(_) => {
                    errors += 1;
                    victim_lost |= number == VICTIM;
                }
                None => assert!(
                    reply.bulk().is_some_and(|got| got == value(number)),
                    "{name}: key {number} has a wrong value"
                ),
            }
        }
    }
    (errors, victim_lost)
}

/// A store with a single log segment must not look empty when that segment's header is lost: its
/// owner is unknown then, but its contents were acknowledged.
#[test]
fn a_lost_segment_is_not_taken_for_an_empty_log() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format_with(&data, Backend::File, 256 * MIB, &["--units", "2", "--shards", "1"]);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for number in 0..50 {
        assert!(client.set(&key(number), &value(number)).is_ok());
    }
    server.kill();
    check_clean(&data);

    let map = DeviceMap::read(&data);
    let (segment, frames) = map.log();
    assert!(frames.len() > 20, "only {} frames", frames.len());
    map.flip(map.path(), &[segment.opening + 60]);
    let checked = check(&data);
    assert!(!checked.ok, "check finds nothing wrong: {:#}", checked.report);
    if let Ok(server) = Server::try_start(&data, &["--memory", "32MiB"]) {
        let reply = server.client().call(&[b"GET", &key(7)]);
        assert!(reply.error().is_some(), "a lost value is {reply:?}");
    }
}

fn copy_directory(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .args(["-r", "--sparse=always", "--reflink=auto"])
        .args([from, to])
        .status();
    assert!(copied.unwrap().success(), "cp");
}
