//! Numbers of slots: a *slot* is a mapping unit of the domain's flash, a *block* a superblock,
//! both counted over all units.

use crate::domain_map::MARKS;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::unit_slots::{SlotMap, UnitSlots};
use softflash_base::{UnitSet, cast};
use softflash_device::UnitGeometry;
use softflash_flash::Flash;
use softflash_mapping::blocks::MOST_PAGES_PER_BLOCK;
use std::ops::Range;

/// The dimensions of a mapped domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Which part of the blocks and slots each unit has. Its slot is its number in the domain.
    pub unit_slots: SlotMap,
    /// Superblocks of a unit.
    pub unit_blocks: u32,
    /// Mapping units of a superblock.
    pub block_units: u32,
    /// Mapping units of a page.
    pub page_units: u32,
    /// Pages of a superblock for data and the map. Behind them, an empty frame shows that the
    /// frames before were complete.
    pub data_pages: u32,
}

impl Geometry {
    /// The dimensions of a domain on these units, with the unit slots that a table of sets names.
    pub fn of(flash: &Flash, named: Option<&UnitSlots>) -> Result<Geometry, VolumeError> {
        let unsupported = |reason: String| Err(VolumeError::Unsupported { reason });
        let page_bytes = flash.page_bytes();
        if page_bytes == 0 || !page_bytes.is_multiple_of(MAPPING_UNIT_BYTES) {
            return unsupported(format!(
                "its pages have {page_bytes} bytes, and must have a multiple of {MAPPING_UNIT_BYTES}"
            ));
        }
        let block_units = cast::saturating_u32(flash.payload_bytes() / MAPPING_UNIT_BYTES);
        if block_units > MOST_PAGES_PER_BLOCK {
            return unsupported(format!(
                "its superblocks have {block_units} mapping units of 4096 bytes, and may have at \
                 most {MOST_PAGES_PER_BLOCK}"
            ));
        }
        let page_units = cast::saturating_u32(page_bytes / MAPPING_UNIT_BYTES);
        let units = flash.units();
        let geometry = Geometry {
            unit_slots: SlotMap::of(&units, named)?,
            unit_blocks: units.first().map_or(0, |unit| flash.space(unit).total()),
            block_units,
            page_units,
            data_pages: data_pages(flash, block_units / page_units),
        };
        geometry.check_slots(geometry.unit_slots.count())?;
        Ok(geometry)
    }

    /// Fails if so many unit slots have more mapping units than there are numbers.
    pub fn check_slots(&self, unit_slots: u32) -> Result<(), VolumeError> {
        match has_numbers(unit_slots, self.unit_blocks, self.block_units) {
            true => Ok(()),
            false => {
                let reason = "a domain has at most 16 TiB; use more shards".to_owned();
                Err(VolumeError::Unsupported { reason })
            }
        }
    }

    /// The units.
    pub fn units(&self) -> UnitSet {
        self.unit_slots.units()
    }

    /// The number of units.
    pub fn unit_count(&self) -> u16 {
        cast::saturating_u16(self.units().len())
    }

    /// The numbers of the units in the domain.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        self.unit_slots.numbers()
    }

    /// The unit of the device, from its number in the domain.
    ///
    /// # Panics
    /// If the domain has no such unit.
    pub fn unit_id(&self, unit: u32) -> u16 {
        match self.unit_slots.unit(unit) {
            Some(id) => id,
            None => unreachable!("the domain has units {}, none with number {unit}", self.units()),
        }
    }

    /// All slots, also those of empty unit slots.
    pub fn slots(&self) -> u32 {
        self.blocks() * self.block_units
    }

    /// All blocks, also those of empty unit slots.
    pub fn blocks(&self) -> u32 {
        self.unit_slots.count() * self.unit_blocks
    }

    /// The blocks of a unit, from its number in the domain.
    pub fn blocks_of(&self, unit: u32) -> Range<u32> {
        unit * self.unit_blocks..(unit + 1) * self.unit_blocks
    }

    /// The block of a superblock.
    ///
    /// # Panics
    /// If its unit is not the domain's.
    pub fn block(&self, unit: u16, index: u32) -> u32 {
        match self.unit_slots.slot(unit) {
            Some(number) => self.blocks_of(number).start + index,
            None => unreachable!("the domain has units {}, not {unit}", self.units()),
        }
    }

    /// The number of the unit of a block in the domain.
    #[inline]
    pub fn unit_of(&self, block: u32) -> u32 {
        block / self.unit_blocks
    }

    /// The block of a slot.
    #[inline]
    pub fn block_of(&self, slot: u32) -> u32 {
        slot / self.block_units
    }

    /// The slots of a block.
    pub fn slots_of(&self, block: u32) -> Range<u32> {
        block * self.block_units..(block + 1) * self.block_units
    }

    /// The page of a slot in its superblock, and its mapping unit there.
    #[inline]
    pub fn page_of(&self, slot: u32) -> (u32, u32) {
        let inside = slot % self.block_units;
        (inside / self.page_units, inside % self.page_units)
    }

    /// Mapping units of a superblock for data and the map.
    pub fn data_units(&self) -> u32 {
        self.data_pages * self.page_units
    }

    /// Pages of a superblock.
    pub fn block_pages(&self) -> u32 {
        self.block_units / self.page_units
    }
}

/// Whether the mapping units of so many unit slots have numbers.
fn has_numbers(unit_slots: u32, unit_blocks: u32, block_units: u32) -> bool {
    let blocks = u64::from(unit_slots) * u64::from(unit_blocks);
    blocks.saturating_mul(block_units.into()) <= u64::from(u32::MAX - MARKS)
}

/// Whether a domain can have these unit slots, empty ones among them, for units of this kind: one
/// that has more is not mounted.
pub fn fits_domain(slots: &UnitSlots, unit: &UnitGeometry) -> bool {
    let block_units = softflash_ftl::payload_bytes(unit) / cast::wide(MAPPING_UNIT_BYTES);
    let block_units = u32::try_from(block_units).unwrap_or(u32::MAX);
    has_numbers(slots.count(), unit.blocks_per_plane, block_units)
}

/// The pages of a superblock that are complete and safe from power cuts once all of its pages are
/// programmed; all pages of a superblock that would lose half of them.
fn data_pages(flash: &Flash, pages: u32) -> u32 {
    let is_shown = |&end: &u32| flash.safe_after(end) + flash.row_pages() <= pages;
    (pages / 2..pages).rev().find(is_shown).unwrap_or(pages)
}
