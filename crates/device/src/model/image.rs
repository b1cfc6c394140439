//! Images of units. Restoring an image after the units were used simulates a device that lost
//! acknowledged writes.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

use super::device::ModelDevice;
use super::medium::Medium;
use crate::queue_pair::OpenError;
use softflash_base::UnitSet;
use softflash_nand::{BlockIndex, BlockRecord, Health, PageIndex};
use std::io;

/// The contents of some units of a model device at one time.
#[derive(Debug, Clone)]
pub struct UnitsImage {
    device_uuid: u128,
    units: UnitSet,
    page_bytes: u32,
    pages_per_block: u32,
    blocks: Vec<BlockImage>,
}

#[derive(Debug, Clone)]
struct BlockImage {
    record: BlockRecord,
    /// Pages from the first on; those that cannot be read are absent.
    pages: Vec<Option<Box<[u8]>>>,
}

impl UnitsImage {
    /// The units.
    pub fn units(&self) -> &UnitSet {
        &self.units
    }

    /// The same units with `change` applied to every page that can be read, always in the same
    /// order.
    pub fn changed(mut self, mut change: impl FnMut(&mut [u8])) -> UnitsImage {
        self.visit(|_, _, bytes| change(bytes));
        self
    }

    /// Visits every page that can be read, block by block: the number of its block among all of the
    /// units, its number there, and its bytes, which may be changed.
    pub fn visit(&mut self, mut visit: impl FnMut(usize, usize, &mut [u8])) {
        for (number, block) in self.blocks.iter_mut().enumerate() {
            for (page, bytes) in block.pages.iter_mut().enumerate() {
                bytes.iter_mut().for_each(|bytes| visit(number, page, bytes));
            }
        }
    }

    /// The same units with every page of every good block overwritten: programmed, with the bytes
    /// that `fill` writes.
    pub fn overwritten(mut self, mut fill: impl FnMut(&mut [u8])) -> UnitsImage {
        let (page_bytes, pages) = (self.page_bytes as usize, self.pages_per_block);
        for block in &mut self.blocks {
            if block.record.health == Health::FactoryBad {
                continue;
            }
            block.record.write_pointer = Some(pages);
            block.record.damaged.clear();
            block.pages.clear();
            block.pages.resize_with(pages as usize, || {
                let mut bytes = vec![0; page_bytes].into_boxed_slice();
                fill(&mut bytes);
                Some(bytes)
            });
        }
        self
    }
}

impl ModelDevice {
    /// Takes an image of units that no queue pair drives.
    ///
    /// # Errors
    /// [`OpenError`] if a queue pair drives one of them, or one does not exist, or the device's
    /// file cannot be read.
    pub fn image(&self, units: impl Into<UnitSet>) -> Result<UnitsImage, OpenError> {
        let claim = self.claim(&units.into())?;
        let blocks = self.blocks_of(claim.units());
        let blocks = blocks.map(|block| self.take(block)).collect::<io::Result<_>>();
        let blocks = blocks.map_err(|source| self.io_error(source))?;
        let device_uuid = self.shared().info.uuid;
        let geometry = &self.config().array.geometry;
        let (page_bytes, pages_per_block) = (geometry.page_bytes, geometry.pages_per_block);
        let units = claim.units().clone();
        Ok(UnitsImage { device_uuid, units, page_bytes, pages_per_block, blocks })
    }

    /// Restores units that no queue pair drives to the state of the image. Random draws continue
    /// from there as well: repeated operations meet the same faults again.
    ///
    /// # Errors
    /// [`OpenError`] if the image is another device's, a queue pair drives one of the units, or the
    /// device's file cannot be written.
    pub fn restore(&self, image: &UnitsImage) -> Result<(), OpenError> {
        if image.device_uuid != self.shared().info.uuid {
            return Err(OpenError::Geometry("the image is of another device".to_owned()));
        }
        let claim = self.claim(image.units())?;
        let mut blocks = self.blocks_of(claim.units()).zip(&image.blocks);
        blocks
            .try_for_each(|(block, image)| self.put_back(block, image))
            .and_then(|()| self.medium().sync())
            .map_err(|source| self.io_error(source))
    }

    /// The numbers of the units' blocks.
    fn blocks_of(&self, units: &UnitSet) -> impl Iterator<Item = BlockIndex> {
        let per_unit = self.config().array.geometry.blocks() / u32::from(self.shared().info.units);
        let blocks = move |unit| (0..per_unit).map(move |block| u32::from(unit) * per_unit + block);
        units.iter().flat_map(blocks).map(BlockIndex)
    }

    fn take(&self, block: BlockIndex) -> io::Result<BlockImage> {
        let record = self.medium().load_record(block)?;
        let geometry = &self.config().array.geometry;
        // The next page may be a stray page.
        let end = record.write_pointer.map_or(0, |next| (next + 1).min(geometry.pages_per_block));
        let page = |page| {
            let mut bytes = vec![0; geometry.page_bytes as usize].into_boxed_slice();
            let read = self.medium().read_page(self.page_index(block, page), &mut bytes);
            read.is_ok().then_some(bytes)
        };
        let pages = (0..end).map(page).collect();
        Ok(BlockImage { record, pages })
    }

    fn put_back(&self, block: BlockIndex, image: &BlockImage) -> io::Result<()> {
        self.medium().erase_block(block)?;
        for (page, bytes) in (0..).zip(&image.pages) {
            if let Some(bytes) = bytes {
                self.medium().write_page(self.page_index(block, page), bytes)?;
            }
        }
        self.medium().save_record(block, &image.record)
    }

    fn page_index(&self, block: BlockIndex, page: u32) -> PageIndex {
        self.config().array.geometry.page_index(block, page)
    }

    fn medium(&self) -> &dyn Medium {
        &*self.shared().medium
    }
}
