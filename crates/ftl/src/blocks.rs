//! The blocks of a unit: their use, their wear, and the superblocks that they make up.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use crate::policy::bad_block;
use softflash_base::cast;

/// Marks a stripe column without a block.
const NO_BLOCK: u32 = u32::MAX;

/// The use of a block. Every block has exactly one, so none is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockUse {
    /// Good, and free to replace a bad block of its plane.
    Spare,
    /// Part of the superblock of this index.
    InSuperblock(u32),
    /// A good lead block whose superblock is out of service because other blocks are missing.
    IdleLead,
    Bad,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    state: BlockUse,
    erase_count: u32,
    /// The erase count is from a header, or from an erase since this mount.
    wear_known: bool,
}

/// The blocks of a unit by stripe column and number, and the composition of its superblocks.
pub(crate) struct BlockTable {
    columns: u32,
    blocks_per_column: u32,
    blocks: Vec<Block>,
    /// The block in each stripe column of each superblock.
    composition: Vec<u32>,
    highest_erase_count: u32,
    /// The greatest erase count in a header on the flash.
    recorded_erase_count: u32,
    /// No block of this number or above was ever erased.
    unused_from: u32,
}

impl BlockTable {
    /// A table in which all blocks are good, spare and of unknown wear.
    pub fn new(columns: u32, blocks_per_column: u32) -> BlockTable {
        let block = Block { state: BlockUse::Spare, erase_count: 0, wear_known: false };
        let count = cast::index(columns) * cast::index(blocks_per_column);
        BlockTable {
            columns,
            blocks_per_column,
            blocks: vec![block; count],
            composition: vec![NO_BLOCK; count],
            highest_erase_count: 0,
            recorded_erase_count: 0,
            unused_from: 0,
        }
    }

    fn at(&self, column: u32, block: u32) -> usize {
        cast::index(column * self.blocks_per_column + block)
    }

    fn cell(&self, index: u32, column: u32) -> usize {
        cast::index(index * self.columns + column)
    }

    /// The use of a block.
    pub fn state(&self, column: u32, block: u32) -> BlockUse {
        self.blocks[self.at(column, block)].state
    }

    /// The block in a stripe column of a superblock.
    pub fn block(&self, index: u32, column: u32) -> Option<u32> {
        let block = self.composition[self.cell(index, column)];
        (block != NO_BLOCK).then_some(block)
    }

    fn set_block(&mut self, index: u32, column: u32, block: u32) {
        let cell = self.cell(index, column);
        self.composition[cell] = block;
    }

    /// The blocks of a superblock by stripe column; [`NO_BLOCK`] in an empty column.
    pub fn blocks_of(&self, index: u32) -> &[u32] {
        let start = self.cell(index, 0);
        &self.composition[start..start + cast::index(self.columns)]
    }

    /// Puts a spare block into a stripe column of a superblock.
    pub fn assign(&mut self, index: u32, column: u32, block: u32) {
        let at = self.at(column, block);
        assert!(
            matches!(self.blocks[at].state, BlockUse::Spare | BlockUse::IdleLead),
            "superblock {index} takes block {block} of column {column}, which is {:?}",
            self.blocks[at].state
        );
        self.blocks[at].state = BlockUse::InSuperblock(index);
        self.set_block(index, column, block);
    }

    /// Records the block of a superblock found by the mount. The block may be bad, or a later
    /// superblock may have taken it; it is used for reading only.
    pub fn assign_for_reading(&mut self, index: u32, column: u32, block: u32) {
        if self.state(column, block) == BlockUse::Spare {
            self.assign(index, column, block);
        } else {
            self.set_block(index, column, block);
        }
    }

    /// Marks a block bad. Its superblock keeps it until [`vacate_lost`](Self::vacate_lost), because
    /// its earlier pages can still be read.
    pub fn mark_bad(&mut self, column: u32, block: u32) {
        let at = self.at(column, block);
        self.blocks[at].state = BlockUse::Bad;
    }

    /// Empties the stripe columns of a superblock whose blocks are bad or belong to another
    /// superblock.
    pub fn vacate_lost(&mut self, index: u32) {
        for column in 0..self.columns {
            if let Some(block) = self.block(index, column)
                && self.state(column, block) != BlockUse::InSuperblock(index)
            {
                self.set_block(index, column, NO_BLOCK);
            }
        }
    }

    /// Fills the empty stripe columns of a superblock: with the block of its own index if that is
    /// free, otherwise with a spare. Returns false and changes nothing if there is no block for a
    /// column.
    pub fn complete(&mut self, index: u32) -> bool {
        let fills: Option<Vec<(u32, u32)>> = (0..self.columns)
            .filter(|column| self.block(index, *column).is_none())
            .map(|column| self.replacement(index, column).map(|block| (column, block)))
            .collect();
        let Some(fills) = fills else { return false };
        for (column, block) in fills {
            self.assign(index, column, block);
        }
        true
    }

    /// The block to fill an empty stripe column with.
    pub fn replacement(&self, index: u32, column: u32) -> Option<u32> {
        match (self.state(column, index), column) {
            (BlockUse::Spare, _) | (BlockUse::IdleLead, 0) => Some(index),
            (_, 0) => None,
            _ => bad_block::choose_spare(self.spares(column), |block| {
                self.erase_count(column, block)
            }),
        }
    }

    fn spares(&self, column: u32) -> impl Iterator<Item = u32> {
        (0..self.blocks_per_column)
            .filter(move |block| self.state(column, *block) == BlockUse::Spare)
    }

    /// The good blocks that no superblock has, with their columns.
    pub fn without_superblock(&self) -> Vec<(u32, u32)> {
        let columns = 0..self.columns;
        let all =
            columns.flat_map(|column| (0..self.blocks_per_column).map(move |it| (column, it)));
        let is_idle = |use_: BlockUse| matches!(use_, BlockUse::Spare | BlockUse::IdleLead);
        all.filter(|&(column, block)| is_idle(self.state(column, block))).collect()
    }

    /// Number of spares of a stripe column. Column 0 has none: a lead block serves only its own
    /// superblock.
    pub fn count_spares(&self, column: u32) -> usize {
        if column == 0 { 0 } else { self.spares(column).count() }
    }

    /// Dissolves a superblock: its good blocks become spares, its lead block idles.
    pub fn dissolve(&mut self, index: u32) {
        for column in 0..self.columns {
            if let Some(block) = self.block(index, column) {
                let at = self.at(column, block);
                if self.blocks[at].state == BlockUse::InSuperblock(index) {
                    self.blocks[at].state =
                        if column == 0 { BlockUse::IdleLead } else { BlockUse::Spare };
                }
                self.set_block(index, column, NO_BLOCK);
            }
        }
    }

    /// Erase count of a block.
    pub fn erase_count(&self, column: u32, block: u32) -> u32 {
        self.blocks[self.at(column, block)].erase_count
    }

    /// Counts an erase.
    pub fn erased(&mut self, column: u32, block: u32) {
        let at = self.at(column, block);
        let entry = &mut self.blocks[at];
        entry.erase_count += 1;
        entry.wear_known = true;
        self.highest_erase_count = self.highest_erase_count.max(entry.erase_count);
        self.unused_from = self.unused_from.max(block + 1);
    }

    /// Records that the erase header of a superblock is on the flash.
    pub fn erases_recorded(&mut self, index: u32) {
        self.recorded_erase_count = self.recorded_erase_count.max(self.wear(index).0);
    }

    /// Sets the erase count of a block from a header, unless another header has a higher count.
    pub fn recover_erase_count(&mut self, column: u32, block: u32, erase_count: u32) {
        let at = self.at(column, block);
        let entry = &mut self.blocks[at];
        entry.erase_count = entry.erase_count.max(erase_count);
        entry.wear_known = true;
        self.highest_erase_count = self.highest_erase_count.max(entry.erase_count);
        self.unused_from = self.unused_from.max(block + 1);
    }

    /// Assumes the highest erase count for all blocks that no header names, except for blocks that
    /// were never used. Both arguments are the greatest value in any header.
    pub fn assume_unknown_wear(&mut self, highest_erase_count: u32, unused_from: u32) {
        self.highest_erase_count = self.highest_erase_count.max(highest_erase_count);
        self.recorded_erase_count = self.highest_erase_count;
        self.unused_from = self.unused_from.max(unused_from);
        for (at, block) in (0_u32..).zip(&mut self.blocks) {
            if at % self.blocks_per_column >= self.unused_from {
                block.wear_known = true;
            } else if !block.wear_known {
                block.erase_count = self.highest_erase_count;
            }
        }
    }

    /// No block of this number or above was ever erased.
    pub fn unused_from(&self) -> u32 {
        self.unused_from
    }

    /// The greatest erase count of a block of the unit.
    pub fn highest_erase_count(&self) -> u32 {
        self.highest_erase_count
    }

    /// Erase count of the most worn block of a superblock, and whether any of its counts is
    /// assumed.
    pub fn wear(&self, index: u32) -> (u32, bool) {
        let blocks = (0..self.columns).filter_map(|column| {
            let block = self.block(index, column)?;
            Some(&self.blocks[self.at(column, block)])
        });
        blocks.fold((0, false), |(wear, unknown), block| {
            (wear.max(block.erase_count), unknown | !block.wear_known)
        })
    }

    /// The least, mean and greatest erase count of the good blocks, and the number of bad blocks.
    /// Erases that no header records yet are left out, because a mount after a power cut would not
    /// find them; the choice of blocks counts them.
    pub fn survey(&self) -> (u32, f64, u32, u32) {
        let (mut min, mut max, mut sum) = (u32::MAX, 0, 0.0);
        let (mut good, mut bad) = (0_u32, 0);
        for block in &self.blocks {
            if block.state == BlockUse::Bad {
                bad += 1;
                continue;
            }
            let count = block.erase_count.min(self.recorded_erase_count);
            (min, max) = (count.min(min), count.max(max));
            // A sum of integers below 2^53 is exact.
            sum += f64::from(count);
            good += 1;
        }
        if good == 0 { (0, 0.0, 0, bad) } else { (min, sum / f64::from(good), max, bad) }
    }

    /// Checks that blocks and superblocks refer to each other.
    ///
    /// # Panics
    /// If a block belongs to a superblock that does not list it: it is lost, or used twice.
    pub fn check(&self) {
        for column in 0..self.columns {
            for block in 0..self.blocks_per_column {
                match self.state(column, block) {
                    BlockUse::InSuperblock(index) => assert_eq!(
                        self.block(index, column),
                        Some(block),
                        "superblock {index} has another block than {block} in column {column}"
                    ),
                    BlockUse::IdleLead => assert_eq!(
                        column, 0,
                        "block {block} of column {column} idles and is no lead block"
                    ),
                    BlockUse::Spare => {
                        assert_ne!(column, 0, "lead block {block} cannot be a spare and is lost")
                    }
                    BlockUse::Bad => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
