//! Recovery of the log after crashes and damage, on a real device file that is edited between the
//! sessions.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests end at the first error"
)]

use crate::log_support::{FoundFrame, FoundSegment, PAGE, Raw, get, try_open};
use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::on_flash::Version;
use softflash_store::on_flash::event::{self, Event, Replayed};
use softflash_store::on_flash::frame::FrameRole;
use softflash_store::{Durability, Entry, StoreError};
use softflash_testing::model::{key, value};
use softflash_testing::{Model, Testbed};
use std::time::Duration;

const SUPERBLOCK: u64 = 256 << 10;

fn rng(default_seed: u64) -> Rng {
    let seed = std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(default_seed);
    println!("seed {seed}: replay with SOFTFLASH_SEED={seed}");
    Rng::seeded(seed)
}

fn testbed() -> Testbed {
    Testbed::new(1, 1, 2, 32, SUPERBLOCK)
}

fn raw(testbed: &Testbed) -> Raw {
    Raw::open(testbed, SUPERBLOCK)
}

fn newest(testbed: &Testbed) -> FoundSegment {
    raw(testbed).segments(0).pop().unwrap()
}

/// Writes `count` keys from `first` on, each in a frame of its own, and crashes.
fn write_some(testbed: &Testbed, model: &mut Model, first: u64, count: u64) {
    testbed.crash(async |stores, _| {
        model.compare(&stores[0]).await;
        for number in first..first + count {
            model.put(&stores[0], key(number), Bytes::from(format!("value {number}"))).await;
        }
    });
}

/// Compares all keys, and crashes.
fn compare(testbed: &Testbed, model: &Model) {
    testbed.crash(async |stores, _| model.compare(&stores[0]).await);
}

fn data_frames(segment: &FoundSegment) -> Vec<FoundFrame> {
    let data = |frame: &&FoundFrame| frame.header.role.is_stream() && frame.header.payload_len > 0;
    segment.frames.iter().filter(data).cloned().collect()
}

/// The first part of a batch that puts `key`.
fn half_a_batch(key: &Bytes, bytes: usize) -> Vec<u8> {
    let entry = Entry::new(Bytes::from(vec![b'?'; 2 * bytes]));
    let version = Version::seal(key, 1 << 40, Some(entry)).unwrap();
    let mut stream = Vec::new();
    let entries = [(key.clone(), version)];
    event::encode(&Event::Batch { seq: 1 << 40, clear: false, entries: &entries }, &mut stream);
    stream.truncate(bytes);
    stream
}

#[test]
fn with_a_damaged_acknowledged_frame_the_open_is_refused_and_names_the_segment() {
    let mut random = rng(1);
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 20);
    let (raw, segment) = (raw(&testbed), newest(&testbed));
    assert!(segment.frames.len() > 20, "{} frames", segment.frames.len());
    let (_, proved) = segment.frames.split_last().unwrap();
    let name = format!("segment {} of the log", segment.number);
    for _ in 0..150 {
        let frame = &proved[random.below(proved.len() as u64) as usize];
        let (at, bit) = (frame.at + random.below(frame.covered), random.below(8) as u8);
        raw.flip(at, bit);
        let report = testbed.check();
        let found = report.findings.iter().any(|finding| finding.problem.contains(&name));
        assert!(!report.ok && found, "byte {} of {frame:?}: {report:?}", at - frame.at);
        raw.flip(at, bit);
    }
    let frame = &proved[proved.len() / 2];
    raw.flip(frame.at + 70, 3);
    match try_open(&testbed) {
        Err(StoreError::DataLoss(what)) => assert!(what.contains(&name), "{what}"),
        other => panic!("{other:?}"),
    }
    // A refused open has changed nothing.
    raw.flip(frame.at + 70, 3);
    compare(&testbed, &model);
}

#[test]
fn damage_to_the_last_frame_is_a_torn_write() {
    let mut random = rng(2);
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 10);
    model.entries.remove(&key(9));
    let (raw, last) = (raw(&testbed), newest(&testbed).frames.pop().unwrap());
    for _ in 0..50 {
        let (at, bit) = (last.at + random.below(last.covered), random.below(8) as u8);
        raw.flip(at, bit);
        let report = testbed.check();
        assert!(report.ok && report.log_keys == 9, "byte {}: {report:?}", at - last.at);
        raw.flip(at, bit);
    }
    raw.zero(&last);
    write_some(&testbed, &mut model, 100, 10);
    compare(&testbed, &model);
}

#[test]
fn with_a_damaged_opening_header_of_the_last_segment_the_open_is_refused() {
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 5);
    let segment = newest(&testbed);
    let opening = segment.at - PAGE as u64;
    raw(&testbed).flip(opening + 70, 2);
    match try_open(&testbed) {
        Err(StoreError::DataLoss(what)) => {
            assert!(what.contains(&format!("segment {} of the log", segment.number)), "{what}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!testbed.check().ok);
    raw(&testbed).flip(opening + 70, 2);
    compare(&testbed, &model);
}

#[test]
fn after_a_clean_stop_a_damaged_last_data_frame_is_corruption() {
    let (testbed, mut model) = (testbed(), Model::default());
    testbed.run(async |stores, _| {
        for number in 0..5 {
            model.put(&stores[0], key(number), Bytes::from(format!("value {number}"))).await;
        }
    });
    for segment in raw(&testbed).segments(0) {
        for frame in data_frames(&segment) {
            raw(&testbed).flip(frame.at + 70, 3);
            let report = testbed.check();
            assert!(!report.ok, "{frame:?}: {report:?}");
            raw(&testbed).flip(frame.at + 70, 3);
        }
    }
    compare(&testbed, &model);
}

#[test]
fn a_flipped_bit_in_the_padding_of_a_frame_is_ignored() {
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 5);
    let frame = newest(&testbed).frames.pop().unwrap();
    raw(&testbed).flip(frame.at + PAGE as u64 - 1, 0);
    compare(&testbed, &model);
}

#[test]
fn a_torn_event_is_never_joined_with_later_writes() {
    for half in [3, 5, 40, 3000, 9000] {
        let (testbed, mut model) = (testbed(), Model::default());
        write_some(&testbed, &mut model, 0, 5);
        for round in 1..4 {
            let segment = newest(&testbed);
            let durable = segment.frames.last().unwrap().header.durable_before;
            assert!(raw(&testbed).append(&segment, durable, &half_a_batch(&key(999), half)));
            write_some(&testbed, &mut model, 10 * round, 5);
            compare(&testbed, &model);
        }
        assert!(testbed.check().ok);
    }
}

#[test]
fn a_torn_event_of_many_frames_is_absent_as_a_whole() {
    for torn in 1..3 {
        let (mut testbed, mut model) = (testbed(), Model::default());
        testbed.options.value_threshold = None;
        write_some(&testbed, &mut model, 0, 5);
        testbed.crash(async |stores, _| {
            let large = Bytes::from(vec![7; 150_000]);
            model.put(&stores[0], key(77), large).await;
        });
        model.entries.remove(&key(77));
        let frames = data_frames(&newest(&testbed));
        assert!(frames.len() > 2, "{}", frames.len());
        frames.iter().rev().take(torn).for_each(|frame| raw(&testbed).zero(frame));
        for round in 1..4 {
            write_some(&testbed, &mut model, 10 * round, 5);
        }
        compare(&testbed, &model);
    }
}

#[test]
fn a_dropped_frame_stays_dropped_when_it_becomes_readable() {
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 10);
    model.entries.remove(&key(9));
    let last = newest(&testbed).frames.pop().unwrap();
    raw(&testbed).flip(last.at + 80, 1);
    write_some(&testbed, &mut model, 20, 5);
    raw(&testbed).flip(last.at + 80, 1);
    compare(&testbed, &model);
    write_some(&testbed, &mut model, 30, 5);
    compare(&testbed, &model);
    assert!(testbed.check().ok);
}

#[test]
fn crashes_right_after_a_segment_was_begun_lose_nothing() {
    // The remainder of the last segment, which holds only its checkpoint: nothing, or half a page.
    for left in [0, 30, 100] {
        let (testbed, mut model) = (testbed(), Model::default());
        write_some(&testbed, &mut model, 0, 10);
        for _ in 0..3 {
            compare(&testbed, &model);
            let segment = newest(&testbed);
            let opens = |frame: &FoundFrame| frame.header.role == FrameRole::Opening;
            let opening = segment.frames.iter().position(opens).unwrap();
            let checkpoint = &segment.frames[opening];
            raw(&testbed).erase_announcements(0);
            segment.frames.iter().skip(opening + 1).for_each(|frame| raw(&testbed).zero(frame));
            raw(&testbed).write(checkpoint.at + left, &vec![0; PAGE - left as usize]);
        }
        write_some(&testbed, &mut model, 20, 5);
        compare(&testbed, &model);
        assert!(testbed.check().ok);
    }
}

#[test]
fn a_new_store_may_crash_repeatedly_before_its_first_checkpoint() {
    for left in [0, 20] {
        let (testbed, mut model) = (testbed(), Model::default());
        for _ in 0..3 {
            compare(&testbed, &model);
            let segment = newest(&testbed);
            let (checkpoint, behind) = segment.frames.split_first().unwrap();
            raw(&testbed).erase_announcements(0);
            behind.iter().for_each(|frame| raw(&testbed).zero(frame));
            raw(&testbed).write(checkpoint.at + left, &vec![0; PAGE - left as usize]);
        }
        write_some(&testbed, &mut model, 0, 5);
        compare(&testbed, &model);
    }
}

#[test]
fn a_damaged_checkpoint_of_the_first_segment_needed_is_a_loss() {
    let (testbed, mut model) = (testbed(), Model::default());
    write_some(&testbed, &mut model, 0, 5);
    let segment = newest(&testbed);
    raw(&testbed).zero(&segment.frames[0]);
    let error = try_open(&testbed).unwrap_err();
    let name = format!("segment {} of the log", segment.number);
    assert!(matches!(&error, StoreError::DataLoss(what) if what.contains(&name)), "{error}");
}

/// Commits keys 0.. without waiting, and crashes once all are written.
fn write_without_waiting(testbed: &Testbed, count: u64) {
    testbed.crash(async |stores, runtime| {
        for number in 0..count {
            let mut transaction = stores[0].begin();
            transaction
                .put(key(number), Entry::new(Bytes::from(vec![number as u8; 3000])))
                .unwrap();
            stores[0].commit(transaction).await.unwrap();
            if number % 8 == 0 {
                runtime.sleep_until(runtime.now() + 12_000_000).await;
            }
        }
        runtime.sleep_until(runtime.now() + 50_000_000).await;
    });
}

#[test]
fn a_lost_unflushed_tail_before_a_later_segment_is_torn_if_it_was_not_durable() {
    let mut testbed = Testbed::new(1, 1, 2, 96, SUPERBLOCK);
    testbed.options.durability = Durability::Interval(Duration::from_secs(3600));
    write_without_waiting(&testbed, 120);
    let raw = raw(&testbed);
    let segments = raw.segments(0);
    assert!(segments.len() >= 2, "the log has rolled over");
    let durable = segments.iter().flat_map(|s| &s.frames).map(|f| f.header.durable_before).max();
    let first = data_frames(&segments[0]);
    let lost = &first[first.len() - 3..];
    assert!(durable <= Some(lost[0].header.sequence), "no write was waited for");
    lost.iter().for_each(|frame| raw.zero(frame));
    let kept = testbed.crash(async |stores, _| {
        let mut found = Vec::new();
        for number in 0..120 {
            found.push(get(&stores[0], &key(number)).await.is_some());
        }
        let kept = found.iter().take_while(|found| **found).count();
        assert!(found[kept..].iter().all(|found| !found), "a prefix is left: {found:?}");
        assert!((10..100).contains(&kept), "{kept}");
        kept
    });
    // The next start recovers the same prefix, and new writes extend it.
    testbed.options.durability = Durability::Flash;
    let mut model = Model::default();
    for number in 0..kept as u64 {
        model.entries.insert(key(number), Bytes::from(vec![number as u8; 3000]));
    }
    write_some(&testbed, &mut model, 500, 5);
    compare(&testbed, &model);
}

#[test]
fn a_start_that_is_named_only_behind_a_lost_tail_does_not_count() {
    let mut testbed = Testbed::new(1, 1, 2, 96, SUPERBLOCK);
    testbed.options.durability = Durability::Interval(Duration::from_secs(3600));
    write_without_waiting(&testbed, 230);
    let (raw, segments) = (raw(&testbed), raw(&testbed).segments(0));
    let [first, second, later @ ..] = &segments[..] else { panic!("no second segment") };
    assert!(!later.is_empty(), "no third segment");
    // As if an edit at the end of the second segment had released the first: later segments record
    // it, and the edit itself is lost.
    for segment in later {
        let checkpoint = &segment.frames[0];
        let payload = Bytes::from(raw.payload(checkpoint));
        let body = payload.slice(event::LENGTH_BYTES..);
        let Ok(Replayed::Checkpoint(mut state)) = event::decode(&body) else {
            panic!("a segment starts with a checkpoint")
        };
        assert_eq!(state.log_start, first.number);
        state.log_start = second.number;
        let mut forged = Vec::new();
        event::encode(&Event::Checkpoint(&state), &mut forged);
        raw.reseal(segment, checkpoint, &forged);
    }
    data_frames(second).iter().rev().take(3).for_each(|frame| raw.zero(frame));
    testbed.crash(async |stores, _| {
        let mut kept = 0;
        while get(&stores[0], &key(kept)).await.is_some() {
            kept += 1;
        }
        assert!((85..200).contains(&kept), "{kept}: the first segment and part of the second");
    });
}

#[test]
fn a_missing_segment_is_a_loss_where_its_frames_were_durable() {
    let (testbed, mut model) = (Testbed::new(1, 1, 2, 96, SUPERBLOCK), Model::default());
    testbed.crash(async |stores, _| {
        for number in 0..70 {
            model.put(&stores[0], key(number), Bytes::from(vec![1; 5000])).await;
        }
    });
    let (raw, segments) = (raw(&testbed), raw(&testbed).segments(0));
    assert!(segments.len() >= 2, "the log has rolled over");
    raw.write(segments[0].at, &vec![0; SUPERBLOCK as usize]);
    assert!(matches!(try_open(&testbed), Err(StoreError::DataLoss(_))));
}

#[test]
fn the_loss_of_the_whole_newest_segment_is_reported() {
    let superblock = SUPERBLOCK as usize + 2 * PAGE;
    let random = || {
        let mut bytes = vec![0; superblock];
        rng(7).fill(&mut bytes);
        bytes
    };
    for left in [vec![0; superblock], random()] {
        let (testbed, mut model) = (Testbed::new(1, 2, 2, 32, SUPERBLOCK), Model::default());
        write_some(&testbed, &mut model, 0, 5);
        write_some(&testbed, &mut model, 10, 5);
        let (raw, segment) = (raw(&testbed), newest(&testbed));
        raw.write(segment.at - 2 * PAGE as u64, &left);
        let name = format!("segment {} of the log", segment.number);
        match try_open(&testbed) {
            Err(StoreError::DataLoss(what)) => assert!(what.contains(&name), "{what}"),
            other => panic!("{other:?}"),
        }
        assert!(!testbed.check().ok);
        // Without the announcement the loss cannot be detected.
        raw.erase_announcements(0);
        assert!(try_open(&testbed).is_ok());
    }
}

#[test]
fn the_loss_of_either_unit_below_an_event_of_several_segments_is_reported() {
    let mut began_and_ended_on_one_unit = 0;
    for (unit, segments) in (0..2).flat_map(|unit| (1..4).map(move |segments| (unit, segments))) {
        let (mut testbed, mut model) = (Testbed::new(1, 2, 2, 96, SUPERBLOCK), Model::default());
        testbed.options.value_threshold = Some(usize::MAX);
        write_some(&testbed, &mut model, 0, 5);
        testbed.crash(async |stores, _| {
            let value = Bytes::from(vec![7; segments * SUPERBLOCK as usize]);
            model.put(&stores[0], key(7), value).await;
        });
        let raw = raw(&testbed);
        let units: Vec<u64> =
            raw.segments(0).iter().map(|segment| raw.unit_of(segment, 2)).collect();
        assert!(units.contains(&0) && units.contains(&1), "{units:?}");
        began_and_ended_on_one_unit += u32::from(units.first() == units.last());
        raw.lose_unit(unit, 2);
        let opened = try_open(&testbed);
        assert!(
            matches!(opened, Err(StoreError::DataLoss(_))),
            "unit {unit} of segments on {units:?}: {opened:?}"
        );
    }
    assert!(began_and_ended_on_one_unit > 0, "the announcement is on the other one");
}

#[test]
fn a_segment_is_announced_on_another_unit() {
    let (testbed, mut model) = (Testbed::new(1, 2, 2, 32, SUPERBLOCK), Model::default());
    for round in 0..6 {
        write_some(&testbed, &mut model, 10 * round, 5);
        let (segment, announcing) = (newest(&testbed), raw(&testbed).announcing(0).pop().unwrap());
        assert_eq!(announcing.number, segment.number + 1);
        let unit = |segment: &FoundSegment| raw(&testbed).unit_of(segment, 2);
        assert_ne!(unit(&segment), unit(&announcing));
    }
}

#[test]
fn random_histories_survive_crashes_with_torn_tails() {
    let mut random = rng(20_261_122);
    for history in 0..6 {
        let (testbed, mut model) = (Testbed::new(1, 2, 2, 64, SUPERBLOCK), Model::default());
        for round in 0..12 {
            let writes = random.below(40);
            testbed.crash(async |stores, _| {
                model.compare(&stores[0]).await;
                for _ in 0..writes {
                    let key = key(random.below(60));
                    if random.chance(0.2) {
                        model.delete(&stores[0], key).await;
                    } else {
                        let longest = if random.chance(0.1) { 120_000 } else { 4_000 };
                        let value = value(&mut random, longest);
                        model.put(&stores[0], key, value).await;
                    }
                }
            });
            tear(&testbed, &mut random);
            let report = testbed.check();
            assert!(report.ok, "history {history}, round {round}: {report:?}");
        }
        compare(&testbed, &model);
    }
}

/// Appends to the log the remains of an interrupted write.
fn tear(testbed: &Testbed, random: &mut Rng) {
    let (raw, segment) = (raw(testbed), newest(testbed));
    let durable = segment.frames.last().map_or(0, |last| last.header.sequence);
    let half = half_a_batch(&key(random.below(60)), 1 + random.below(10_000) as usize);
    match random.below(4) {
        0 => {}
        1 => drop(raw.append(&segment, durable, &half)),
        2 => {
            if raw.append(&segment, durable, &half) {
                let frame = newest(testbed).frames.pop().unwrap();
                raw.flip(frame.at + random.below(frame.covered), random.below(8) as u8);
            }
        }
        _ => {
            let page = u64::from(segment.end_page());
            let mut noise = vec![0; PAGE];
            random.fill(&mut noise);
            if (page as usize + 1) * PAGE <= segment.capacity {
                raw.write(segment.at + page * PAGE as u64, &noise);
            }
        }
    }
}
