//! Damage of each page in turn: the domain is mounted, and a read returns the current data or an
//! error.

use crate::bed::{Bed, UNIT, content, unit};
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
fn filled(bed: &Bed, seed: u64) -> Contents {
    let mut contents = Contents::new();
    let mut rng = Rng::seeded(seed);
    bed.run(async |domain, _, _| {
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

/// Reads everything: each mapping unit is current or cannot be read. Returns the ranges that cannot.
async fn read_all(domain: &Domain, contents: &Contents, place: &str) -> Vec<(String, u64)> {
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
                    assert_eq!(content(&read), expected, "{place}: unit {lba} of {name}");
                }
                Err(VolumeError::DataLoss { .. }) => lost.push(((*name).to_owned(), lba)),
                Err(error) => panic!("{place}: unit {lba} of {name}: {error}"),
            }
        }
    }
    lost
}

/// What a check says that cannot be read.
fn found_lost(bed: &Bed, place: &str) -> Option<Vec<(String, u64)>> {
    let examined = bed.examine().ok()?;
    let mut lost = Vec::new();
    for image in &examined.images {
        let name = match &image.snapshot {
            Some(snapshot) => format!("{}@{snapshot}", image.volume),
            None => image.volume.clone(),
        };
        for range in &image.lost {
            assert!(range.end <= UNITS * UNIT as u64, "{place}: {range:?} of {name}");
            let units = range.start / UNIT as u64..range.end / UNIT as u64;
            let compared = compared().filter(|lba| units.contains(lba));
            lost.extend(compared.map(|lba| (name.clone(), lba)));
        }
    }
    lost.sort_unstable();
    Some(lost)
}

#[test]
fn with_any_page_damaged_a_read_returns_current_data_or_an_error() {
    for seed in [1, 2] {
        let bed = Bed::new(16, 256);
        let contents = filled(&bed, seed);
        let image = bed.device.image(0..4).unwrap();
        let (mut refused, mut most_lost, mut rebuilt) = (0, 0, 0);
        for damaged in 0..pages(&image) {
            let place = format!("seed {seed}, page {damaged}");
            bed.device.restore(&with_damage(&image, damaged)).unwrap();
            let found = found_lost(&bed, &place);
            let first = bed.try_run(async |domain, _, report| {
                rebuilt += report.rebuilt_halves;
                read_all(domain, &contents, &place).await
            });
            let Ok(mut lost) = first else {
                refused += 1;
                assert_eq!(found, None, "{place}: a check finds it, too");
                continue;
            };
            lost.sort_unstable();
            assert_eq!(found, Some(lost.clone()), "{place}: a check finds the same");
            most_lost = lost.len().max(most_lost);
            // The map is whole again, and what was lost stays lost.
            bed.run(async |domain, _, report| {
                assert_eq!((report.rebuilt_halves, report.lost_halves), (0, 0), "{place}");
                let mut again = read_all(domain, &contents, &place).await;
                again.sort_unstable();
                assert_eq!(again, lost, "{place}");
            });
        }
        eprintln!("seed {seed}: {refused} refused, {most_lost} lost at most, {rebuilt} rebuilt");
        assert!(rebuilt > 0, "no damage of a leaf was met");
    }
}
