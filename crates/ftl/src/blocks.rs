//! Every block of a unit: which superblock it serves, how worn it is, whether it is bad.

use crate::policy::bad_block;

/// In a seat without a block.
const NO_BLOCK: u32 = u32::MAX;

/// What a block is used for. Every block is in exactly one state, so none is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockUse {
    /// Good, and free to stand in for a bad block of its plane.
    Spare,
    /// Part of the superblock.
    Serves(u32),
    /// A good lead whose superblock is out of service for want of other blocks.
    IdleLead,
    Bad,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    state: BlockUse,
    erase_count: u32,
    /// The erase count comes from a header or from this mount.
    wear_known: bool,
}

/// The blocks of a unit by seat and number, and the superblocks that they make up.
pub(crate) struct BlockTable {
    seats: u32,
    per_seat: u32,
    blocks: Vec<Block>,
    /// The block in every seat of every superblock.
    composition: Vec<u32>,
    highest_erase_count: u32,
    /// The greatest erase count that a header on the flash tells of.
    recorded_erase_count: u32,
    /// No block of this number or above was ever erased.
    unused_from: u32,
}

impl BlockTable {
    /// All blocks good, spare and of unknown wear.
    pub fn new(seats: u32, per_seat: u32) -> BlockTable {
        let block = Block { state: BlockUse::Spare, erase_count: 0, wear_known: false };
        let count = seats as usize * per_seat as usize;
        BlockTable {
            seats,
            per_seat,
            blocks: vec![block; count],
            composition: vec![NO_BLOCK; count],
            highest_erase_count: 0,
            recorded_erase_count: 0,
            unused_from: 0,
        }
    }

    fn at(&self, seat: u32, block: u32) -> usize {
        (seat * self.per_seat + block) as usize
    }

    /// What a block is used for.
    pub fn state(&self, seat: u32, block: u32) -> BlockUse {
        self.blocks[self.at(seat, block)].state
    }

    /// The block in a seat of a superblock.
    pub fn block(&self, index: u32, seat: u32) -> Option<u32> {
        let block = self.composition[(index * self.seats + seat) as usize];
        (block != NO_BLOCK).then_some(block)
    }

    /// The blocks of a superblock by seat, where a seat is empty a number outside the unit.
    pub fn blocks_of(&self, index: u32) -> &[u32] {
        let start = (index * self.seats) as usize;
        &self.composition[start..start + self.seats as usize]
    }

    /// Puts a spare block into a seat.
    pub fn assign(&mut self, index: u32, seat: u32, block: u32) {
        let at = self.at(seat, block);
        assert!(
            matches!(self.blocks[at].state, BlockUse::Spare | BlockUse::IdleLead),
            "block {block} of seat {seat} serves superblock {index} while {:?}",
            self.blocks[at].state
        );
        self.blocks[at].state = BlockUse::Serves(index);
        self.composition[(index * self.seats + seat) as usize] = block;
    }

    /// Records that a superblock found on flash has a block which may be bad or taken by a later one:
    /// good enough to read from.
    pub fn assign_for_reading(&mut self, index: u32, seat: u32, block: u32) {
        if self.state(seat, block) == BlockUse::Spare {
            self.assign(index, seat, block);
        } else {
            self.composition[(index * self.seats + seat) as usize] = block;
        }
    }

    /// Marks a block bad. A superblock keeps it until [`vacate_lost`](Self::vacate_lost), for its
    /// earlier pages can still be read.
    pub fn mark_bad(&mut self, seat: u32, block: u32) {
        let at = self.at(seat, block);
        self.blocks[at].state = BlockUse::Bad;
    }

    /// Empties the seats of a superblock whose blocks are bad or serve another.
    pub fn vacate_lost(&mut self, index: u32) {
        for seat in 0..self.seats {
            if let Some(block) = self.block(index, seat)
                && self.state(seat, block) != BlockUse::Serves(index)
            {
                self.composition[(index * self.seats + seat) as usize] = NO_BLOCK;
            }
        }
    }

    /// Fills the empty seats of a superblock: with the block of its own index where that is free,
    /// otherwise with a spare. False, and nothing changed, where a seat stays empty.
    pub fn complete(&mut self, index: u32) -> bool {
        let fills: Option<Vec<(u32, u32)>> = (0..self.seats)
            .filter(|seat| self.block(index, *seat).is_none())
            .map(|seat| self.stand_in(index, seat).map(|block| (seat, block)))
            .collect();
        let Some(fills) = fills else { return false };
        for (seat, block) in fills {
            self.assign(index, seat, block);
        }
        true
    }

    /// The block that would fill an empty seat.
    pub fn stand_in(&self, index: u32, seat: u32) -> Option<u32> {
        match (self.state(seat, index), seat) {
            (BlockUse::Spare, _) | (BlockUse::IdleLead, 0) => Some(index),
            (_, 0) => None,
            _ => bad_block::choose_spare(self.spares(seat), |block| self.erase_count(seat, block)),
        }
    }

    fn spares(&self, seat: u32) -> impl Iterator<Item = u32> {
        (0..self.per_seat).filter(move |block| self.state(seat, *block) == BlockUse::Spare)
    }

    /// Spares of a seat. A spare lead is not one: it leads its own superblock or none.
    pub fn count_spares(&self, seat: u32) -> usize {
        if seat == 0 { 0 } else { self.spares(seat).count() }
    }

    /// Takes a superblock apart: its good blocks become spares, its lead idles.
    pub fn dissolve(&mut self, index: u32) {
        for seat in 0..self.seats {
            if let Some(block) = self.block(index, seat) {
                let at = self.at(seat, block);
                if self.blocks[at].state == BlockUse::Serves(index) {
                    self.blocks[at].state =
                        if seat == 0 { BlockUse::IdleLead } else { BlockUse::Spare };
                }
                self.composition[(index * self.seats + seat) as usize] = NO_BLOCK;
            }
        }
    }

    /// Erases of a block so far.
    pub fn erase_count(&self, seat: u32, block: u32) -> u32 {
        self.blocks[self.at(seat, block)].erase_count
    }

    /// Counts an erase.
    pub fn erased(&mut self, seat: u32, block: u32) {
        let at = self.at(seat, block);
        let entry = &mut self.blocks[at];
        entry.erase_count += 1;
        entry.wear_known = true;
        self.highest_erase_count = self.highest_erase_count.max(entry.erase_count);
        self.unused_from = self.unused_from.max(block + 1);
    }

    /// The erase header of a superblock is on the flash.
    pub fn erases_recorded(&mut self, index: u32) {
        self.recorded_erase_count = self.recorded_erase_count.max(self.wear(index).0);
    }

    /// Takes an erase count from a header, if it is the highest told so far.
    pub fn recover_erase_count(&mut self, seat: u32, block: u32, erase_count: u32) {
        let at = self.at(seat, block);
        let entry = &mut self.blocks[at];
        entry.erase_count = entry.erase_count.max(erase_count);
        entry.wear_known = true;
        self.highest_erase_count = self.highest_erase_count.max(entry.erase_count);
        self.unused_from = self.unused_from.max(block + 1);
    }

    /// Gives the highest erase count to all blocks that no header told of, but for those that were never
    /// used. Both marks are the greatest that any header named.
    pub fn assume_unknown_wear(&mut self, highest_erase_count: u32, unused_from: u32) {
        self.highest_erase_count = self.highest_erase_count.max(highest_erase_count);
        self.recorded_erase_count = self.highest_erase_count;
        self.unused_from = self.unused_from.max(unused_from);
        for (at, block) in (0_u32..).zip(&mut self.blocks) {
            if at % self.per_seat >= self.unused_from {
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

    /// The greatest erase count that any block of the unit was known to have.
    pub fn highest_erase_count(&self) -> u32 {
        self.highest_erase_count
    }

    /// Erases of the most worn block of a superblock, and whether any of its counts is assumed.
    pub fn wear(&self, index: u32) -> (u32, bool) {
        let blocks = (0..self.seats).filter_map(|seat| {
            let block = self.block(index, seat)?;
            Some(&self.blocks[self.at(seat, block)])
        });
        blocks.fold((0, false), |(wear, unknown), block| {
            (wear.max(block.erase_count), unknown | !block.wear_known)
        })
    }

    /// The least, mean and greatest erase count of the good blocks, and the number of bad ones. What no header tells of
    /// yet counts for the choice of blocks, and not here: a power cut would take it back.
    pub fn survey(&self) -> (u32, f64, u32, u32) {
        let good = || self.blocks.iter().filter(|block| block.state != BlockUse::Bad);
        let count = good().count();
        let counted = |block: &Block| block.erase_count.min(self.recorded_erase_count);
        let min = good().map(counted).min().unwrap_or(0);
        let max = good().map(counted).max().unwrap_or(0);
        let sum: u64 = good().map(|block| u64::from(counted(block))).sum();
        let mean = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        (min, mean, max, (self.blocks.len() - count) as u32)
    }

    /// Counts every block anew.
    ///
    /// # Panics
    /// If a block serves a superblock that does not have it: it would be lost, or used twice.
    pub fn check(&self) {
        for seat in 0..self.seats {
            for block in 0..self.per_seat {
                match self.state(seat, block) {
                    BlockUse::Serves(index) => assert_eq!(
                        self.block(index, seat),
                        Some(block),
                        "block {block} of seat {seat} serves superblock {index}, which has another"
                    ),
                    BlockUse::IdleLead => assert_eq!(seat, 0, "block {block} leads nothing"),
                    BlockUse::Spare => {
                        assert_ne!(seat, 0, "lead {block} stands in for no other and is lost")
                    }
                    BlockUse::Bad => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
