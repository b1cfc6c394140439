//! The write frontier of a page, where it does not depend on the page's number alone.

use super::Space;
use crate::mapping::Mapping;
use crate::pages::Pages;
use softflash_mapping::NONE;

impl<M: Mapping> Space<M> {
    /// Adds a page to be programmed in the write frontier that the placement chooses; returns the
    /// die. `None` if the page is held back, until a write frontier has room.
    #[inline(always)]
    pub(crate) fn place_write(
        &mut self,
        logical: u32,
        page: u32,
        pages: &mut Pages,
    ) -> Option<u32> {
        let cached = self.cache_stream().filter(|_| logical < self.shape.logical_pages());
        let stream = match cached {
            Some(stream) => stream,
            None => self.stream_for(logical, pages.hint(page)),
        };
        let chosen = self.frontier_in(logical, stream);
        if let Some(frontier) = chosen {
            self.take_cache_room(frontier, 1);
        }
        match (chosen, self.mapping.placing_mut()) {
            (Some(frontier), Some(placing)) => placing.waits(self.shape.die_of(frontier)),
            (None, Some(placing)) => placing.hold_back(page, pages),
            _ => {}
        }
        Some(self.queue_write_in(chosen?, page, pages))
    }

    /// The write frontier of a page that goes past the SLC cache, which takes room there; `None` if
    /// none has room.
    #[inline(always)]
    pub(crate) fn frontier_for(&mut self, logical: u32, hint: u32) -> Option<u32> {
        let stream = self.stream_for(logical, hint);
        self.frontier_in(logical, stream)
    }

    /// The stream of a page that goes past the SLC cache.
    #[inline(always)]
    pub(super) fn stream_for(&mut self, logical: u32, hint: u32) -> u32 {
        if logical >= self.shape.logical_pages() {
            return self.mapping.streams() - 1;
        }
        let Space { shape, map, mapping, .. } = self;
        match mapping.lifetimes_mut() {
            None => mapping.stream_of_hint(hint),
            Some(lifetimes) => {
                let old = map.physical_of(logical);
                let block = if map.is_page(old) { shape.block_of(old) } else { NONE };
                lifetimes.class_of_write(logical, hint, block)
            }
        }
    }

    /// The stream of the pages of a block that is collected.
    pub(super) fn stream_of_moved(&mut self, victim: u32) -> u32 {
        let (stream, of_map) = (self.mapping.stream_of(victim), self.is_block_of_map(victim));
        let left = self.lifetime_left(victim);
        match self.mapping.lifetimes_mut() {
            Some(lifetimes) if !of_map => lifetimes.class_of_moved(stream, victim, left),
            _ => stream,
        }
    }

    /// Pages that the host will write before the valid pages of a block are invalid, in the mean;
    /// `None` unless the host foretells that.
    fn lifetime_left(&self, block: u32) -> Option<u32> {
        let lifetimes = self.mapping.lifetimes().filter(|lifetimes| lifetimes.are_foretold())?;
        let (first, end) = (self.shape.first_page_of(block), self.shape.first_page_of(block + 1));
        let mut at = first;
        lifetimes.left_to(std::iter::from_fn(|| {
            let page = self.map.next_valid(at, end)?;
            at = page + 1;
            Some(self.map.logical_of(page))
        }))
    }

    /// As [`frontier_for`](Space::frontier_for), of a stream.
    #[inline(always)]
    fn frontier_in(&mut self, logical: u32, stream: u32) -> Option<u32> {
        let home = self.shape.frontier_of(logical);
        let of_map = logical >= self.shape.logical_pages();
        let Space { shape, frontiers, mapping, .. } = self;
        if let Some(placing) = mapping.placing_mut()
            && !of_map
        {
            return placing.choose(stream, |frontier| match shape.is_packed() {
                true => frontiers[frontier as usize].to_row_end(shape),
                false => 1,
            });
        }
        Some(home + stream)
    }

    /// Whether the pages that wait for a write frontier are programmed now: they fill a row, or all
    /// that collection leaves of it, or they wait for no others.
    #[inline(always)]
    pub(crate) fn fills_row(&self, frontier: u32, most: u32) -> bool {
        if !M::GATHERS || !self.shape.is_packed() || self.pads || self.is_of_map(frontier) {
            return true;
        }
        let (state, shape) = (self.frontier(frontier), &self.shape);
        let row_ends = shape.row_end(shape.row_of(state.next()));
        let lacks = shape.data_pages_from(frontier, state.next())
            - shape.data_pages_from(frontier, row_ends);
        state.waiting() >= lacks.min(most)
    }

    /// Whether what waits is programmed at once.
    pub(crate) fn pads(&self) -> bool {
        self.pads
    }

    /// From now on, what waits is programmed at once, or waits for others.
    pub(crate) fn set_pads(&mut self, pads: bool) {
        self.pads = pads;
    }

    /// The pages up to this one of a frontier's row are all that is programmed of a flash page: the
    /// rest stays unused.
    pub(crate) fn pad(&mut self, frontier: u32, page: u32) -> u32 {
        let padded = (page + self.shape.per_flash_page() - 1) & !(self.shape.per_flash_page() - 1);
        assert!(padded <= self.shape.pages_per_block(), "page {page} is padded to {padded}");
        if padded > page {
            let unused = padded - page;
            self.programs.for_padding += u64::from(unused);
            self.programs.partial += 1;
            self.frontiers[frontier as usize].wrote_elsewhere(unused);
            self.keep_up(frontier, unused);
            self.take_cache_room(frontier, unused);
            let stream = frontier - self.shape.frontiers_in(self.shape.group_of(frontier)).start;
            if let Some(placing) = self.mapping.placing_mut() {
                placing.row_begins(stream, frontier);
            }
        }
        padded
    }

    /// The next page that was held back, if there is room for it now.
    #[inline(always)]
    pub(crate) fn take_held_back(&mut self, pages: &Pages) -> Option<u32> {
        self.mapping.placing_mut()?.take_held_back(pages)
    }

    /// The die that has the data of a logical page; `None` if there are none.
    pub(crate) fn die_of(&self, logical: u32) -> Option<u32> {
        let page = self.map.physical_of(logical);
        let block = self.map.is_page(page).then(|| self.shape.block_of(page))?;
        Some(self.mapping.die_of(&self.shape, logical, block))
    }

    /// The die of a logical page that waits to be read from this block.
    #[inline(always)]
    pub(crate) fn wait_to_read(&mut self, logical: u32, block: u32) -> u32 {
        let die = self.mapping.die_of(&self.shape, logical, block);
        if let Some(placing) = self.mapping.placing_mut() {
            placing.waits(die);
        }
        die
    }

    /// A page that waited for a die has been served.
    #[inline(always)]
    pub(crate) fn served(&mut self, die: u32) {
        if let Some(placing) = self.mapping.placing_mut() {
            placing.served(die);
        }
    }

    /// A page of a block has become invalid: it is written elsewhere or forgotten.
    #[inline(always)]
    pub(super) fn page_invalidated(&mut self, block: u32) {
        if self.is_block_of_map(block) {
            return;
        }
        if let Some(placing) = self.mapping.placing_mut() {
            placing.leaves(self.shape.group_of_block(block));
        }
    }

    /// Counts the pages of all groups anew. No page of the map may have been written.
    pub(crate) fn recount(&mut self) {
        let Some(placing) = self.mapping.placing_mut() else { return };
        for group in 0..self.shape.groups() {
            let blocks = self.shape.blocks_of(group);
            placing.set_occupied(group, blocks.map(|block| self.blocks.valid_in(block)).sum());
        }
    }
}
