//! Tests of mounts after power cuts and of damaged flash.

use crate::support;
use crate::support::{Choices, Flash, FlashRef, Media, Medium, Rig, geometry, model, seeds, tag};
use softflash_base::{Time, UnitId};
use softflash_device::{DeviceError, ModelDevice, Operation};
use softflash_ftl::{Ftl, FtlConfig, FtlError, Hint, Ownership, RequestId, Superblock};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The expected state of a superblock.
#[derive(Default, Debug)]
struct Expected {
    number: u64,
    appended: u32,
    /// Unacknowledged requests in order: the last page plus one, and whether it is done.
    requests: Vec<(RequestId, u32, bool)>,
    /// Pages acknowledged by the FTL.
    acknowledged: u32,
    /// Pages that survive a power cut.
    durable: u32,
}

struct Reference {
    rig: Rig,
    live: HashMap<Superblock, Expected>,
    released: Vec<Superblock>,
    flushes: Vec<(RequestId, Vec<(Superblock, u32)>)>,
    next_number: u64,
    generation: u64,
    media: Media,
}

/// Whether appends to the superblock are durable; otherwise flushes make them durable.
fn is_durable(superblock: &Superblock) -> bool {
    superblock.generation.is_multiple_of(2)
}

impl Reference {
    fn collect(&mut self) {
        let nand = self.media == Media::Nand;
        for done in self.rig.done.drain(..) {
            if let Some(place) = self.flushes.iter().position(|(id, _)| *id == done.request) {
                assert_eq!(done.result, Ok(()));
                for (superblock, pages) in self.flushes.remove(place).1 {
                    if let Some(expected) = self.live.get_mut(&superblock) {
                        expected.durable = expected.durable.max(pages);
                    }
                }
                continue;
            }
            for (superblock, expected) in &mut self.live {
                let Some(place) = expected.requests.iter().position(|r| r.0 == done.request) else {
                    continue;
                };
                assert_eq!(done.result, Ok(()));
                expected.requests[place].2 = true;
                while expected.requests.first().is_some_and(|(_, _, done)| *done) {
                    expected.acknowledged = expected.requests.remove(0).1;
                }
                if nand || is_durable(superblock) {
                    expected.durable = expected.acknowledged;
                }
            }
        }
    }

    fn act(&mut self, choices: &mut Choices) {
        let units = self.rig.ftl.units().len() as u32;
        match choices.below(12) {
            0 | 1 => {
                let unit = choices.below(units) as u16;
                let number = self.next_number;
                if let Ok(superblock) = self.rig.try_allocate(unit, number) {
                    let expected = Expected { number, ..Expected::default() };
                    self.live.insert(superblock, expected);
                    self.next_number += 1;
                }
            }
            2..=5 => {
                let total = self.rig.ftl.payload_pages();
                let mut open: Vec<Superblock> = self.live.keys().copied().collect();
                open.retain(|superblock| self.live[superblock].appended < total);
                open.sort_unstable();
                if open.is_empty() {
                    return;
                }
                let superblock = open[choices.below(open.len() as u32) as usize];
                let at = self.live[&superblock].appended;
                let pages = (1 + choices.below(9)).min(total - at);
                // On a file, the appends of a superblock are all durable or all flushed.
                let durable = is_durable(&superblock);
                let request =
                    self.rig.append_with(&superblock, at, pages, durable, Hint::FLUSH).unwrap();
                let expected = self.live.get_mut(&superblock).unwrap();
                expected.appended += pages;
                expected.requests.push((request, at + pages, false));
            }
            6 => {
                let mut all: Vec<Superblock> = self.live.keys().copied().collect();
                all.sort_unstable();
                if all.len() > 4 {
                    let superblock = all[choices.below(all.len() as u32) as usize];
                    self.rig.ftl.release(self.rig.now, &superblock);
                    self.live.remove(&superblock);
                    self.released.push(superblock);
                }
            }
            7 => {
                let covered =
                    self.live.iter().map(|(superblock, e)| (*superblock, e.acknowledged)).collect();
                let request = self.rig.ftl.flush(self.rig.now, Hint::FOREGROUND);
                self.flushes.push((request, covered));
            }
            8 => {
                let mut readable: Vec<Superblock> = self.live.keys().copied().collect();
                readable.retain(|superblock| self.live[superblock].acknowledged > 0);
                readable.sort_unstable();
                if !readable.is_empty() {
                    let superblock = readable[choices.below(readable.len() as u32) as usize];
                    let end = self.live[&superblock].acknowledged;
                    let first = choices.below(end);
                    self.rig.verify(&superblock, first, 1 + choices.below(end - first));
                }
            }
            9 => {
                let until = Time(self.rig.now.0 + u64::from(choices.below(30_000_000)));
                self.rig.run_until(until);
            }
            _ => {
                self.rig.step();
            }
        }
        self.collect();
        self.rig.ftl.check();
    }

    /// Cuts the power, mounts, and compares with the expected state.
    fn crash(self, medium: &impl Medium, choices: &mut Choices, config: FtlConfig) -> Reference {
        let Reference { rig, mut live, mut released, next_number, mut generation, media, .. } =
            self;
        let Rig { ftl, now, .. } = rig;
        let at_rest = ftl.idle();
        let wear: Vec<u32> =
            ftl.units().iter().map(|unit| ftl.telemetry(UnitId(unit)).erase_count_max).collect();
        medium.cut(now, choices);
        drop(ftl);
        let (mut rig, inventory) = Rig::mount_at(medium.queue(), config, now);
        let found: HashMap<Superblock, u64> = inventory
            .superblocks
            .iter()
            .map(|found| {
                let number = u64::from_le_bytes(found.tag.0[..8].try_into().unwrap());
                (found.superblock, number)
            })
            .collect();
        for (superblock, expected) in &live {
            if expected.durable > 0 {
                assert_eq!(
                    found.get(superblock),
                    Some(&expected.number),
                    "{superblock} was acknowledged with {} pages",
                    expected.durable
                );
                rig.verify(superblock, 0, expected.durable);
            }
        }
        for superblock in found.keys() {
            let known = live.contains_key(superblock) || released.contains(superblock);
            assert!(known, "{superblock} was never allocated");
            if superblock.unit.0 == 0 {
                generation = generation.max(superblock.generation);
            }
        }
        // The owner keeps the superblocks that it knows and releases the others.
        live.retain(|superblock, expected| expected.durable > 0 && found.contains_key(superblock));
        for superblock in found.keys().filter(|superblock| !live.contains_key(superblock)) {
            assert!(rig.ftl.release(rig.now, superblock));
        }
        for damaged in &inventory.damaged {
            assert!(rig.ftl.release(rig.now, &damaged.superblock));
        }
        for unit in rig.ftl.units() {
            let after = rig.ftl.telemetry(UnitId(unit)).erase_count_max;
            let before = wear[usize::from(unit)];
            // Erases of a life without a header on the flash are lost: on a file those that were
            // not flushed, on NAND those under way.
            let headers_written = at_rest && media == Media::Nand;
            let lost = headers_written && after < before;
            assert!(!lost, "erase counts fell from {before} to {after}");
            let space = rig.ftl.space(UnitId(unit));
            let kept = live.keys().filter(|superblock| superblock.unit.0 == unit).count();
            assert_eq!((space.live, space.open), (kept as u32, 0));
        }
        for expected in live.values_mut() {
            expected.requests.clear();
            // Superblocks found by the mount take no appends.
            expected.appended = rig.ftl.payload_pages();
            expected.acknowledged = expected.durable;
        }
        released.extend(found.keys().filter(|superblock| !live.contains_key(superblock)));
        let flushes = Vec::new();
        Reference { rig, live, released, flushes, next_number, generation, media }
    }
}

fn random_program(seed: u64, medium: &impl Medium, media: Media) {
    let mut choices = Choices::new(seed);
    let config = FtlConfig { erased_target: choices.below(3), ..FtlConfig::default() };
    let (rig, inventory) = Rig::mount(medium, config);
    assert_eq!(inventory, Default::default(), "new flash is empty");
    let (live, released, flushes) = Default::default();
    let mut reference =
        Reference { rig, live, released, flushes, next_number: 1, generation: 0, media };
    for _ in 0..12 {
        for _ in 0..choices.below(250) {
            reference.act(&mut choices);
        }
        if choices.one_in(4) {
            reference.rig.settle();
            reference.collect();
        }
        reference = reference.crash(medium, &mut choices, config);
        // Generations given after the mount are above all generations found.
        if let Ok(superblock) = reference.rig.try_allocate(0, reference.next_number) {
            assert!(superblock.generation > reference.generation);
            reference.rig.ftl.release(reference.rig.now, &superblock);
            reference.released.push(superblock);
        }
    }
}

#[test]
fn acknowledged_data_survives_power_cuts_on_nand() {
    for seed in seeds(30) {
        println!("SOFTFLASH_SEED={seed}");
        let (dies, planes) = [(1, 1), (1, 2), (2, 2), (4, 1), (3, 4)][seed as usize % 5];
        let flash = Flash::new(geometry(dies, planes, 12, 8), 2, Media::Nand);
        let mut choices = Choices::new(seed ^ 0xbad);
        for _ in 0..choices.below(3) {
            let (die, plane) = (choices.below(dies.into()), choices.below(planes.into()));
            flash.borrow_mut().make_bad(0, die as u8, plane as u8, choices.below(12));
        }
        random_program(seed, &flash, Media::Nand);
    }
}

#[test]
fn acknowledged_data_survives_power_cuts_on_the_model() {
    for seed in seeds(20) {
        println!("SOFTFLASH_SEED={seed}");
        let mut config = model(seed, 12);
        config.faults.factory_bad_block = 0.02;
        let device = ModelDevice::in_memory(config).unwrap();
        random_program(seed, &device, Media::Nand);
    }
}

#[test]
fn acknowledged_data_survives_power_cuts_on_a_file() {
    for seed in seeds(30) {
        println!("SOFTFLASH_SEED={seed}");
        let mut shape = geometry(1, 1, 12, 12);
        shape.die_queue_depth = [1, 2, 32][seed as usize % 3];
        let flash = Flash::new(shape, 2, Media::File);
        random_program(seed, &flash, Media::File);
    }
}

#[test]
fn a_mount_reads_two_pages_per_superblock_many_at_a_time() {
    let mut shape = geometry(4, 2, 64, 8);
    shape.die_queue_depth = 2;
    let flash = Flash::new(shape, 8, Media::Nand);
    let (rig, _) = Rig::mount(&flash, FtlConfig::default());
    let reads = flash.borrow().count(support::Kind::Read);
    assert_eq!(reads, 8 * 64 * 2);
    assert_eq!(rig.now, Time(64 * 2 * 100_000), "all units at once");
}

#[test]
fn a_superblock_with_a_damaged_opening_header_is_reported_and_can_be_released() {
    for (dies, planes) in [(1, 1), (1, 2), (2, 1)] {
        let flash = Flash::new(geometry(dies, planes, 8, 8), 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let (lost, kept) = (rig.fill(0, 1), rig.fill(0, 2));
        let (die, plane, page) = match (dies, planes) {
            (1, 1) => (0, 0, 1),
            (1, _) => (0, 1, 0),
            _ => (1, 0, 0),
        };
        flash.borrow_mut().corrupt(0, die, plane, lost.index, page, 60);
        drop(rig);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory.superblocks.len(), 1);
        assert_eq!(inventory.superblocks[0].superblock, kept);
        assert_eq!(inventory.damaged.len(), 1);
        let damaged = &inventory.damaged[0];
        assert_eq!(damaged.superblock, lost, "the erase header has the generation");
        rig.verify(&lost, 0, 5);
        assert_eq!(rig.ftl.space(UnitId(0)).live, 2);
        assert!(rig.ftl.release(rig.now, &damaged.superblock));
        assert_eq!(rig.ftl.space(UnitId(0)).live, 1);
    }
}

#[test]
fn a_superblock_whose_opening_header_was_written_over_is_reported_and_keeps_its_data() {
    for media in [Media::Nand, Media::File] {
        let flash = Flash::new(geometry(1, 1, 8, 8), 1, media);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let (lost, kept) = (rig.fill(0, 1), rig.fill(0, 2));
        flash.borrow_mut().exchange(0, lost.index, 1, 7);
        drop(rig);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        let (found, damaged) = (&inventory.superblocks, &inventory.damaged);
        assert_eq!(found.iter().map(|found| found.superblock).collect::<Vec<_>>(), [kept]);
        assert_eq!(damaged.iter().map(|lost| lost.superblock).collect::<Vec<_>>(), [lost]);
        rig.verify(&lost, 0, 5);
    }
}

#[test]
fn a_superblock_whose_headers_were_both_written_over_is_kept_for_an_owner_that_asks() {
    let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let asking = Ownership { asks_about_unclaimed: true, ..Ownership::BLOCKS };
    for media in [Media::Nand, Media::File] {
        let flash = Flash::new(geometry(1, 1, 8, 8), 1, media);
        let (mut rig, inventory) = Rig::mount_of(&flash, config, asking);
        assert_eq!(inventory.unclaimed, [], "blank superblocks are free");
        let (lost, kept) = (rig.fill(0, 1), rig.fill(0, 2));
        flash.borrow_mut().exchange(0, lost.index, 0, 6);
        flash.borrow_mut().exchange(0, lost.index, 1, 7);
        drop(rig);
        let (mut rig, inventory) = Rig::mount_of(&flash, config, asking);
        assert_eq!(inventory.superblocks.len(), 1);
        assert_eq!((inventory.superblocks[0].superblock, inventory.damaged.len()), (kept, 0));
        let [unclaimed] = &inventory.unclaimed[..] else { panic!("{inventory:?}") };
        let superblock = unclaimed.superblock;
        assert_eq!((superblock.unit, superblock.index), (lost.unit, lost.index));
        assert!(!unclaimed.has_generation && superblock.generation > kept.generation);
        rig.settle();
        let mut expected = vec![0; 4096];
        support::rig::pattern(&mut expected, &lost, 2);
        assert!(rig.read(&superblock, 2, 1).unwrap()[..] == expected[..]);
        assert_eq!(rig.ftl.space(UnitId(0)).live, 2);
        assert!(rig.ftl.release(rig.now, &superblock));
        assert_eq!(rig.ftl.space(UnitId(0)).live, 1);
        drop(rig);
        let (rig, inventory) = Rig::mount_of(&flash, config, asking);
        assert_eq!(inventory.unclaimed.len(), 1, "a release writes nothing");
        drop(rig);
        let (rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!((inventory.unclaimed.len(), inventory.superblocks.len()), (0, 1));
        assert_eq!(rig.ftl.space(UnitId(0)).live, 1, "it is free for an owner that does not ask");
    }
}

#[test]
fn an_owner_that_asks_is_told_of_superblocks_that_were_erased_ahead() {
    let config = FtlConfig { erased_target: 2, ..FtlConfig::default() };
    let asking = Ownership { asks_about_unclaimed: true, ..Ownership::BLOCKS };
    for media in [Media::Nand, Media::File] {
        let flash = Flash::new(geometry(1, 1, 8, 8), 1, media);
        let (mut rig, _) = Rig::mount_of(&flash, config, asking);
        rig.fill(0, 1);
        rig.settle();
        drop(rig);
        let (mut rig, inventory) = Rig::mount_of(&flash, config, asking);
        assert_eq!(inventory.unclaimed.len(), 2);
        assert!(inventory.unclaimed.iter().all(|unclaimed| unclaimed.has_generation));
        let free = rig.ftl.space(UnitId(0)).free();
        for unclaimed in &inventory.unclaimed {
            assert!(rig.ftl.release(rig.now, &unclaimed.superblock));
        }
        assert_eq!(rig.ftl.space(UnitId(0)).free(), free + 2);
        rig.fill(0, 2);
        rig.settle();
    }
}

#[test]
fn the_opening_header_alone_is_enough_to_find_and_read_a_superblock() {
    for (dies, planes) in [(1, 1), (1, 2), (2, 1)] {
        let flash = Flash::new(geometry(dies, planes, 8, 8), 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let superblock = rig.fill(0, 5);
        flash.borrow_mut().corrupt(0, 0, 0, superblock.index, 0, 41);
        drop(rig);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory.superblocks[0].superblock, superblock);
        assert_eq!(inventory.superblocks[0].tag, tag(5));
        let pages = rig.ftl.payload_pages();
        rig.verify(&superblock, 0, pages);
    }
}

#[test]
fn bytes_behind_a_header_in_its_page_are_ignored() {
    for media in [Media::Nand, Media::File] {
        let flash = Flash::new(geometry(1, 2, 8, 8), 1, media);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let superblock = rig.fill(0, 5);
        for plane in [0, 1] {
            flash.borrow_mut().corrupt(0, 0, plane, superblock.index, 0, 3000);
        }
        drop(rig);
        let (_, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!((inventory.superblocks.len(), inventory.damaged.len()), (1, 0));
        assert!(inventory.erase_headers_lost.is_empty());
    }
}

#[test]
fn flash_of_an_earlier_format_counts_as_empty() {
    let flash = Flash::new(geometry(1, 2, 8, 8), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    rig.fill(0, 1);
    drop(rig);
    flash.borrow_mut().uuid = 78;
    let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
    assert_eq!(inventory, Default::default());
    assert_eq!(rig.ftl.space(UnitId(0)).free(), 8);
    rig.fill(0, 2);
}

#[test]
fn a_superblock_that_was_allocated_and_never_written_is_free_after_a_mount() {
    let flash = Flash::new(geometry(1, 1, 8, 8), 1, Media::Nand);
    let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
    rig.settle();
    rig.allocate(1);
    rig.settle();
    let (rig, inventory) = Rig::mount(&flash, FtlConfig::default());
    assert_eq!(inventory, Default::default());
    assert_eq!(rig.ftl.space(UnitId(0)).free(), 8);
}

#[test]
fn unsupported_shapes_are_refused_at_the_mount() {
    let flash = Flash::new(geometry(1, 1, 8, 2), 1, Media::Nand);
    let queue = support::flash::FlashQueue::open(&flash, usize::MAX);
    let mounted = Ftl::mount(queue, FtlConfig::default()).poll(Time::ZERO).unwrap();
    assert!(matches!(mounted.map(|_| ()), Err(FtlError::Unsupported { .. })));
}

#[test]
fn a_superblock_with_both_headers_damaged_is_reported_and_is_not_free() {
    for (dies, planes) in [(1, 1), (1, 2), (2, 1)] {
        let flash = Flash::new(geometry(dies, planes, 8, 8), 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(rig.ftl.telemetry(UnitId(0)).damaged_headers, 0);
        let (lost, kept) = (rig.fill(0, 1), rig.fill(0, 2));
        flash.borrow_mut().corrupt(0, 0, 0, lost.index, 0, 60);
        let (die, plane, page) = match (dies, planes) {
            (1, 1) => (0, 0, 1),
            (1, _) => (0, 1, 0),
            _ => (1, 0, 0),
        };
        flash.borrow_mut().corrupt(0, die, plane, lost.index, page, 60);
        flash.borrow_mut().corrupt(0, 0, 0, kept.index, 0, 60);
        drop(rig);
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory.superblocks.len(), 1);
        assert_eq!(inventory.damaged.len(), 1);
        let damaged = inventory.damaged[0].superblock;
        assert_eq!(damaged.index, lost.index);
        assert!(damaged.generation > kept.generation, "the old generation is lost");
        assert_eq!(rig.ftl.telemetry(UnitId(0)).damaged_headers, 3);
        assert_eq!(rig.ftl.space(UnitId(0)).live, 2);
        let next = rig.allocate(3);
        assert!(next.generation > damaged.generation, "generations rise");
        // The pages written with the old handle can still be read.
        let mut expected = vec![0; 4096];
        support::pattern(&mut expected, &lost, 3);
        assert_eq!(rig.read(&damaged, 3, 1).unwrap()[..], expected[..]);
        assert_eq!(rig.ftl.space(UnitId(0)).live, 2);
        assert!(rig.ftl.release(rig.now, &damaged));
        assert_eq!(rig.ftl.space(UnitId(0)).live, 1);
    }
}

#[test]
fn erased_superblocks_are_not_found_if_an_erase_leaves_old_pages() {
    let flash = Flash::new(geometry(1, 1, 4, 8), 1, Media::File);
    let config = FtlConfig { erased_target: 4, ..FtlConfig::default() };
    let (mut rig, _) = Rig::mount(&flash, config);
    let filled: Vec<Superblock> = (0..4).map(|number| rig.fill(0, number)).collect();
    for superblock in &filled {
        assert!(rig.ftl.release(rig.now, superblock));
    }
    // All are erased ahead of need: new erase headers precede the old opening headers.
    rig.settle();
    assert_eq!(rig.ftl.space(UnitId(0)).erased, 4);
    drop(rig);
    let (rig, inventory) = Rig::mount(&flash, config);
    assert_eq!(inventory, Default::default());
    assert_eq!(rig.ftl.space(UnitId(0)).free(), 4);
}

#[test]
fn an_unreadable_lead_block_that_is_bad_from_the_start_is_not_reported() {
    for (dies, planes) in [(1, 1), (1, 2), (2, 1)] {
        let flash = Flash::new(geometry(dies, planes, 8, 8), 1, Media::Nand);
        flash.borrow_mut().make_bad(0, 0, 0, 5);
        flash.borrow_mut().fault = Some(Box::new(|command| {
            let reads = matches!(command.operation, Operation::Read(_));
            let target = &command.target;
            let lead = (target.die, target.plane, target.blocks[0]) == (0, 0, 5);
            (reads && lead).then_some(DeviceError::Uncorrectable)
        }));
        let (rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        assert_eq!(inventory, Default::default());
        let space = rig.ftl.space(UnitId(0));
        assert_eq!((space.live, space.bad, space.free()), (0, 1, 7));
    }
}

#[test]
fn a_silently_failed_read_does_not_make_a_superblock_free() {
    // The read of the beginning of the opening header fails, or also that of the whole page.
    for ((dies, planes), times) in
        [(1, 1), (1, 2), (2, 1)].into_iter().flat_map(|shape| [(shape, 1), (shape, 2)])
    {
        let flash = Flash::new(geometry(dies, planes, 8, 8), 1, Media::Nand);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        let (superblock, other) = (rig.fill(0, 1), rig.fill(0, 2));
        drop(rig);
        let mut failures = 0;
        flash.borrow_mut().blank_read = Some(Box::new(move |target| {
            let place = (target.die, target.plane, target.page + target.rows - 1);
            let opening = [(1, 1, (0, 0, 1)), (1, 2, (0, 1, 0)), (2, 1, (1, 0, 0))];
            let hit = target.blocks[0] == superblock.index
                && opening.contains(&(dies, planes, place))
                && failures < times;
            failures += u32::from(hit);
            hit
        }));
        let (mut rig, inventory) = Rig::mount(&flash, FtlConfig::default());
        let found: Vec<Superblock> =
            inventory.superblocks.iter().map(|found| found.superblock).collect();
        assert_eq!(found, [superblock, other]);
        rig.verify(&superblock, 0, 5);
    }
}

/// The bytes of each read of a mount.
fn bytes_read(flash: &FlashRef) -> Vec<usize> {
    let reads = Rc::<RefCell<Vec<usize>>>::default();
    let seen = Rc::clone(&reads);
    flash.borrow_mut().fault = Some(Box::new(move |command| {
        if let Operation::Read(buffer) = &command.operation {
            seen.borrow_mut().push(buffer.len());
        }
        None
    }));
    drop(Rig::mount(flash, FtlConfig::default()));
    reads.borrow().clone()
}

#[test]
fn a_mount_reads_the_beginnings_of_pages_if_a_header_fits_a_sector() {
    // The headers of a superblock of 128 blocks are longer than a sector.
    for (dies, planes, media, bytes) in [
        (1, 1, Media::Nand, 1024),
        (2, 2, Media::Nand, 1024),
        (32, 4, Media::Nand, 4096),
        (2, 2, Media::File, 4096),
        (1, 1, Media::File, 8192),
    ] {
        let flash = Flash::new(geometry(dies, planes, 6, 8), 1, media);
        let (mut rig, _) = Rig::mount(&flash, FtlConfig::default());
        for number in 0..3 {
            rig.fill(0, number);
        }
        drop(rig);
        let reads = bytes_read(&flash);
        let others = reads.iter().filter(|read| **read != bytes).count();
        // A page without an opening header is read twice unless the device reports it as erased.
        let again = if media == Media::File { 3 } else { 0 };
        assert!(reads.len() >= 6 && others <= again, "{dies} {planes} {media:?}: {reads:?}");
    }
}
