//! Damage of each page in turn: the domain is mounted, and a read returns the current data or an
//! error.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_device::UnitsImage;
use softflash_volume::{Domain, VolumeError};
use std::collections::BTreeMap;

/// Mapping units of each volume: three leaves, the last one short.
const UNITS: u64 = 2100;

/// The regions that are used, so that data are overwritten: the first mapping units of each.
const REGIONS: [u64; 4] = [0, 500, 1000, 2050];
const REGION_UNITS: u64 = 45;

/// The mapping units that are compared: those of the regions, and some that hold nothing.
fn compared() -> impl Iterator<Item = u64> {
    let used = REGIONS.into_iter().flat_map(|first| first..first + REGION_UNITS);
    used.chain([300, 700, 1300, UNITS - 1])
}

/// The current contents of each volume and snapshot; no entry for zeros.
type Contents = BTreeMap<&'static str, BTreeMap<u64, u64>>;

/// Volumes with a snapshot and a clone, of which parts were discarded, behind several checkpoints.
fn filled(testbed: &Testbed, seed: u64) -> Contents {
    let mut contents = Contents::new();
    let mut rng = Rng::seeded(seed);
    testbed.run(async |domain, _, _| {
        for name in ["v", "w"] {
            domain.create(name, UNITS * UNIT as u64).await.unwrap();
            contents.insert(name, BTreeMap::new());
        }
        for step in 1..=240 {
            let name = ["v", "v", "w", "c"][rng.below(4) as usize];
            let Ok(volume) = domain.volume(name) else { continue };
            let lba = REGIONS[rng.below(4) as usize] + rng.below(REGION_UNITS - 5);
            let of = contents.get_mut(name).unwrap();
            if rng.chance(0.1) {
                volume.discard(lba * UNIT as u64, 5 * UNIT as u64).await.unwrap();
                of.retain(|at, _| !(lba..lba + 5).contains(at));
            } else {
                volume.write(lba * UNIT as u64, &unit(step)).await.unwrap();
                of.insert(lba, step);
            }
            match step {
                80 => {
                    domain.snapshot("v", "s").await.unwrap();
                    domain.clone_snapshot("v", "s", "c").await.unwrap();
                    let now = contents["v"].clone();
                    contents.insert("v@s", now.clone());
                    contents.insert("c", now);
                }
                60 | 120 | 180 => domain.checkpoint().await.unwrap(),
                _ => {}
            }
        }
        domain.flush().await.unwrap();
        domain.checkpoint().await.unwrap();
    });
    contents
}

/// Changes one page of an image, of those that are written.
fn with_damage(image: &UnitsImage, damaged: usize) -> UnitsImage {
    let mut at = 0;
    image.clone().changed(|page| {
        if at == damaged {
            page[1000] ^= 4;
            page[70] ^= 4;
        }
        at += 1;
    })
}

fn pages(image: &UnitsImage) -> usize {
    let mut pages = 0;
    drop(image.clone().changed(|_| pages += 1));
    pages
}

/// Reads everything: each mapping unit is current or cannot be read. Returns those that cannot.
async fn read_all(domain: &Domain, contents: &Contents, slot: &str) -> Vec<(String, u64)> {
    let mut lost = Vec::new();
    for (name, current) in contents {
        let volume = match name.split_once('@') {
            Some((volume, snapshot)) => domain.open_snapshot(volume, snapshot),
            None => domain.volume(name),
        };
        let volume = volume.unwrap();
        for lba in compared() {
            let mut read = vec![0; UNIT];
            match volume.read(lba * UNIT as u64, &mut read).await {
                Ok(()) => {
                    let expected = current.get(&lba).copied().unwrap_or(0);
                    assert_eq!(content(&read), expected, "{slot}: unit {lba} of {name}");
                }
                Err(error) => {
                    let is_loss = matches!(error, VolumeError::DataLoss { .. });
                    assert!(is_loss, "{slot}: unit {lba} of {name}: {error}");
                    lost.push(((*name).to_owned(), lba));
                }
            }
        }
    }
    lost
}

/// What a check says that cannot be read.
fn found_lost(testbed: &Testbed, slot: &str) -> Vec<(String, u64)> {
    let examined = testbed.examine().unwrap();
    let mut lost = Vec::new();
    for image in &examined.images {
        let name = match &image.snapshot {
            Some(snapshot) => format!("{}@{snapshot}", image.volume),
            None => image.volume.clone(),
        };
        for range in &image.lost {
            assert!(range.end <= UNITS * UNIT as u64, "{slot}: {range:?} of {name}");
            let units = range.start / UNIT as u64..range.end / UNIT as u64;
            let compared = compared().filter(|lba| units.contains(lba));
            lost.extend(compared.map(|lba| (name.clone(), lba)));
        }
    }
    lost.sort_unstable();
    lost
}

#[test]
fn with_any_page_damaged_a_read_returns_current_data_or_an_error() {
    let seed = 1;
    let testbed = Testbed::new(16, 256);
    let contents = filled(&testbed, seed);
    let image = testbed.device.image(0..4).unwrap();
    let (mut most_lost, mut leaves, mut roots) = (0, 0, 0);
    for damaged in 0..pages(&image) {
        let slot = format!("seed {seed}, page {damaged}");
        testbed.device.restore(&with_damage(&image, damaged)).unwrap();
        let found = found_lost(&testbed, &slot);
        let mut lost = testbed.run(async |domain, _, report| {
            leaves += report.copied_halves;
            roots += report.damaged_root_copies;
            assert_eq!((report.rebuilt_halves, report.lost_halves), (0, 0), "{slot}");
            read_all(domain, &contents, &slot).await
        });
        lost.sort_unstable();
        assert_eq!(found, lost, "{slot}: a check finds the same");
        most_lost = lost.len().max(most_lost);
        // The map is whole again, and what was lost stays lost.
        testbed.run(async |domain, _, report| {
            assert!(!report.has_damaged_leaves(), "{slot}");
            let mut again = read_all(domain, &contents, &slot).await;
            again.sort_unstable();
            assert_eq!(again, lost, "{slot}");
        });
    }
    println!("seed {seed}: {most_lost} lost, {leaves} halves and {roots} parts of roots damaged");
    // The page of a mapping unit that the volume, its snapshot and the clone share.
    assert_eq!((most_lost, leaves > 0, roots > 0), (3, true, true), "seed {seed}");
}

/// The kind and the word behind the logical one of the first entry of a head, if the page is one.
fn first_entry(page: &[u8]) -> Option<(u8, u64)> {
    let entries = u16::from_le_bytes(page[10..12].try_into().unwrap());
    let is_head = page.starts_with(b"SFVFRAME") && entries > 0;
    is_head.then(|| (page[64], u64::from_le_bytes(page[72..80].try_into().unwrap())))
}

/// The numbers of pages that are heads of frames with leaves, and of those with the newest root.
fn heads_of_map(image: &UnitsImage) -> (Vec<usize>, Vec<usize>) {
    const LEAF: u8 = 4;
    const ROOT: u8 = 5;
    let mut entries = Vec::new();
    drop(image.clone().changed(|page| entries.push(first_entry(page))));
    let numbered = || (0..).zip(&entries).filter_map(|(page, entry)| Some((page, (*entry)?)));
    let roots = || numbered().filter(|(_, (kind, _))| *kind == ROOT);
    let newest = roots().map(|(_, (_, number))| number).max();
    let leaves = numbered().filter(|(_, (kind, _))| *kind == LEAF).map(|(page, _)| page);
    let roots = roots().filter(|(_, (_, number))| Some(*number) == newest).map(|(page, _)| page);
    (leaves.collect(), roots.collect())
}

#[test]
fn a_check_notices_a_damaged_head_of_a_frame_of_the_map_and_a_repair_writes_the_copy_again() {
    let seed = 1;
    let testbed = Testbed::new(16, 256);
    let contents = filled(&testbed, seed);
    let image = testbed.device.image(0..4).unwrap();
    let examined = testbed.examine().unwrap();
    assert!(!examined.needs_repair(), "undamaged: {examined:?}");
    let (leaves, roots) = heads_of_map(&image);
    assert_eq!(roots.len(), 2, "two copies of the root");
    let mut noticed = 0;
    for (damaged, is_root) in leaves
        .into_iter()
        .map(|page| (page, false))
        .chain(roots.into_iter().map(|page| (page, true)))
    {
        testbed.device.restore(&with_damage(&image, damaged)).unwrap();
        let examined = testbed.examine().unwrap();
        let copies = (examined.damaged_leaf_copies, examined.recovery.damaged_root_copies);
        assert_eq!((copies.1 > 0, examined.recovery.lost_units), (is_root, 0), "page {damaged}");
        // Frames that only older roots need are there, too.
        assert!(!is_root || copies.0 == 0, "page {damaged}");
        noticed += u32::from(copies.0 > 0);
        let repaired = testbed
            .on_flash(async |queue, config, runtime| Domain::repair(queue, config, runtime).await);
        assert!(repaired.error.is_none(), "page {damaged}: {repaired:?}");
        let again = testbed.examine().unwrap();
        assert!(!again.needs_repair(), "page {damaged}: {again:?}");
        testbed.run(async |domain, _, _| {
            let lost = read_all(domain, &contents, &format!("page {damaged}")).await;
            assert!(lost.is_empty(), "page {damaged}: {lost:?}");
        });
    }
    assert!(noticed >= 2, "two copies of a frame of leaves, but {noticed} were noticed");
}

/// Damages all pages that look like leaves: most of their entries hold nothing.
fn without_leaves(image: &UnitsImage) -> (UnitsImage, usize) {
    let mut damaged = 0;
    let image = image.clone().changed(|page| {
        let empty = page.chunks(8).filter(|entry| *entry == [255, 255, 255, 255, 0, 0, 0, 0]);
        if empty.count() > 200 {
            page[1000] ^= 4;
            damaged += 1;
        }
    });
    (image, damaged)
}

#[test]
fn leaves_without_a_readable_copy_are_rebuilt_from_the_frames() {
    let testbed = Testbed::new(16, 256);
    let mut expected = BTreeMap::new();
    for session in 0..3 {
        testbed.run(async |domain, _, _| {
            if session == 0 {
                domain.create("v", UNITS * UNIT as u64).await.unwrap();
            }
            let volume = domain.volume("v").unwrap();
            for step in 0..150 {
                let lba = (step * 37 + session * 11) % UNITS;
                volume.write(lba * UNIT as u64, &unit(1000 * session + step + 1)).await.unwrap();
                expected.insert(lba, 1000 * session + step + 1);
            }
            volume.flush().await.unwrap();
            domain.checkpoint().await.unwrap();
        });
    }
    let (image, damaged) = without_leaves(&testbed.device.image(0..4).unwrap());
    assert!(damaged >= 12, "two copies of six halves, but only {damaged} pages");
    testbed.device.restore(&image).unwrap();
    for mount in 0..2 {
        testbed.run(async |domain, _, report| {
            let rebuilt = if mount == 0 { 6 } else { 0 };
            assert_eq!((report.rebuilt_halves, report.lost_halves), (rebuilt, 0));
            let volume = domain.volume("v").unwrap();
            for lba in 0..UNITS {
                let mut read = vec![0; UNIT];
                volume.read(lba * UNIT as u64, &mut read).await.unwrap();
                assert_eq!(content(&read), expected.get(&lba).copied().unwrap_or(0), "unit {lba}");
            }
        });
    }
}

#[test]
fn what_cannot_be_rebuilt_is_lost_until_it_is_written_or_discarded() {
    let mut met = 0;
    for seed in 1..9 {
        println!("seed {seed}");
        let testbed = Testbed::new(16, 256);
        let contents = filled(&testbed, seed);
        let (image, _) = without_leaves(&testbed.device.image(0..4).unwrap());
        testbed.device.restore(&image).unwrap();
        let slot = format!("seed {seed}");
        testbed.run(async |domain, _, _| {
            let lost = read_all(domain, &contents, &slot).await;
            for (name, lba) in lost.iter().filter(|(name, _)| !name.contains('@')) {
                let (volume, offset) = (domain.volume(name).unwrap(), lba * UNIT as u64);
                let mut read = vec![0; UNIT];
                if met % 2 == 0 {
                    volume.write(offset, &unit(77)).await.unwrap();
                } else {
                    volume.discard(offset, UNIT as u64).await.unwrap();
                }
                volume.read(offset, &mut read).await.unwrap();
                assert_eq!(content(&read), if met % 2 == 0 { 77 } else { 0 }, "{slot}");
                met += 1;
            }
            // The snapshot has not changed.
            let of_snapshot = contents.iter().filter(|(name, _)| name.contains('@'));
            let of_snapshot = of_snapshot.map(|(name, units)| (*name, units.clone())).collect();
            let still = read_all(domain, &of_snapshot, &slot).await;
            let before = lost.iter().filter(|(name, _)| name.contains('@')).count();
            assert_eq!(still.len(), before, "{slot}");
        });
    }
    assert!(met > 100, "only {met} mapping units of volumes were lost");
}

/// Damages all copies of the newest root: those of the greatest sequence.
fn without_newest_root(image: &UnitsImage) -> (UnitsImage, usize) {
    let sequence = |page: &[u8]| {
        let is_root = page.starts_with(&[4, 0, 0, 0]) && page.windows(12).any(|at| at == NAMED);
        is_root.then(|| u64::from_le_bytes(page[4..12].try_into().unwrap()))
    };
    let mut newest = 0;
    drop(image.clone().changed(|page| newest = sequence(page).unwrap_or(0).max(newest)));
    let mut damaged = 0;
    let image = image.clone().changed(|page| {
        if sequence(page) == Some(newest) {
            page[2] ^= 4;
            damaged += 1;
        }
    });
    (image, damaged)
}

const NAMED: &[u8] = b"named-volume";

#[test]
fn without_the_newest_root_no_older_data_are_served() {
    let (mut refused, mut served) = (0, 0);
    for seed in 1..20 {
        let testbed = Testbed::new(16, 128);
        let mut rng = Rng::seeded(seed);
        let mut expected = BTreeMap::new();
        testbed.run(async |domain, _, _| {
            let name = std::str::from_utf8(NAMED).unwrap();
            domain.create(name, 400 * UNIT as u64).await.unwrap();
            let volume = domain.volume(name).unwrap();
            for step in 1..600 + 40 * seed {
                let lba = rng.below(300);
                match rng.below(12) {
                    0 => {
                        volume.discard(lba * UNIT as u64, 10 * UNIT as u64).await.unwrap();
                        expected.retain(|at, _| !(lba..lba + 10).contains(at));
                    }
                    _ => {
                        volume.write(lba * UNIT as u64, &unit(step)).await.unwrap();
                        expected.insert(lba, step);
                    }
                }
                if rng.chance(0.01) {
                    domain.checkpoint().await.unwrap();
                }
            }
            volume.flush().await.unwrap();
        });
        let (image, damaged) = without_newest_root(&testbed.device.image(0..4).unwrap());
        assert!(damaged > 0, "seed {seed}: no root is damaged");
        testbed.device.restore(&image).unwrap();
        if let Ok(examined) = testbed.examine() {
            assert!(examined.needs_repair(), "seed {seed}: {examined:?}");
        }
        let outcome = testbed.try_run(async |domain, _, _| {
            let volume = domain.volume(std::str::from_utf8(NAMED).unwrap()).unwrap();
            for lba in 0..400 {
                let mut read = vec![0; UNIT];
                if volume.read(lba * UNIT as u64, &mut read).await.is_ok() {
                    let current = expected.get(&lba).copied().unwrap_or(0);
                    assert_eq!(content(&read), current, "seed {seed}, unit {lba}");
                }
            }
        });
        match outcome {
            Ok(()) => {
                let examined = testbed.examine().unwrap();
                assert!(!examined.needs_repair(), "seed {seed}, after a mount: {examined:?}");
                served += 1;
            }
            Err(VolumeError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{served} are served, {refused} are refused");
}
