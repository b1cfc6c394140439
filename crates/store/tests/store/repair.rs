//! Repair of damaged patches, on a real device file that is damaged between the runs.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests end at the first error"
)]

use crate::log_support::{FoundFrame, Raw, get};
use crate::repair_support::{
    FoundPatch, History, SUPERBLOCK, flip, patches, plan, repair, repair_and_compare, zero,
};
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_base::random::Rng;
use softflash_store::StoreError;
use softflash_store::on_flash::frame::FrameRole;
use softflash_store::repair::OnLogLoss;
use softflash_testing::Testbed;
use softflash_testing::model::{key, value};

const KEYS: u64 = 400;

fn rng(default_seed: u64) -> Rng {
    let seed = std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(default_seed);
    println!("seed {seed}: replay with SOFTFLASH_SEED={seed}");
    Rng::seeded(seed)
}

/// Two runs of patches, and some keys in the log. The newer run overwrites and deletes some keys of
/// the older. Returns the patches of both runs.
fn prepared(shards: u16) -> (Testbed, History, Vec<FoundPatch>, Vec<FoundPatch>) {
    let (mut testbed, mut history) =
        (Testbed::new(shards, shards, 2, 64, SUPERBLOCK), History::default());
    // Only explicit flushes and compactions.
    testbed.options.memory_bytes = 2 << 20;
    let mut random = Rng::seeded(11);
    let ids = testbed.run(async |stores, _| {
        let ids = || {
            let ids = stores.iter().flat_map(|store| store.blocks().ids());
            ids.map(|id| id.0).collect::<Vec<_>>()
        };
        for number in 0..KEYS {
            let value = value(&mut random, 2000);
            history.write(&stores[0], key(number), Some(value)).await;
        }
        for store in stores {
            store.flush().await.unwrap();
        }
        let older = ids();
        for number in (0..KEYS).filter(|number| number % 3 != 0) {
            let value = (number % 3 == 1).then(|| value(&mut random, 2000));
            history.write(&stores[0], key(number), value).await;
        }
        for store in stores {
            store.flush().await.unwrap();
        }
        let newer: Vec<u64> = ids().into_iter().filter(|id| !older.contains(id)).collect();
        for number in KEYS..KEYS + 10 {
            history.write(&stores[0], key(number), Some(Bytes::from_static(b"in the log"))).await;
        }
        (older, newer)
    });
    let (older, newer) =
        (patches(&testbed, &ids.0, SUPERBLOCK), patches(&testbed, &ids.1, SUPERBLOCK));
    assert!(!older.is_empty() && !newer.is_empty());
    assert!(testbed.check().ok);
    (testbed, history, older, newer)
}

#[test]
fn a_whole_store_needs_no_repair() {
    let (testbed, history, ..) = prepared(2);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert!(report.is_clean() && !report.has_changed && lost == 0, "{report:#?}");
}

/// Values of which most patches hold a part at both ends, so that all patches of the run are
/// linked.
#[test]
fn a_damaged_patch_is_rewritten_with_its_neighbours_and_not_with_the_whole_run() {
    let (mut testbed, mut history) = (Testbed::new(1, 1, 2, 64, SUPERBLOCK), History::default());
    testbed.options.memory_bytes = 32 << 20;
    testbed.options.fragment_bytes = 1000;
    let mut random = Rng::seeded(12);
    let ids = testbed.run(async |stores, _| {
        for number in 0..600 {
            history.write(&stores[0], key(number), Some(value(&mut random, 20_000))).await;
        }
        stores[0].flush().await.unwrap();
        stores[0].blocks().ids().iter().map(|id| id.0).collect::<Vec<_>>()
    });
    let run = patches(&testbed, &ids, SUPERBLOCK);
    assert!(run.len() > 8, "{}", run.len());
    let damaged = &run[run.len() / 2];
    flip(&testbed, damaged.data() + 1000);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert!((1..=3).contains(&report.patches.len()), "{report:#?}");
    assert!((1..=3).contains(&lost), "{lost} values are lost");
    assert!(testbed.check().ok);
}

/// Without its metadata the keys of a patch are unknown: no key that it may hold is reported
/// absent.
#[test]
fn keys_that_may_be_in_a_lost_patch_are_never_absent() {
    let (testbed, history, older, _) = prepared(1);
    assert!(older.len() > 1, "a run of several patches");
    for patch in &older {
        flip(&testbed, patch.filter());
        let (mut found, mut lost) = (0, 0);
        testbed.run(async |stores, _| {
            for (key, versions) in &history.versions {
                let expected = versions.last().cloned().flatten();
                match stores[0].begin().get(key).await {
                    Ok(entry) => {
                        found += 1;
                        assert_eq!(entry.map(|entry| entry.value.to_bytes()), expected, "{key:?}");
                    }
                    Err(StoreError::DataLoss(_)) => lost += 1,
                    Err(error) => unreachable!("{error}"),
                }
            }
            let page = stores[0].scan(SliceId(0), None, 1000).await;
            assert!(matches!(page, Err(StoreError::DataLoss(_))), "a scan reports the loss");
        });
        println!("{found} keys are found, {lost} may be lost");
        assert!(found > 10 && lost > 10);
        flip(&testbed, patch.filter());
    }
}

#[test]
fn damaged_blocks_lose_only_their_records_and_no_old_value_reappears() {
    for part in [0, 1, 2] {
        let (testbed, history, _, newer) = prepared(1);
        let patch = &newer[0];
        let data_len = u64::from(patch.header.data_len);
        // The first block, one in the middle, the last.
        flip(&testbed, patch.data() + 30 + part * (data_len / 2 - 30));
        let (report, lost) = repair_and_compare(&testbed, &history);
        let repaired = &report.patches[0];
        assert_eq!(report.patches.len(), 1, "{report:#?}");
        assert_eq!(repaired.blocks_lost, Some(1), "{report:#?}");
        assert!(repaired.records_lost >= Some(1) && !repaired.older_values_may_return);
        assert!(repaired.older_values_hidden >= 1, "{report:#?}");
        // A lost deletion is replaced.
        assert!(lost >= 1 && Some(lost) <= repaired.records_lost, "{lost} {report:#?}");
    }
}

#[test]
fn lost_metadata_loses_no_record_where_the_blocks_are_whole() {
    let (testbed, history, older, newer) = prepared(1);
    flip(&testbed, newer[0].filter() + 20);
    flip(&testbed, older[0].payload() + 200);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!((report.patches.len(), lost, report.has_loss()), (2, 0, false), "{report:#?}");
}

#[test]
fn without_its_header_a_patch_is_found_by_its_blocks() {
    // Damages the header alone, or also the first block, which shows where the data section starts.
    for first_block in [false, true] {
        let (testbed, history, older, _) = prepared(1);
        flip(&testbed, older[0].payload() + 24);
        if first_block {
            flip(&testbed, older[0].data() + 3);
        }
        let (report, lost) = repair_and_compare(&testbed, &history);
        let repaired = &report.patches[0];
        assert!(repaired.records_kept > 40 && repaired.records_lost.is_none(), "{report:#?}");
        assert_eq!(repaired.ranges.len(), 1 + usize::from(first_block), "{report:#?}");
        assert_eq!(repaired.ranges.last().map(|range| range.is_certain), Some(false));
        assert_eq!(lost > 0, first_block, "{report:#?}");
    }
}

#[test]
fn lost_metadata_and_a_damaged_block_lose_only_that_block() {
    let (testbed, history, _, newer) = prepared(1);
    flip(&testbed, newer[0].filter() + 20);
    flip(&testbed, newer[0].data() + u64::from(newer[0].header.data_len) / 2);
    let (report, _) = repair_and_compare(&testbed, &history);
    let repaired = &report.patches[0];
    assert_eq!((repaired.ranges.len(), repaired.blocks_lost), (1, Some(1)), "{report:#?}");
    assert!(repaired.older_values_may_return, "the lost keys are unknown: {report:#?}");
}

#[test]
fn a_patch_behind_a_damaged_opening_header_is_found() {
    let (testbed, history, older, _) = prepared(1);
    flip(&testbed, older[0].at + 4096 + 70);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!((report.patches.len(), lost, report.has_loss()), (1, 0, false), "{report:#?}");
    assert!(report.patches[0].problem.contains("opening header"), "{report:#?}");
}

#[test]
fn a_damaged_erase_header_loses_no_record() {
    let (testbed, history, older, _) = prepared(1);
    flip(&testbed, older[0].at + 60);
    let segment = Raw::open(&testbed, SUPERBLOCK).segments(0).pop().unwrap();
    flip(&testbed, segment.at - 2 * 4096 + 60);
    assert!(!testbed.check().ok);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!((report.patches.len(), report.logs.len(), lost), (1, 1, 0), "{report:#?}");
    assert!(!report.has_loss(), "{report:#?}");
}

#[test]
fn a_missing_patch_is_removed_from_the_tree() {
    let (testbed, history, older, newer) = prepared(1);
    for gone in [&older[0], &newer[0]] {
        zero(&testbed, gone.at, SUPERBLOCK + 2 * 4096);
    }
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!(report.patches.len(), 2, "{report:#?}");
    assert!(lost > 0 && report.patches.iter().all(|repaired| repaired.records_kept == 0));
}

#[test]
fn zeroed_pages_lose_only_the_reported_records() {
    let mut random = rng(77);
    for round in 0..12 {
        let (testbed, history, older, newer) = prepared(1 + (round % 2) as u16);
        let all: Vec<_> = older.iter().chain(&newer).collect();
        for _ in 0..=random.below(4) {
            let patch = all[random.below(all.len() as u64) as usize];
            let pages = 2 + u64::from(patch.header.metadata_len + patch.header.data_len) / 4096;
            zero(&testbed, patch.at + 4096 * random.below(pages), 4096 * (1 + random.below(3)));
        }
        repair_and_compare(&testbed, &history);
    }
}

#[test]
fn a_value_with_a_lost_part_is_lost_as_a_whole() {
    let superblock = 4 << 20;
    let (mut testbed, mut history) = (Testbed::new(1, 1, 2, 40, superblock), History::default());
    testbed.options.value_threshold = None;
    let mut random = Rng::seeded(5);
    let ids: Vec<u64> = testbed.run(async |stores, runtime| {
        for number in 0..6 {
            let mut large = vec![0; 5 << 20];
            random.fill(&mut large);
            history.write(&stores[0], key(number), Some(Bytes::from(large))).await;
        }
        stores[0].flush().await.unwrap();
        // Waits for the end of compaction.
        runtime.sleep_until(runtime.now() + 2_000_000_000).await;
        stores[0].blocks().ids().iter().map(|id| id.0).collect()
    });
    let patches = patches(&testbed, &ids, superblock);
    assert!(patches.len() > 5, "values lie across patches: {}", patches.len());
    flip(&testbed, patches[3].data() + 200_000);
    let (report, lost) = repair_and_compare(&testbed, &history);
    assert_eq!(lost, 1, "{report:#?}");
    assert!(report.patches.iter().any(|repaired| repaired.torn_keys.len() == 1), "{report:#?}");
}

#[test]
fn an_examination_changes_nothing() {
    let (testbed, _, older, newer) = prepared(1);
    flip(&testbed, older[0].filter() + 20);
    flip(&testbed, newer[0].data() + 30);
    let before = std::fs::read(testbed.path()).unwrap();
    let plan = plan(&testbed);
    assert_eq!((plan.patches.len(), plan.has_changed), (2, false), "{plan:#?}");
    assert!(before == std::fs::read(testbed.path()).unwrap(), "the examination has written");
}

#[test]
fn a_repair_can_apply_the_frames_behind_lost_ones() {
    let mut random = rng(99);
    for _ in 0..6 {
        let (testbed, mut history, ..) = prepared(1);
        testbed.crash(async |stores, _| {
            for number in 2000..2100 {
                let value = value(&mut random, 2000);
                history.write(&stores[0], key(number), Some(value)).await;
            }
        });
        let segments = Raw::open(&testbed, SUPERBLOCK).segments(0);
        let segment = &segments[segments.len() - 2];
        let device = std::fs::read(testbed.path()).unwrap();
        // Edits, for example of a compaction that ends at the same time, hold no keys.
        let has_write = |frame: &&FoundFrame| {
            let bytes = &device[frame.at as usize..][..frame.covered as usize];
            let is_in = |key: Bytes| bytes.windows(key.len()).any(|part| part == key);
            let is_stream = frame.header.role == FrameRole::Stream;
            is_stream && (2000..2100).any(|number| is_in(key(number)))
        };
        let frames: Vec<_> = segment.frames.iter().filter(has_write).collect();
        let (first, lost) = (5 + random.below(30) as usize, 1 + random.below(3));
        assert!(frames.len() > first + 5, "{} frames", frames.len());
        for frame in frames.iter().skip(first).take(lost as usize) {
            flip(&testbed, frame.at + 80);
        }
        let refused = plan(&testbed);
        assert_eq!((refused.failures.len(), refused.is_clean()), (1, false), "{refused:#?}");
        let report = repair(&testbed, OnLogLoss::Accept);
        assert!(report.failures.is_empty() && report.has_loss(), "{report:#?}");
        let frames: u64 = report.logs[0].frames_lost.iter().map(|lost| lost.end - lost.start).sum();
        assert_eq!(frames, lost, "{report:#?}");
        let checked = testbed.check();
        assert!(checked.ok, "{checked:#?}");
        assert!(repair(&testbed, OnLogLoss::Accept).is_clean());
        let mut gone = 0;
        testbed.crash(async |stores, _| {
            for (key, versions) in &history.versions {
                let found = get(&stores[0], key).await;
                if versions.last() != Some(&found) {
                    assert!(found.is_none() && versions.len() == 1, "{key:?}");
                    gone += 1;
                }
            }
        });
        // Each frame had one write; a frame with an intact copy is not lost.
        assert!((1..=lost).contains(&gone), "{gone} of {lost}");
    }
}
