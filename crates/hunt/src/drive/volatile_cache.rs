//! The pages of a drive and its volatile write cache.

use softflash_base::random::Rng;
use softflash_base::{UnitId, UnitSet};
use softflash_device::{Target, UnitGeometry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Contents of a page; none: zeros.
pub type Page = Option<Arc<[u8]>>;

/// Address of a page.
pub type Place = (UnitId, u64);

/// A version of a page, with the sequence number of its write.
type Version = (u64, Page);

/// Image of a unit.
#[derive(Debug, Clone)]
pub struct Image {
    unit: UnitId,
    pages: Vec<(Place, Page)>,
}

/// All pages, cached versions included.
pub struct VolatileCache {
    geometry: UnitGeometry,
    discards: bool,
    /// The newest version of each page, which reads return.
    pages: BTreeMap<Place, Page>,
    /// For each page with unflushed writes: the flushed version and all later ones.
    unflushed: BTreeMap<Place, Vec<Version>>,
    /// Sequence number of the last write.
    writes: u64,
    bad: Vec<(UnitId, (u8, u8, u32))>,
}

impl VolatileCache {
    /// A drive full of zeros.
    pub fn new(geometry: UnitGeometry, discards: bool) -> VolatileCache {
        VolatileCache {
            geometry,
            discards,
            pages: BTreeMap::new(),
            unflushed: BTreeMap::new(),
            writes: 0,
            bad: Vec::new(),
        }
    }

    /// The pages of a target in the order of its buffer.
    fn places(&self, target: &Target) -> impl Iterator<Item = Place> + use<> {
        let UnitGeometry { planes, blocks_per_plane, pages_per_block, .. } = self.geometry;
        let target = *target;
        (0..target.rows).flat_map(move |row| {
            (0..target.planes).map(move |plane| {
                let plane_index =
                    u64::from(target.die) * u64::from(planes) + u64::from(target.plane + plane);
                let block = u64::from(target.blocks[usize::from(plane)]);
                let block = plane_index * u64::from(blocks_per_plane) + block;
                let page = block * u64::from(pages_per_block) + u64::from(target.page + row);
                (target.unit, page)
            })
        })
    }

    /// Reads the target's pages into the buffer.
    pub fn read(&self, target: &Target, buffer: &mut [u8]) {
        let pages = buffer.chunks_mut(self.geometry.page_bytes as usize);
        for (place, bytes) in self.places(target).zip(pages) {
            match self.pages.get(&place) {
                Some(Some(page)) => bytes.copy_from_slice(page),
                _ => bytes.fill(0),
            }
        }
    }

    /// Writes the target's pages to the cache, or with `forced` through the cache.
    pub fn write(&mut self, target: &Target, data: &[u8], forced: bool) {
        let pages = data.chunks(self.geometry.page_bytes as usize);
        for (place, bytes) in self.places(target).zip(pages) {
            self.set(place, Some(bytes.into()));
            if forced {
                self.unflushed.remove(&place);
            }
        }
    }

    /// Erases the target's blocks, if the drive discards erased blocks.
    pub fn erase(&mut self, target: &Target) {
        if self.discards {
            let whole = Target { page: 0, rows: self.geometry.pages_per_block, ..*target };
            for place in self.places(&whole) {
                if self.pages.get(&place).is_some_and(Option::is_some) {
                    self.set(place, None);
                }
            }
        }
    }

    fn set(&mut self, place: Place, page: Page) {
        self.writes += 1;
        let before = self.pages.insert(place, page.clone()).flatten();
        let versions = self.unflushed.entry(place).or_insert_with(|| vec![(0, before)]);
        versions.push((self.writes, page));
    }

    /// Sequence number of the last write: a flush submitted now makes all writes up to it durable.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Marks writes to these units up to `last` as durable.
    pub fn flushed(&mut self, units: &UnitSet, last: u64) {
        self.unflushed.retain(|(unit, _), versions| {
            if units.contains(unit.0) {
                let durable = versions.iter().rposition(|(number, _)| *number <= last);
                versions.drain(..durable.unwrap_or(0));
            }
            versions.len() > 1
        });
    }

    /// Cuts the power: each page keeps any one of its versions.
    pub fn power_cut(&mut self, rng: &mut Rng) {
        for (place, mut versions) in std::mem::take(&mut self.unflushed) {
            let left = rng.below(versions.len() as u64) as usize;
            self.pages.insert(place, versions.swap_remove(left).1);
        }
    }

    /// Image of a unit without unflushed writes.
    pub fn image(&self, unit: u16) -> Image {
        let unit = UnitId(unit);
        let ours = self.pages.range((unit, 0)..=(unit, u64::MAX));
        Image { unit, pages: ours.map(|(place, page)| (*place, page.clone())).collect() }
    }

    /// Restores a unit from an image, except for its bad blocks, which are recorded elsewhere.
    pub fn restore(&mut self, image: &Image) {
        self.pages.retain(|(unit, _), _| *unit != image.unit);
        self.unflushed.retain(|(unit, _), _| *unit != image.unit);
        self.pages.extend(image.pages.iter().map(|(place, page)| (*place, page.clone())));
    }

    /// Bad blocks of a unit in ascending order.
    pub fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        let ours = self.bad.iter().filter(|(other, _)| *other == unit);
        let mut bad: Vec<_> = ours.map(|(_, block)| *block).collect();
        bad.sort_unstable();
        bad
    }

    /// Marks the target's blocks bad.
    pub fn mark_bad(&mut self, target: &Target) {
        for plane in 0..target.planes {
            let block = target.blocks[usize::from(plane)];
            self.bad.push((target.unit, (target.die, target.plane + plane, block)));
        }
    }
}
