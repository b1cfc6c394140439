//! The write frontier of a page, where it does not depend on the page's number alone.

use super::Space;
use crate::pages::Pages;
use softflash_policy::placement::by_hint;

impl Space {
    /// Adds a page to be programmed in the write frontier that the placement chooses; returns the
    /// die. `None` if the page is held back, until a write frontier has room.
    pub(crate) fn place_write(
        &mut self,
        logical: u32,
        page: u32,
        pages: &mut Pages,
    ) -> Option<u32> {
        let chosen = self.frontier_for(logical, pages.hint(page));
        match (chosen, &mut self.placing) {
            (Some(frontier), Some(placing)) => placing.waits(self.shape.die_of(frontier)),
            (None, Some(placing)) => placing.hold_back(page, pages),
            _ => {}
        }
        Some(self.queue_write_in(chosen?, page, pages))
    }

    /// The write frontier of a page, which takes room there; `None` if none has room.
    pub(crate) fn frontier_for(&mut self, logical: u32, hint: u32) -> Option<u32> {
        let home = self.shape.frontier_of(logical);
        let of_map = logical >= self.shape.logical_pages();
        if let Some(placing) = &mut self.placing
            && !of_map
        {
            return placing.choose();
        }
        let stream = match of_map {
            true => self.shape.streams() - 1,
            false => by_hint::class(hint, self.classes),
        };
        Some(home + stream)
    }

    /// The next page that was held back, if there is room for it now.
    pub(crate) fn take_held_back(&mut self, pages: &Pages) -> Option<u32> {
        self.placing.as_mut()?.take_held_back(pages)
    }

    /// Whether a logical page always has the same write frontier, the only one of its group, the
    /// map is in memory, and the schedule needs no ranks: most drives, for which this is the only
    /// question.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The die of a page that waits to be read from this block.
    pub(crate) fn wait_to_read(&mut self, block: u32) -> u32 {
        let group = self.shape.group_of_block(block);
        let die = self.shape.die_of(self.shape.frontiers_in(group).start);
        if let Some(placing) = &mut self.placing {
            placing.waits(die);
        }
        die
    }

    /// A page that waited for a die has been served.
    #[inline(never)]
    pub(crate) fn served(&mut self, die: u32) {
        if let Some(placing) = &mut self.placing {
            placing.served(die);
        }
    }

    /// A page of a block has become invalid: it is written elsewhere or forgotten.
    pub(super) fn page_invalidated(&mut self, block: u32) {
        if self.placing.is_none() || self.is_block_of_map(block) {
            return;
        }
        if let Some(placing) = &mut self.placing {
            placing.leaves(self.shape.group_of_block(block));
        }
    }

    /// Counts the pages of all groups anew. No page of the map may have been written.
    pub(crate) fn recount(&mut self) {
        let Some(placing) = &mut self.placing else { return };
        for group in 0..self.shape.groups() {
            let blocks = self.shape.blocks_of(group);
            placing.set_occupied(group, blocks.map(|block| self.blocks.valid_in(block)).sum());
        }
    }
}
