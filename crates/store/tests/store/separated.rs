//! Damaged separated values: checks name the key, repairs delete it, another copy heals it.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

use crate::mirror_support::{Mirror, close, rebuilt};
use crate::repair_support::{History, SUPERBLOCK, flip, repair_and_compare};
use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::check::CheckReport;
use softflash_store::on_flash::VALUE_HEADER_BYTES;
use softflash_testing::model::{key, value};
use softflash_testing::{Model, Testbed};
use std::time::Duration;

/// Values of this length and longer ones are separated.
const THRESHOLD: usize = 3000;
const KEYS: u64 = 30;

/// The places of the problems that a check reports.
fn places(report: &CheckReport) -> Vec<&str> {
    let errors = report.findings.iter().filter(|finding| finding.is_error);
    errors.map(|finding| &finding.place[..]).collect()
}

/// Some keys with small values, most with separated ones, some of them in fragments; some are
/// overwritten or deleted.
fn prepared() -> (Testbed, History) {
    let (mut testbed, mut history) = (Testbed::new(1, 2, 2, 64, SUPERBLOCK), History::default());
    testbed.options.value_threshold = Some(THRESHOLD);
    testbed.options.fragment_bytes = 20_000;
    let mut random = Rng::seeded(3);
    testbed.run(async |stores, _| {
        for number in (0..KEYS).chain([3, 8]) {
            let value = value(&mut random, if number % 5 == 0 { 1000 } else { 50_000 });
            history.write(&stores[0], key(number), Some(value)).await;
        }
        stores[0].flush().await.unwrap();
        history.write(&stores[0], key(4), None).await;
        let last = value(&mut random, 30_000);
        history.write(&stores[0], key(6), Some(last)).await;
    });
    assert!(testbed.check().ok);
    (testbed, history)
}

/// The place of these bytes in the device's file.
fn place_of(testbed: &Testbed, bytes: &[u8]) -> u64 {
    let file = std::fs::read(testbed.path()).unwrap();
    file.windows(bytes.len()).position(|part| part == bytes).unwrap() as u64
}

#[test]
fn the_values_behind_a_damaged_erase_header_are_moved_by_a_repair_and_none_is_lost() {
    let (testbed, history) = prepared();
    let newest = history.versions[&key(7)].last().cloned().flatten().unwrap();
    let value = place_of(&testbed, &newest[..100]);
    let (label, stride) = (1 << 20, SUPERBLOCK + 2 * 4096);
    let superblock = label + (value - label) / stride * stride;
    flip(&testbed, superblock + 60);
    let checked = testbed.check();
    assert!(matches!(&places(&checked)[..], [place] if place.starts_with("values, ")));
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!((report.value_blocks.len(), lost, report.has_loss()), (1, 0, false), "{report:#?}");
    assert!(report.value_blocks[0].problem.contains("erase header"), "{report:#?}");
}

#[test]
fn a_lost_value_is_reported_and_its_key_deleted_and_no_other() {
    // The newest version of a key in the tree, of one that was overwritten, of one in memory.
    for number in [1, 3, 6, 7] {
        let (testbed, history) = prepared();
        let newest = history.versions[&key(number)].last().cloned().flatten().unwrap();
        assert!(newest.len() >= THRESHOLD, "{}", newest.len());
        let value = place_of(&testbed, &newest[..100]);
        let header = value - (key(number).len() + VALUE_HEADER_BYTES) as u64;
        // The header, the key, the value, its last byte in the first fragment.
        let last = value + newest.len().min(20_000) as u64 - 1;
        for at in [header + 40, value - 1, value + 50, last] {
            flip(&testbed, at);
            let checked = testbed.check();
            let named = format!("`{}`", key(number).escape_ascii());
            assert!(matches!(&places(&checked)[..], [place] if place.contains(&named)));
            flip(&testbed, at);
            assert!(testbed.check().ok);
        }
        flip(&testbed, value + 50);
        let (report, lost) = repair_and_compare(&testbed, &history);
        assert_eq!((report.values.len(), lost, report.has_loss()), (1, 1, true), "{report:#?}");
    }
}

#[test]
fn damage_to_a_dead_value_is_no_problem() {
    let (testbed, history) = prepared();
    let overwritten = history.versions[&key(3)].first().cloned().flatten().unwrap();
    flip(&testbed, place_of(&testbed, &overwritten[..100]) + 50);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert!(report.is_clean() && lost == 0, "{report:#?}");
}

/// Two copies of a few separated values, and the first bytes of one of them.
fn mirrored() -> (Mirror, Model, Bytes) {
    let mut mirror = Mirror::new(1, 2);
    mirror.options.value_threshold = Some(THRESHOLD);
    mirror.options.scrub = Some(Duration::from_secs(20));
    let (mut model, mut random) = (Model::default(), Rng::seeded(7));
    mirror.session(async |stores, _| {
        for number in 0..KEYS {
            model.put(&stores[0], key(number), value(&mut random, 20_000)).await;
        }
        close(stores).await;
    });
    let long = model.entries.values().find(|value| value.len() > THRESHOLD).unwrap();
    let begin = long.slice(..32);
    (mirror, model, begin)
}

/// Damages the place of unit 0 at which these bytes are found first.
fn damage(mirror: &Mirror, begin: Bytes) {
    let mut damaged = None;
    mirror.faults.alter_reads(move |target, bytes| {
        let found = bytes.windows(begin.len()).position(|part| part == begin);
        let Some(at) = found.filter(|_| target.unit.0 == 0) else { return };
        let place = (target.blocks[0], target.page as usize * 4096 + at);
        if *damaged.get_or_insert(place) == place {
            bytes[at + 5] ^= 1;
        }
    });
}

#[test]
fn a_damaged_copy_is_healed_by_the_running_store() {
    let (mirror, model, begin) = mirrored();
    damage(&mirror, begin);
    let checked = mirror.check();
    assert!(matches!(&places(&checked)[..], [place] if place.starts_with("values, ")));
    mirror.session(async |stores, runtime| {
        model.compare(&stores[0]).await;
        // A pass of the scrub.
        runtime.sleep_until(runtime.now() + Duration::from_secs(30)).await;
        rebuilt(&stores[0], runtime).await;
        model.compare(&stores[0]).await;
        close(stores).await;
    });
    let checked = mirror.check();
    assert!(checked.ok, "{checked:#?}");
}

#[test]
fn a_damaged_copy_is_healed_by_a_repair() {
    let (mirror, model, begin) = mirrored();
    damage(&mirror, begin);
    let repaired = mirror.repair();
    assert!(!repaired.has_loss() && repaired.failures.is_empty(), "{repaired:#?}");
    assert_eq!(repaired.value_blocks.len(), 1, "{repaired:#?}");
    let checked = mirror.check();
    assert!(checked.ok, "{checked:#?}");
    mirror.session(async |stores, _| model.compare(&stores[0]).await);
}
