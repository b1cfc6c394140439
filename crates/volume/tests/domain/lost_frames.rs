//! Damage while the power is off: a flipped bit in the head of a frame, and a unit that was
//! restored from an older image. A read returns the newest flushed data or an error, never anything
//! else.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_device::{Device, DeviceError, ModelConfig, UnitsImage};
use softflash_nand::faults::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
use softflash_runtime::RuntimeHandle;
use softflash_testing::faulty::{Faults, FaultyQueuePair, OperationKind};
use softflash_volume::{Domain, RecoveryReport, Volume, VolumeError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const UNITS: u64 = 300;

/// The newest flushed contents of a volume and of its snapshot; 0 for zeros.
#[derive(Clone)]
struct Contents {
    volume: Vec<u64>,
    snapshot: Option<Vec<u64>>,
}

/// The reads of a domain after some damage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    read: u64,
    lost: u64,
}

impl Contents {
    fn new() -> Contents {
        Contents { volume: vec![0; UNITS as usize], snapshot: None }
    }

    /// Overwrites, discards and takes a snapshot; flushes now and then, and at the end.
    async fn work(&mut self, domain: &Domain, rng: &mut Rng, steps: u32) {
        if domain.list().is_empty() {
            domain.create("v", UNITS * UNIT as u64).await.unwrap();
        }
        let volume = domain.volume("v").unwrap();
        for step in 0..steps {
            let lba = rng.below(UNITS);
            let count = (1 + rng.below(30)).min(UNITS - lba);
            let version = 1 + rng.below(1 << 60);
            let is_discard = rng.chance(0.1);
            let (at, bytes) = (lba * UNIT as u64, count * UNIT as u64);
            if is_discard {
                volume.discard(at, bytes).await.unwrap();
            } else {
                let data: Vec<u8> = (0..count).flat_map(|at| unit(version + at)).collect();
                volume.write(at, &data).await.unwrap();
            }
            for at in 0..count {
                self.volume[(lba + at) as usize] = if is_discard { 0 } else { version + at };
            }
            if step % 4 == 3 {
                volume.flush().await.unwrap();
            }
            if step == steps / 2 && self.snapshot.is_none() {
                domain.snapshot("v", "s").await.unwrap();
                self.snapshot = Some(self.volume.clone());
            }
        }
        volume.flush().await.unwrap();
    }

    /// Compares every mapping unit.
    async fn compare(&self, domain: &Domain) -> Outcome {
        let mut outcome = Outcome::default();
        let volume = domain.volume("v").unwrap();
        compare(&volume, &self.volume, &mut outcome).await;
        if let Some(expected) = &self.snapshot {
            let snapshot = domain.open_snapshot("v", "s").unwrap();
            compare(&snapshot, expected, &mut outcome).await;
        }
        outcome
    }
}

async fn compare(volume: &Volume, expected: &[u64], outcome: &mut Outcome) {
    for (lba, &expected) in (0..).zip(expected) {
        let mut bytes = vec![0; UNIT];
        match volume.read(lba * UNIT as u64, &mut bytes).await {
            Err(VolumeError::DataLoss { .. }) => outcome.lost += 1,
            read => {
                read.unwrap();
                assert_eq!(content(&bytes), expected, "older data at {lba}");
                outcome.read += 1;
            }
        }
    }
}

/// A domain of so many units of 24 superblocks.
fn testbed(units: u16) -> Testbed {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = 24;
    config.array.geometry.pages_per_block = 32;
    config.array.geometry.channels = units;
    Testbed::of(config)
}

async fn rest(runtime: &RuntimeHandle, seconds: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_secs(seconds)).await;
}

/// All units, while the power is off.
fn image(testbed: &Testbed) -> UnitsImage {
    testbed.device.image(0..testbed.device.info().units).unwrap()
}

/// Mounts without a unit, whose dies are dead, and runs with the domain.
fn run_without<R>(
    testbed: &Testbed,
    unit: u16,
    test: impl AsyncFnOnce(&Domain, &RuntimeHandle, &RecoveryReport) -> R,
) -> R {
    testbed.on_flash(async |queue, config, runtime| {
        let death = PlannedFault {
            place: FaultPlace::Channel(unit.into()),
            when: FaultTime::AtNs(0),
            what: Strike::Death,
        };
        testbed.device.schedule_faults(&FaultSchedule { faults: vec![death] }).unwrap();
        let (domain, report) = Domain::mount(queue, config, runtime.clone()).await.unwrap();
        let result = test(&domain, &runtime, &report).await;
        domain.stop();
        result
    })
}

/// The pages that begin with the head of a frame, by number.
fn pages_with_heads(image: &UnitsImage) -> BTreeMap<u32, Vec<u8>> {
    let mut heads = BTreeMap::new();
    let mut page = 0;
    image.clone().changed(|bytes| {
        if bytes.starts_with(b"SFVFRAME") {
            heads.insert(page, bytes.to_vec());
        }
        page += 1;
    });
    heads
}

/// The numbers of these pages.
fn heads(image: &UnitsImage) -> Vec<u32> {
    pages_with_heads(image).into_keys().collect()
}

/// The same with a flipped bit in a page.
fn flipped(image: &UnitsImage, damaged: u32, bit: usize) -> UnitsImage {
    let mut page = 0;
    image.clone().changed(|bytes| {
        if page == damaged {
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        page += 1;
    })
}

/// Mounts the damaged domain twice, since the first mount records what is lost; and writes what is
/// lost again, which makes it readable.
fn examine(
    testbed: &Testbed,
    expected: &Contents,
) -> Result<(Outcome, RecoveryReport), VolumeError> {
    let first = testbed
        .try_run(async |domain, _, report| (expected.compare(domain).await, report.clone()))?;
    testbed.run(async |domain, _, _| {
        assert_eq!(expected.compare(domain).await, first.0, "the second mount");
        let volume = domain.volume("v").unwrap();
        for (lba, &value) in (0..).zip(&expected.volume) {
            volume.write(lba * UNIT as u64, &unit(value)).await.unwrap();
        }
        let mut outcome = Outcome::default();
        compare(&volume, &expected.volume, &mut outcome).await;
        assert_eq!(outcome.lost, 0, "what was written again");
    });
    Ok(first)
}

/// Three seconds after the last flush of some work.
fn worked(testbed: &Testbed, seed: u64) -> Contents {
    let mut contents = Contents::new();
    testbed.run(async |domain, runtime, _| {
        contents.work(domain, &mut Rng::seeded(seed), 30).await;
        rest(runtime, 3).await;
    });
    contents
}

#[test]
fn a_flipped_bit_in_any_head_loses_no_more_than_that_frame_and_reads_of_it_fail() {
    for units in [1, 2, 4] {
        println!("{units} units");
        let testbed = testbed(units);
        let contents = worked(&testbed, 7);
        let intact = image(&testbed);
        let mut rng = Rng::seeded(11);
        let (mut damaged, mut losing) = (0, 0);
        for head in heads(&intact) {
            let image = flipped(&intact, head, rng.below(8 * 4096) as usize);
            testbed.device.restore(&image).unwrap();
            let (outcome, report) = examine(&testbed, &contents).unwrap();
            assert!(
                outcome.lost <= 2 * 30 && outcome.read + outcome.lost == 2 * UNITS,
                "{outcome:?}"
            );
            assert_eq!(report.lost_units > 0, outcome.lost > 0, "{report:?}");
            damaged += 1;
            losing += u32::from(outcome.lost > 0);
        }
        println!("{damaged} heads, {losing} of them with the newest data");
        assert!(losing >= 8, "{losing} of {damaged}");
    }
}

/// What damage makes of both header pages of a superblock.
#[derive(Debug, Clone, Copy)]
enum Overwritten {
    /// Other bytes.
    Foreign,
    /// A flipped bit in each.
    Flipped,
    /// The opening header only, with zeros.
    NoOpening,
}

/// A domain of so many units, whose superblocks have one block each: page 0 is the erase header and
/// page 1 the opening header.
fn single_blocks(units: u16) -> Testbed {
    let mut config = ModelConfig::model();
    config.array.geometry.planes_per_die = 1;
    config.array.geometry.chips_per_channel = 1;
    config.array.geometry.dies_per_chip = 1;
    config.array.geometry.blocks_per_plane = 24;
    config.array.geometry.pages_per_block = 128;
    config.array.geometry.channels = units;
    Testbed::of(config)
}

/// The blocks with an opening header.
fn opened(image: &UnitsImage) -> Vec<usize> {
    let mut opened = Vec::new();
    image.clone().visit(|block, page, bytes| {
        if page == 1 && bytes.starts_with(b"SFopen") {
            opened.push(block);
        }
    });
    opened
}

/// The same without the headers of a superblock.
fn without_headers(image: &UnitsImage, damaged: usize, how: Overwritten) -> UnitsImage {
    let mut rng = Rng::seeded(damaged as u64);
    let mut image = image.clone();
    image.visit(|block, page, bytes| match how {
        _ if block != damaged || page > 1 => {}
        Overwritten::Foreign => bytes.fill_with(|| rng.below(256) as u8),
        Overwritten::Flipped => bytes[40] ^= 1,
        Overwritten::NoOpening if page == 1 => bytes.fill(0),
        Overwritten::NoOpening => {}
    });
    image
}

/// Heads of frames say the generation that they were written with.
#[test]
fn the_loss_of_both_headers_of_any_superblock_loses_nothing() {
    for how in [Overwritten::Foreign, Overwritten::Flipped, Overwritten::NoOpening] {
        for units in [1, 2] {
            let testbed = single_blocks(units);
            let contents = worked(&testbed, 7);
            let intact = image(&testbed);
            let opened = opened(&intact);
            println!("{how:?}, {units} units: {} superblocks", opened.len());
            assert!(opened.len() >= 3);
            for superblock in opened {
                let damaged = without_headers(&intact, superblock, how);
                testbed.device.restore(&damaged).unwrap();
                let found = testbed.examine().unwrap();
                assert!(found.images.iter().all(|image| image.lost.is_empty()), "{superblock}");
                let (outcome, report) = examine(&testbed, &contents).unwrap();
                assert_eq!(
                    (outcome.read, outcome.lost),
                    (2 * UNITS, 0),
                    "{superblock}, {report:?}"
                );
            }
        }
    }
}

/// The kinds of the first entries of heads: an operation, and a part of a root.
const OPERATION: u8 = 3;
const ROOT: u8 = 5;

/// Without its first root, and without the changes before it, a domain would look empty.
#[test]
fn the_loss_of_the_first_root_and_of_the_changes_before_it_is_an_error() {
    let testbed = single_blocks(1);
    testbed.run(async |domain, _, _| {
        domain.create("v", UNITS * UNIT as u64).await.unwrap();
        domain.checkpoint().await.unwrap();
    });
    let intact = image(&testbed);
    let mut damaged = intact.clone();
    let mut kinds = Vec::new();
    for (number, head) in pages_with_heads(&intact) {
        let kind = head[64];
        if head[10] > 0 && [OPERATION, ROOT].contains(&kind) {
            damaged = flipped(&damaged, number, 800);
            kinds.push(kind);
        }
    }
    assert_eq!(kinds, [OPERATION, ROOT, ROOT]);
    testbed.device.restore(&damaged).unwrap();
    let found = testbed.try_run(async |domain, _, _| domain.list().len());
    assert!(matches!(found, Err(VolumeError::Damaged { .. })), "{found:?}");
}

/// Superblocks that were erased ahead of need, and those with bytes from an earlier use of the
/// medium, are free.
#[test]
fn superblocks_without_frames_are_free_whatever_is_in_them() {
    let testbed = testbed(1);
    let mut image = image(&testbed);
    let mut rng = Rng::seeded(5);
    image = image.overwritten(|bytes| bytes.fill_with(|| rng.below(256) as u8));
    testbed.device.restore(&image).unwrap();
    let contents = worked(&testbed, 7);
    let (outcome, _) = examine(&testbed, &contents).unwrap();
    assert_eq!((outcome.read, outcome.lost), (2 * UNITS, 0));
}

#[test]
fn a_unit_restored_from_an_older_image_returns_errors_and_never_older_data() {
    let mut named = 0;
    for units in [2, 4] {
        for seed in 0..6 {
            for stale in 0..units {
                println!("{units} units, seed {seed}, unit {stale} is stale");
                let testbed = testbed(units);
                let mut contents = Contents::new();
                let mut rng = Rng::seeded(seed);
                testbed.run(async |domain, _, _| contents.work(domain, &mut rng, 20).await);
                let older = testbed.device.image(stale..stale + 1).unwrap();
                testbed.run(async |domain, runtime, _| {
                    contents.work(domain, &mut rng, 4 + 3 * seed as u32).await;
                    rest(runtime, 2).await;
                });
                testbed.device.restore(&older).unwrap();
                let (outcome, report) = examine(&testbed, &contents).unwrap();
                println!("{outcome:?}, {report:?}");
                // A root that is older than the image does not tell that the unit was newer.
                assert!(report.stale_units.iter().all(|unit| unit.unit == stale));
                named += report.stale_units.len();
            }
        }
    }
    assert!(named > 0, "no stale unit was named");
}

#[test]
fn the_only_unit_that_has_the_newest_flushed_frame_may_lose_it_a_second_later() {
    let testbed = testbed(2);
    let mut contents = Contents::new();
    testbed.run(async |domain, runtime, _| {
        contents.work(domain, &mut Rng::seeded(3), 10).await;
        domain.checkpoint().await.unwrap();
        let volume = domain.volume("v").unwrap();
        volume.write(5 * UNIT as u64, &unit(77)).await.unwrap();
        volume.flush().await.unwrap();
        contents.volume[5] = 77;
        // A second after the flush, and what the proof itself takes.
        runtime.sleep_until(runtime.now() + Duration::from_millis(1_050)).await;
    });
    let intact = image(&testbed);
    let mut lost = 0;
    for head in heads(&intact) {
        let image = flipped(&intact, head, 800);
        testbed.device.restore(&image).unwrap();
        let outcome = testbed.run(async |domain, _, _| contents.compare(domain).await);
        lost += outcome.lost;
    }
    assert_eq!(lost, 1, "one head is that of the newest frame");
}

#[test]
fn a_proof_whose_flush_failed_is_tried_again_without_another_flush() {
    let flushes = Arc::new(AtomicU32::new(0));
    testbed(2).on_flash(async |queue, config, runtime| {
        let faults = Faults::default();
        let queue = Box::new(FaultyQueuePair::new(queue, faults.clone()));
        let (domain, _) = Domain::mount(queue, config, runtime.clone()).await.unwrap();
        Contents::new().work(&domain, &mut Rng::seeded(3), 10).await;
        domain.flush().await.unwrap();
        // The next two flushes are those of the proof.
        let seen = Arc::clone(&flushes);
        faults.fail_if(move |command| {
            let is_flush = OperationKind::of(&command.operation) == OperationKind::Flush;
            let fails = is_flush && seen.fetch_add(1, Ordering::Relaxed) < 2;
            fails.then_some(DeviceError::Io { errno: 5 })
        });
        let seen_after = [1_050, 1_050, 2_050, 60_000].map(Duration::from_millis);
        let mut seen = Vec::new();
        for rest in seen_after {
            runtime.sleep_until(runtime.now() + rest).await;
            seen.push(flushes.load(Ordering::Relaxed));
        }
        assert_eq!(seen[..2], [1, 2], "a second after each failure: {seen:?}");
        assert!(seen[2] > 2, "two seconds after the second one: {seen:?}");
        assert_eq!(seen[2], seen[3], "what is proven is not proven again");
        domain.stop();
    });
}

/// The unit that is left proves its changes itself, also while the blocks of the dead one are not
/// marked bad.
#[test]
fn a_frame_lost_beside_a_dead_unit_is_an_error() {
    for dead in [0, 1] {
        let testbed = testbed(2);
        let left = 1 - dead;
        let mut contents = Contents::new();
        testbed.run(async |domain, runtime, _| {
            contents.work(domain, &mut Rng::seeded(3), 10).await;
            rest(runtime, 2).await;
        });
        run_without(&testbed, dead, async |domain, _, _| {
            contents.work(domain, &mut Rng::seeded(4), 10).await;
        });
        let before = pages_with_heads(&testbed.device.image(left..left + 1).unwrap());
        let survivors = run_without(&testbed, dead, async |domain, runtime, _| {
            contents.work(domain, &mut Rng::seeded(5), 3).await;
            rest(runtime, 2).await;
            contents.compare(domain).await
        });
        let intact = testbed.device.image(left..left + 1).unwrap();
        let mut heads = pages_with_heads(&intact);
        heads.retain(|number, page| before.get(number) != Some(page));
        println!("unit {dead} is dead: {survivors:?}, {} heads", heads.len());
        let mut losing = 0;
        for head in heads.into_keys() {
            testbed.device.restore(&flipped(&intact, head, 800)).unwrap();
            let outcome =
                run_without(&testbed, dead, async |domain, _, _| contents.compare(domain).await);
            losing += u32::from(outcome.lost > survivors.lost);
        }
        assert!(losing > 0, "no head of the last frames was damaged");
    }
}
