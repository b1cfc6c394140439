//! Read reclaim: blocks that have been read often are collected, whether space is needed or not.

use super::Space;
use crate::mapping::Mapping;
use softflash_mapping::NONE;

impl<M: Mapping> Space<M> {
    /// A block has been read.
    #[inline(always)]
    pub(crate) fn count_read(&mut self, block: u32) {
        if let Some(disturb) = self.mapping.read_disturb_mut()
            && !self.shape.is_slc_block(block)
        {
            let group = self.shape.group_of_block(block);
            if disturb.count(group, block) {
                self.reclaim_if_due(group);
            }
        }
    }

    /// Begins to collect the first block of a group that is due, unless the group collects or has
    /// no free block for its pages: then one that is due is the next victim but one.
    #[inline(never)]
    pub(super) fn reclaim_if_due(&mut self, group: u32) {
        let kept = self.kept_blocks();
        if self.collector_in(group) != NONE || self.blocks.free_in(group) <= kept {
            return;
        }
        let Space { mapping, blocks, .. } = self;
        let Some(victim) = mapping
            .read_disturb_mut()
            .and_then(|disturb| disturb.take_due(group, |block| blocks.is_closed(block)))
        else {
            return;
        };
        let frontier = self.shape.frontiers_in(group).start + self.mapping.stream_of(victim);
        let left = match self.frontier(frontier).open_block() {
            NONE => 0,
            _ => self.shape.data_pages_from(frontier, self.frontier(frontier).next()),
        };
        let of_block = self.shape.data_pages_from(frontier, 0);
        let free = left + (self.blocks.free_in(group) - kept) * of_block;
        self.reclaim(frontier, victim, free);
        if self.frontier(frontier).open_block() == NONE {
            self.open(frontier, group);
        }
    }

    /// The block that is due in place of a victim, to be collected into a block with so many free
    /// pages; false if there is none.
    pub(super) fn reclaims_in_turn(&mut self, group: u32, free: u32) -> bool {
        let Space { mapping, blocks, .. } = self;
        let Some(victim) = mapping
            .read_disturb_mut()
            .and_then(|disturb| disturb.take_due_in_turn(group, |block| blocks.is_closed(block)))
        else {
            return false;
        };
        let frontier = self.shape.frontiers_in(group).start + self.mapping.stream_of(victim);
        self.reclaim(frontier, victim, free);
        true
    }

    /// Begins to collect a block that is due, while its group has so many free pages.
    fn reclaim(&mut self, frontier: u32, victim: u32, free: u32) {
        let room = free.saturating_sub(self.blocks.valid_in(victim));
        self.blocks.reopen(victim);
        self.programs.read_reclaims += 1;
        self.collect_into(frontier, victim, room);
    }
}
