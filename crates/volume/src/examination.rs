//! The examination of a domain: everything that its volumes hold is read and compared with its
//! checksum. Nothing is written.

use crate::config::DomainConfig;
use crate::core::Core;
use crate::domain_map::Found;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::{Image, ImageId};
use crate::listing::{self, VolumeInfo};
use crate::moving::{read_slots, run_length};
use crate::opening::open;
use crate::recovery::leaves::damaged_copies;
use crate::recovery::{RecoveryReport, recover};
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_device::QueuePair;
use softflash_ftl::FtlConfig;
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// The progress of an examination.
#[derive(Debug, Default)]
pub struct Progress {
    /// Mapping units to read.
    pub total: Cell<u64>,
    /// Mapping units read.
    pub done: Cell<u64>,
}

/// A volume or a snapshot that was examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedImage {
    /// The name of the volume.
    pub volume: String,
    /// The name of the snapshot of it, if it is one.
    pub snapshot: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that it holds itself, without those that it shares with others.
    pub held_bytes: u64,
    /// The ranges that cannot be read, also where others hold the data, in bytes.
    pub lost: Vec<Range<u64>>,
}

impl ExaminedImage {
    /// Bytes that cannot be read.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum()
    }
}

/// The result of an examination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// What a mount would find.
    pub recovery: RecoveryReport,
    /// Copies of halves of leaves of the map that cannot be read, or whose frame has lost its head.
    pub damaged_leaf_copies: u32,
    /// Mapping units that were read.
    pub units_read: u64,
    /// The volumes by name, each followed by its snapshots, the oldest first.
    pub images: Vec<ExaminedImage>,
}

impl Examined {
    /// Whether a repair has something to write: of the map, or of the frames behind its root. Lost
    /// data in frames that are there are no part of it.
    pub fn needs_repair(&self) -> bool {
        let RecoveryReport {
            damaged_root_copies,
            rebuilt_halves,
            lost_halves,
            lost_frames,
            stale_units,
            ..
        } = &self.recovery;
        let parts = damaged_root_copies + rebuilt_halves + lost_halves + lost_frames;
        self.damaged_leaf_copies + parts > 0 || !stale_units.is_empty()
    }
}

/// Examines a domain as the next mount would find it.
pub(crate) async fn examine(
    queue: Box<dyn QueuePair>,
    config: DomainConfig,
    runtime: RuntimeHandle,
    progress: &Progress,
) -> Result<Examined, VolumeError> {
    recovered(queue, config, runtime, async |core, recovery| {
        let damaged_leaf_copies = cast::saturating_u32(damaged_copies(core).await.len());
        let (units_read, damaged) = read_all(core, progress).await?;
        let images = images(core, &damaged);
        Ok(Examined { recovery, damaged_leaf_copies, units_read, images })
    })
    .await
}

/// The volumes of a domain as the next mount would find them.
pub(crate) async fn list(
    queue: Box<dyn QueuePair>,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<Vec<VolumeInfo>, VolumeError> {
    let list = async |core: &Core, _| Ok(listing::volumes(&core.map.borrow()));
    recovered(queue, config, runtime, list).await
}

/// Recovers a domain without a write, and works with it.
async fn recovered<T>(
    queue: Box<dyn QueuePair>,
    config: DomainConfig,
    runtime: RuntimeHandle,
    work: impl AsyncFnOnce(&Core, RecoveryReport) -> Result<T, VolumeError>,
) -> Result<T, VolumeError> {
    // Without erases in advance: an examination only reads.
    let ftl = FtlConfig { erased_target: 0, ..FtlConfig::default() };
    let (core, inventory) = open(queue, ftl, config, runtime).await?;
    let outcome = match recover(&core, &inventory).await {
        Ok(recovered) => work(&core, recovered.report).await,
        Err(error) => Err(error),
    };
    core.flash.stop();
    outcome
}

/// What cannot be read.
#[derive(Default)]
struct Damaged {
    /// The numbers of the mapping units, in any image.
    units: BTreeSet<u32>,
    /// The slots of those that have one.
    slots: HashSet<u32>,
}

/// Reads all valid slots, of all units at a time. Returns how many they are, with the damaged
/// ones.
async fn read_all(core: &Core, progress: &Progress) -> Result<(u64, Damaged), VolumeError> {
    progress.total.set(progress.total.get() + u64::from(core.map.borrow().used()));
    let units = core.geometry.numbers().map(|unit| read_unit(core, unit, progress));
    let (mut read, mut damaged) = (0, Damaged::default());
    for unit in join_all(units).await {
        let (slots, wrong) = unit?;
        read += slots;
        for slot in wrong {
            damaged.slots.insert(slot);
            damaged.units.extend(core.map.borrow().holder(slot).map(|(_, lba)| lba));
        }
    }
    damaged.units.extend(core.map.borrow().lost().map(|(_, lba)| lba));
    Ok((read, damaged))
}

/// Reads the valid slots of a unit; returns how many they are, and those with damaged data.
async fn read_unit(
    core: &Core,
    unit: u32,
    progress: &Progress,
) -> Result<(u64, Vec<u32>), VolumeError> {
    let (mut read, mut wrong) = (0, Vec::new());
    for block in core.geometry.blocks_of(unit) {
        let slots = core.geometry.slots_of(block);
        let mut at = slots.start;
        loop {
            let next = core.map.borrow().next_valid(at, slots.end);
            let Some(first) = next else { break };
            at = first + run_length(core, first, slots.end);
            let together = read_run(core, first, at).await?;
            let single = match together {
                Some(damaged) => {
                    wrong.extend(damaged);
                    0..0
                }
                // One bad page fails the whole read: each is read alone.
                None => first..at,
            };
            for slot in single {
                let alone = read_run(core, slot, slot + 1).await?;
                wrong.extend(alone.unwrap_or_else(|| valid(core, slot, slot + 1)));
            }
            let valid = cast::wide(valid(core, first, at).len());
            read += valid;
            progress.done.set(progress.done.get() + valid);
        }
    }
    Ok((read, wrong))
}

/// The valid slots of a run whose data do not fit their checksums; `None` if it cannot be read.
async fn read_run(core: &Core, first: u32, end: u32) -> Result<Option<Vec<u32>>, VolumeError> {
    if core.superblocks.handle(core.geometry.block_of(first)).is_none() {
        return Ok(None);
    }
    let Some(read) = read_slots(core, first, end - first, Hint::REFRESH).await? else {
        return Ok(None);
    };
    let map = core.map.borrow();
    let is_damaged = |slot: &u32| {
        map.holder(*slot).is_some_and(|(image, lba)| {
            !map.fits(image, lba, read.unit(*slot), map.checksum_at(*slot))
        })
    };
    Ok(Some((first..end).filter(is_damaged).collect()))
}

fn valid(core: &Core, first: u32, end: u32) -> Vec<u32> {
    let map = core.map.borrow();
    (first..end).filter(|&slot| map.holder(slot).is_some()).collect()
}

/// All images, with what each of them cannot read.
fn images(core: &Core, damaged: &Damaged) -> Vec<ExaminedImage> {
    let map = core.map.borrow();
    let examined = |id: ImageId, image: &Image, volume: &str, snapshot: Option<String>| {
        let unit = cast::wide(MAPPING_UNIT_BYTES);
        let is_lost = |lba: &&u32| {
            **lba < image.size
                && match map.find(id, **lba) {
                    Found::At { slot, .. } => damaged.slots.contains(&slot),
                    Found::Lost { .. } => true,
                    Found::Zeros => false,
                }
        };
        ExaminedImage {
            volume: volume.to_owned(),
            snapshot,
            size_bytes: u64::from(image.size) * unit,
            held_bytes: cast::wide(map.slots_held(id, 0..image.size).count()) * unit,
            lost: ranges(damaged.units.iter().filter(is_lost).copied()),
        }
    };
    let mut volumes: Vec<(ImageId, &Image)> =
        map.images.iter().filter(|(_, image)| image.is_volume()).collect();
    volumes.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    let mut all = Vec::new();
    for (id, volume) in volumes {
        all.push(examined(id, volume, &volume.name, None));
        let mut snapshots: Vec<_> = map.images.snapshots_of(id).collect();
        snapshots.reverse();
        let of = |(id, image): (ImageId, &Image)| {
            examined(id, image, &volume.name, Some(image.name.clone()))
        };
        all.extend(snapshots.into_iter().map(of));
    }
    all
}

/// Mapping units in ascending order as ranges of bytes.
fn ranges(units: impl Iterator<Item = u32>) -> Vec<Range<u64>> {
    let bytes = cast::wide(MAPPING_UNIT_BYTES);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for start in units.map(|unit| u64::from(unit) * bytes) {
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = start + bytes,
            _ => ranges.push(start..start + bytes),
        }
    }
    ranges
}
