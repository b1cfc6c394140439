//! The contents of a drive's extents.

use softflash_base::UnitId;
use softflash_device::{DeviceError, Target, UnitGeometry};
use softflash_nand::PackedPages;
use std::collections::BTreeSet;

/// The bytes of all extents, packed, and the extents that are marked bad.
pub(super) struct Contents {
    per_unit: u32,
    page_bytes: usize,
    extents: Vec<Extent>,
    bad: BTreeSet<(u16, u32)>,
}

/// An extent that is written front to back.
#[derive(Clone, Default)]
struct Extent {
    pages: PackedPages,
    written: u32,
}

impl Contents {
    /// The contents of empty units.
    pub(super) fn new(geometry: &UnitGeometry, units: u16) -> Contents {
        let extents = geometry.blocks_per_plane as usize * usize::from(units);
        Contents {
            per_unit: geometry.blocks_per_plane,
            page_bytes: geometry.page_bytes as usize,
            extents: vec![Extent::default(); extents],
            bad: BTreeSet::new(),
        }
    }

    fn extent(&mut self, target: &Target) -> &mut Extent {
        let place = u32::from(target.unit.0) * self.per_unit + target.blocks[0];
        &mut self.extents[place as usize]
    }

    /// Appends pages to an extent.
    pub(super) fn program(&mut self, target: &Target, data: &[u8]) -> Result<(), DeviceError> {
        self.check_good(target)?;
        let page_bytes = self.page_bytes;
        let block = target.blocks[0];
        let extent = self.extent(target);
        if target.page != extent.written {
            return Err(DeviceError::RuleBroken(format!(
                "page {} of block {block} is programmed where page {} is next",
                target.page, extent.written
            )));
        }
        for page in data.chunks_exact(page_bytes) {
            extent.pages.push(extent.written as usize, page);
            extent.written += 1;
        }
        Ok(())
    }

    /// Reads pages.
    pub(super) fn read(&mut self, target: &Target, into: &mut [u8]) -> Result<(), DeviceError> {
        let page_bytes = self.page_bytes;
        let extent = self.extent(target);
        for (page, bytes) in (target.page..).zip(into.chunks_exact_mut(page_bytes)) {
            if !extent.pages.read(page as usize, bytes) {
                return Err(DeviceError::Erased { page });
            }
        }
        Ok(())
    }

    /// Discards the contents of an extent.
    pub(super) fn erase(&mut self, target: &Target) -> Result<(), DeviceError> {
        self.check_good(target)?;
        *self.extent(target) = Extent::default();
        Ok(())
    }

    pub(super) fn mark_bad(&mut self, target: &Target) {
        self.bad.insert((target.unit.0, target.blocks[0]));
    }

    pub(super) fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        let of_unit = self.bad.range((unit.0, 0)..=(unit.0, u32::MAX));
        of_unit.map(|(_, block)| (0, 0, *block)).collect()
    }

    /// Bad extents can be read, to save their data, but not changed.
    fn check_good(&self, target: &Target) -> Result<(), DeviceError> {
        let block = target.blocks[0];
        match self.bad.contains(&(target.unit.0, block)) {
            true => Err(DeviceError::BadBlock { block }),
            false => Ok(()),
        }
    }
}
