//! A sibling: a smaller drive that comes to the same steady state as a large one, in a fraction of
//! the time.
//!
//! Groups of blocks do not affect each other, so a few stand for all. The steady state of a group
//! depends on the number of its blocks and on the share of each block that is valid, not on the
//! pages of a block, as long as there are hundreds (mean field; Van Houdt, "A mean field model for
//! a class of garbage collection algorithms in flash-based solid state drives", SIGMETRICS 2013).
//! So the sibling has as many blocks in a group, the same over-provisioning and policies, but fewer
//! groups, and fewer pages in a block. Each of its pages stands for neighbours of the large drive,
//! and is written when one of them is.

mod scale;

pub(crate) use scale::Scale;

use crate::drive::Drive;
use crate::error::DriveError;
use crate::shape::Shape;
use crate::space::Arrangement;
use crate::spec::{Bands, DeviceSpec, LifetimePolicy, MapKind, PageMapped};
use softflash_nand::Geometry;

/// Pages of a sibling, about: they settle in seconds.
const PAGES: u64 = 1 << 20;

/// Pages of a block that are enough for the mean field, and the fewest that are used.
const ENOUGH_PAGES: u32 = 1024;
const FEWEST_PAGES: u32 = 256;

/// The fewest pages of the large drive for each of the sibling's: for fewer it is not worthwhile.
const LEAST_REPLICAS: u32 = 4;

/// A smaller drive that settles for a large one.
pub struct Sibling {
    drive: Drive,
    /// What it is built from.
    device: DeviceSpec,
    layout: PageMapped,
    op_percent: f64,
    scale: Scale,
    page_bytes: u64,
}

impl Sibling {
    /// The sibling of a drive on which no write is longer than `write_bytes`. `None` if the drive
    /// is small, or has a part that does not scale: parity, a map on flash, predicted lifetimes, or
    /// bands, which make groups depend on each other.
    ///
    /// # Errors
    /// Those of [`Drive::new`].
    pub fn of(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
        write_bytes: u64,
    ) -> Result<Option<Sibling>, DriveError> {
        let predicts = layout.lifetime != LifetimePolicy::NONE;
        let depend = predicts || layout.bands != Bands::None;
        if layout.map != MapKind::Page || layout.parity_data_pages > 0 || depend {
            return Ok(None);
        }
        let large = Drive::shape_of(device, layout, op_percent)?;
        let page_bytes = u64::from(large.page_bytes());
        let is_striped = layout.placement.is_static() && !large.is_packed();
        // A write may begin inside of a page.
        let run = write_bytes.div_ceil(page_bytes) + 1;
        let run = if write_bytes <= page_bytes { 1 } else { run as u32 };
        let word_line = device.die.cell.bits() as u32;
        let small = candidates(&device.geometry, word_line).filter_map(|geometry| {
            let pages = (geometry.pages(), device.geometry.pages());
            let device = DeviceSpec { geometry, ..device.clone() };
            let layout = with_cache_of(layout, &large, pages);
            let shape = Drive::shape_of(&device, &layout, op_percent).ok()?;
            let pages = large.pages_per_block() / shape.pages_per_block();
            let scale =
                Scale::new(&large, (large.groups() / shape.groups(), pages), is_striped, run)?;
            let usable = shape.pages_per_block() >= FEWEST_PAGES.min(large.pages_per_block())
                && scale.replicas() >= LEAST_REPLICAS;
            usable.then_some((device, layout, shape, scale))
        });
        let best = small.max_by_key(|(_, _, shape, _)| merit(shape));
        let Some((device, layout, _, scale)) = best else { return Ok(None) };
        let drive = Drive::new(&device, &layout, op_percent)?;
        Ok(Some(Sibling { drive, device, layout, op_percent, scale, page_bytes }))
    }

    /// The sibling.
    pub fn drive(&mut self) -> &mut Drive {
        &mut self.drive
    }

    /// Pages of the large drive for each of the sibling's.
    pub fn replicas(&self) -> u32 {
        self.scale.replicas()
    }

    /// The offset of the sibling's page that stands for the page at an offset of the large drive;
    /// `None` for a few at its end.
    #[inline]
    pub fn contract(&self, offset_bytes: u64) -> Option<u64> {
        let page = self.scale.contract((offset_bytes / self.page_bytes) as u32);
        let offset_bytes = u64::from(page) * self.page_bytes;
        (offset_bytes < self.drive.capacity_bytes()).then_some(offset_bytes)
    }

    /// Its state as numbers, for [`restore`](Sibling::restore).
    pub fn save(&self) -> Vec<u32> {
        self.drive.arrangement().to_words()
    }

    /// Brings it into a saved state of such a sibling; `None` if the numbers are not one, and then
    /// it is as before. A sibling that goes on after `save` and one that is restored differ in what
    /// is not part of the state: random numbers of policies, and the pace of collection.
    pub fn restore(&mut self, saved: &[u32]) -> Option<()> {
        let arrangement = Arrangement::from_words(saved)?;
        let mut drive = Drive::new(&self.device, &self.layout, self.op_percent).ok()?;
        let [own, other] = [self.drive.arrangement(), arrangement.clone()].map(|of| of.outline());
        if own != other {
            return None;
        }
        drive.vacate();
        drive.assume(&arrangement, (Scale::ONE, 0), &|page| page);
        drive.complete(arrangement.logical_pages, Scale::ONE, &|page| page);
        drive.check().ok()?;
        self.drive = drive;
        Some(())
    }

    /// Brings a new drive into the state of its sibling. `place` gives the offset of a page from
    /// its offset in the order in which the sibling was written. The groups of a replica are in the
    /// state to which `advance` brings the sibling before: so that those of all replicas are not
    /// collected at the same time.
    ///
    /// # Panics
    /// If it is not the sibling of such a drive.
    pub fn expand_into(
        &mut self,
        drive: &mut Drive,
        place: &dyn Fn(u64) -> u64,
        advance: &mut dyn FnMut(&mut Sibling),
    ) {
        let page_bytes = self.page_bytes;
        let place = |page| (place(u64::from(page) * page_bytes) / page_bytes) as u32;
        drive.vacate();
        for replica in 0..self.scale.groups {
            advance(self);
            drive.assume(&self.drive.arrangement(), (self.scale, replica), &place);
        }
        let sibling_pages = (self.drive.capacity_bytes() / page_bytes) as u32;
        drive.complete(sibling_pages, self.scale, &place);
    }
}

/// The layout of a sibling with so many of the large drive's pages, whose SLC cache has as many
/// blocks in a group.
fn with_cache_of(layout: &PageMapped, large: &Shape, (pages, of_large): (u64, u64)) -> PageMapped {
    let mut layout = layout.clone();
    if let Some(cache) = &mut layout.slc_cache {
        cache.bytes = large.slc_cache_bytes() / (of_large / pages);
    }
    layout
}

/// The geometries of smaller arrays: fewer channels and chips, and fewer pages in a block, which
/// has whole word lines.
fn candidates(large: &Geometry, word_line: u32) -> impl Iterator<Item = Geometry> {
    let large = *large;
    let divisors = |of: u32| (1..=of).filter(move |&by| of.is_multiple_of(by));
    let whole = move |pages: &u32| pages.is_multiple_of(word_line);
    divisors(large.channels.into()).flat_map(move |channels| {
        divisors(large.chips_per_channel.into()).flat_map(move |chips| {
            divisors(large.pages_per_block).filter(whole).map(move |pages_per_block| Geometry {
                channels: channels as u16,
                chips_per_channel: chips as u8,
                pages_per_block,
                ..large
            })
        })
    })
}

/// How well a sibling suits: it has about [`PAGES`], or less; then, enough pages in a block; then,
/// as many groups as possible.
fn merit(shape: &Shape) -> (u64, u32, u32) {
    let excess = shape.flash_pages().saturating_sub(2 * PAGES);
    (u64::MAX - excess, shape.pages_per_block().min(ENOUGH_PAGES), shape.groups())
}
