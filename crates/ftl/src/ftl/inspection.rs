//! Dimensions, identities and counts of an FTL.

use super::Ftl;
use crate::blocks::BlockUse;
use crate::header::uuid_halves;
use crate::layout::HEADER_PAGES;
use crate::superblock::Superblock;
use crate::telemetry::{SpaceAccount, UnitTelemetry};
use softflash_base::{UnitId, checksum};
use softflash_device::UnitGeometry;
use std::ops::Range;

impl Ftl {
    /// Pages of a superblock that its owner can write.
    pub fn payload_pages(&self) -> u32 {
        self.layout.payload_pages()
    }

    /// Pages of a superblock that its dies and planes program side by side.
    pub fn row_pages(&self) -> u32 {
        self.layout.columns()
    }

    /// Number of payload pages of a superblock that must be appended so that a power cut in a later
    /// append cannot destroy any of the first `pages`. This is at least `pages`, more if pages
    /// share cells, and at most all pages.
    pub fn safe_after(&self, pages: u32) -> u32 {
        self.layout.safe_after(pages, |page| self.dispatcher.device().safe_after(page))
    }

    /// The payload pages that are programmed next into the die of payload page `page` once that
    /// page is whole and safe from power cuts: if one of them has data, page `page` was programmed
    /// completely. Empty at the end of the superblock, and if the block is bad, as it is after a
    /// failed program.
    pub fn successors(&self, superblock: &Superblock, page: u32) -> Range<u32> {
        let column = self.layout.column(page + HEADER_PAGES);
        let Ok(unit) = self.units.locate(superblock) else { return 0..0 };
        let blocks = &self.units[unit].blocks;
        match blocks.block(superblock.index, column) {
            Some(block) if blocks.state(column, block) != BlockUse::Bad => {
                self.layout.successors(page, |page| self.dispatcher.device().safe_after(page))
            }
            _ => 0..0,
        }
    }

    /// For each block of a superblock: the first payload page from `page` on, and the last payload
    /// page. The pages of a block are programmed in order.
    pub fn rest_of_blocks(&self, page: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let layout = self.layout;
        let end = (page + layout.columns()).min(layout.payload_pages());
        (page..end).map(move |first| (first, layout.last_of_block(first)))
    }

    /// The geometry of every unit.
    pub fn geometry(&self) -> &UnitGeometry {
        self.dispatcher.device().geometry()
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> u32 {
        self.layout.page_bytes
    }

    /// The seed for the checksums of the data in this life of a superblock: device, unit, index and
    /// generation.
    pub fn identity(&self, superblock: &Superblock) -> u64 {
        let [low, high] = uuid_halves(self.dispatcher.device().device_uuid());
        checksum::identity(&[
            low,
            high,
            u64::from(superblock.unit.0),
            u64::from(superblock.index),
            superblock.generation,
        ])
    }

    /// Commands of a unit that wait or are in the device. Cheap, for placement.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn load(&self, unit: UnitId) -> u32 {
        self.units.unit(unit).load()
    }

    /// Whether a unit programs or erases, or will: it has such commands. Looks at all commands.
    pub fn is_changing(&self, unit: UnitId) -> bool {
        self.units.place(unit).is_ok_and(|place| self.commands.any_changes(place))
    }

    /// Number of superblocks of a unit in each state.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn space(&self, unit: UnitId) -> SpaceAccount {
        self.units.unit(unit).space()
    }

    /// The greatest generation in the headers on the flash of the unit; 0 if there is none. It does
    /// not decrease unless the flash loses data.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn newest_generation(&self, unit: UnitId) -> u64 {
        self.units.unit(unit).newest_generation()
    }

    /// The state and the counters of a unit. Scans all blocks, so it is too slow to call for every
    /// request.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn telemetry(&self, unit: UnitId) -> UnitTelemetry {
        self.units.unit(unit).telemetry()
    }

    /// Erases of the most worn block of a unit.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn most_erases(&self, unit: UnitId) -> u32 {
        self.units.unit(unit).most_erases()
    }

    /// The superblock of a unit that its owner should rewrite elsewhere to level wear: its data is
    /// so cold that its blocks have far fewer erases than the most worn block. None if wear is
    /// level enough. Only superblocks count whose index the owner `can_move`.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn worth_moving(&self, unit: UnitId, can_move: impl Fn(u32) -> bool) -> Option<Superblock> {
        self.units.unit(unit).worth_moving(self.wear, can_move)
    }

    /// Recounts all superblocks, blocks and commands, for tests and checks.
    ///
    /// # Panics
    /// If one is lost or counted twice, which is a defect.
    pub fn check(&self) {
        self.units.check();
    }
}
