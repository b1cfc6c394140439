//! The space of a drive with bands: opens and closes them, and collects.

use super::Space;
use crate::bands::{NextMove, OpenBand, Victim};
use crate::mapping::Mapping;
use crate::pages::Pages;
use softflash_mapping::blocks::MOST_PAGES_PER_BLOCK;
use softflash_mapping::{Blocks, NONE};

/// A step of the collection of bands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BandStep {
    /// The read of this physical page of a logical one.
    Read { logical: u32, physical: u32 },
    /// This die has a block to be erased.
    Erase { die: u32 },
}

impl<M: Mapping> Space<M> {
    /// Adds a page of the host to be programmed in the band of its stream; returns the die. `None`
    /// if the page is held back, until a band can be opened.
    pub(crate) fn write_to_band(
        &mut self,
        logical: u32,
        page: u32,
        pages: &mut Pages,
    ) -> Option<u32> {
        let stream = self.band_stream_for(logical, pages.hint(page), pages.is_wide(page));
        let waits_behind = self.mapping.bands().is_some_and(|bands| !bands.held_back.is_empty());
        let frontier = if waits_behind { None } else { self.next_in_band(stream) };
        let Some(frontier) = frontier else {
            pages.set_stream(page, stream);
            if let Some(bands) = self.mapping.bands_mut() {
                bands.held_back.push(pages, page);
            }
            return None;
        };
        Some(self.queue_write_in(frontier, page, pages))
    }

    /// Whether a request is wide, where that decides on its bands.
    pub(crate) fn is_wide(&mut self, offset_bytes: u64, bytes: u64) -> bool {
        let shapes = self.mapping.bands_mut().and_then(|bands| bands.shapes.as_mut());
        shapes.is_some_and(|shapes| shapes.is_wide(offset_bytes, bytes))
    }

    /// The stream of a page of the host.
    pub(crate) fn band_stream_for(&mut self, logical: u32, hint: u32, is_wide: bool) -> u32 {
        let class = self.stream_for(logical, hint);
        self.mapping.bands().map_or(0, |bands| bands.stream_of_host(class, is_wide))
    }

    /// The write frontier of the next page of a stream of the host; `None` if collection has fallen
    /// behind, or no band can be opened for it by now.
    pub(crate) fn next_in_band(&mut self, stream: u32) -> Option<u32> {
        if self.mapping.bands()?.victims.hold_host() {
            return None;
        }
        if self.mapping.bands()?.streams[stream as usize].left() == 0 {
            self.open_for_host(stream)?;
        }
        let row_pages = self.shape.row_end(0);
        let bands = self.mapping.bands_mut()?;
        bands.victims.host_wrote();
        bands.streams[stream as usize].next(row_pages)
    }

    /// Queues a page of the host that was held back, if it has a band by now; returns the die.
    pub(crate) fn queue_held_back(&mut self, pages: &mut Pages) -> Option<u32> {
        let first = self.mapping.bands()?.held_back.first();
        if first == NONE {
            return None;
        }
        let frontier = self.next_in_band(pages.stream(first))?;
        self.mapping.bands_mut()?.held_back.pop(pages);
        Some(self.queue_write_in(frontier, first, pages))
    }

    /// Queues a page that collection has read to be programmed in a band; returns the die. `None`
    /// if the host has replaced it meanwhile.
    pub(crate) fn queue_moved(&mut self, page: u32, pages: &mut Pages) -> Option<u32> {
        let (block, row_pages) = (pages.block(page), self.shape.row_end(0));
        let is_current = self.map.physical_of(pages.logical(page)) == pages.flash_page(page);
        let bands = self.mapping.bands_mut()?;
        let stream = &mut bands.streams[bands.moved_to[block as usize] as usize];
        stream.unclaim(1);
        if !is_current {
            self.move_ended(block);
            return None;
        }
        let frontier = stream.next(row_pages)?;
        Some(self.queue_write_in(frontier, page, pages))
    }

    /// Maps a logical page that collection moves to this page of the block that its write frontier
    /// writes. Nothing is mapped if the host has replaced the page since it was read.
    pub(crate) fn place_moved_at(&mut self, frontier: u32, page: u32, (logical, from): (u32, u32)) {
        if self.map.physical_of(logical) != from {
            return;
        }
        let block = self.frontier(frontier).open_block();
        self.map.relocate(from, self.shape.first_page_of(block) + page);
        self.blocks.move_valid(self.shape.block_of(from), block, 1);
    }

    /// A page of a block has been moved, or needs to be no more.
    pub(crate) fn move_ended(&mut self, block: u32) {
        let can_be_erased =
            self.mapping.bands_mut().is_some_and(|bands| bands.victims.moved(block));
        if can_be_erased {
            self.wait_for_erase(block);
        }
    }

    /// A block whose pages have moved waits for its erase.
    fn wait_for_erase(&mut self, block: u32) {
        assert_eq!(self.blocks.valid_in(block), 0, "block {block} is erased with valid pages");
        let first = self.shape.frontiers_in(self.shape.group_of_block(block)).start;
        let die = self.shape.die_of(first);
        self.loads[die as usize].collecting += 1;
        if let Some(bands) = self.mapping.bands_mut() {
            bands.victims.add_erase(die, block);
        }
    }

    /// Whether a block of a die waits for its erase.
    #[inline]
    pub(crate) fn has_erase(&self, die: u32) -> bool {
        self.mapping.bands().is_some_and(|bands| bands.victims.has_erase(die))
    }

    /// Takes the next block of a die to be erased.
    pub(crate) fn take_erase(&mut self, die: u32) -> Option<u32> {
        let block = self.mapping.bands_mut()?.victims.take_erase(die)?;
        self.loads[die as usize].collecting -= 1;
        Some(block)
    }

    /// A block of a band has been erased.
    pub(crate) fn erased_in_band(&mut self, block: u32) {
        let lane = self.shape.group_of_block(block);
        self.blocks.erased(lane, block);
        if let Some(bands) = self.mapping.bands_mut() {
            bands.lanes.erased(lane);
            bands.victims.go_on();
        }
    }

    /// Advances a write frontier to this page, by `data` pages that were programmed.
    pub(crate) fn advance_in_band(&mut self, frontier: u32, page: u32, data: u32) {
        let block = self.frontier(frontier).open_block();
        let is_moved = self.mapping.bands().is_some_and(|bands| bands.takes_moved(block));
        match is_moved {
            true => self.programs.for_collection += u64::from(data),
            false => self.programs.for_host += u64::from(data),
        }
        self.frontiers[frontier as usize].advance(page, data, &self.shape);
        if page == self.shape.pages_per_block() {
            self.close_in_band(frontier);
        }
    }

    /// Closes the block of a write frontier, which is full; with its band, if that is full.
    fn close_in_band(&mut self, frontier: u32) {
        let Space { shape, blocks, frontiers, mapping, .. } = self;
        let Some(bands) = mapping.bands_mut() else { return };
        let block = frontiers[frontier as usize].take_open();
        bands.victims.go_on();
        let alone = [block];
        let closed = match &mut bands.members {
            None => &alone,
            Some(members) => {
                bands.lanes.wait(shape.group_of_block(block));
                let closed = members.filled(block);
                closed.iter().for_each(|&of| bands.lanes.close(shape.group_of_block(of)));
                closed
            }
        };
        closed.iter().for_each(|&of| blocks.close(of, bands.closed));
        bands.closed = bands.closed.wrapping_add(u32::from(!closed.is_empty()));
    }

    /// Opens a band for a stream of the host; `None` if there are too few blocks by now.
    fn open_for_host(&mut self, stream: u32) -> Option<()> {
        let bands = self.mapping.bands_mut()?;
        let lanes = bands.lanes.for_host(bands.plan.width_of(stream))?;
        self.open_band(stream, &lanes, NONE)
    }

    /// Opens a band of these lanes for a stream, to take the pages of this victim or those of the
    /// host; `None` if a lane has no write frontier for it by now.
    fn open_band(&mut self, stream: u32, lanes: &[u32], victim: u32) -> Option<()> {
        let frontiers: Option<Vec<u32>> =
            lanes.iter().map(|&lane| self.unused_frontier_in(lane)).collect();
        let frontiers = frontiers?;
        let Space { shape, blocks, policies, mapping, .. } = self;
        let (bands, mut lifetimes) = mapping.bands_and_lifetimes()?;
        let mut members = Vec::with_capacity(lanes.len());
        for (&lane, &frontier) in lanes.iter().zip(&frontiers) {
            let block = blocks.take_free(lane, policies)?;
            self.frontiers[frontier as usize].reopen(block, 0, shape);
            bands.stream_of[block as usize] = stream as u8;
            bands.lanes.open(lane);
            if let Some(lifetimes) = &mut lifetimes {
                lifetimes.opened(block, victim);
            }
            members.push(block);
        }
        if let Some(known) = &mut bands.members {
            known.open(members);
        }
        let band = OpenBand::new(frontiers, shape.pages_per_block());
        bands.streams[stream as usize].open(band);
        Some(())
    }

    /// A write frontier of a lane that writes no block.
    fn unused_frontier_in(&self, lane: u32) -> Option<u32> {
        self.shape.frontiers_in(lane).find(|&of| self.frontier(of).open_block() == NONE)
    }

    /// The next step of collection that is due now; the host may wait for it.
    pub(crate) fn next_band_step(&mut self, host_waits: bool) -> Option<BandStep> {
        loop {
            let bands = self.mapping.bands_mut()?;
            if let Some(die) = bands.victims.take_untold() {
                return Some(BandStep::Erase { die });
            }
            if bands.is_short() && bands.victims.take_more() && self.begin_victim() {
                continue;
            }
            let Space { shape, map, mapping, .. } = self;
            let bands = mapping.bands_mut()?;
            let host_waits = host_waits || !bands.held_back.is_empty();
            if !bands.victims.are_due(host_waits) {
                return None;
            }
            match bands.victims.next(map, shape)? {
                NextMove::Page(physical) => {
                    let logical = map.logical_of(physical);
                    return Some(BandStep::Read { logical, physical });
                }
                NextMove::Block { block, stream, unclaimed } => {
                    bands.streams[stream as usize].unclaim(unclaimed);
                    if bands.victims.all_read(block) {
                        self.wait_for_erase(block);
                    }
                }
            }
        }
    }

    /// Begins the collection of a band or block; false if none can be collected, or if there is no
    /// room for its pages by now.
    fn begin_victim(&mut self) -> bool {
        let begun = self.choose_in_bands().and_then(|block| self.collect_with(block));
        if begun.is_none()
            && let Some(bands) = self.mapping.bands_mut()
        {
            bands.victims.wait();
        }
        begun.is_some()
    }

    /// Chooses a block to be collected, with its band where whole bands are: one of the lane that
    /// needs blocks most.
    fn choose_in_bands(&mut self) -> Option<u32> {
        let Space { shape, blocks, policies, mapping, .. } = self;
        let bands = mapping.bands()?;
        let in_block = shape.pages_per_block();
        let Some(members) = &bands.members else {
            let valid = |blocks: &Blocks, block| blocks.valid_in(block) as u16;
            let scale = (bands.closed, in_block);
            let mut lanes = bands.lanes.by_need().into_iter();
            return lanes.find_map(|lane| blocks.propose_victim(lane, scale, policies, valid));
        };
        // Of bands of different widths the shares are compared; those of one are exact.
        let most = (bands.plan.widest() * in_block).min(MOST_PAGES_PER_BLOCK);
        let valid = |blocks: &Blocks, block| {
            let band = members.members_with(block);
            let valid = band.iter().map(|&member| u64::from(blocks.valid_in(member))).sum::<u64>();
            (valid * u64::from(most) / (band.len() as u64 * u64::from(in_block))) as u16
        };
        let scale = (bands.closed, most);
        let mut lanes = bands.lanes.by_need().into_iter();
        lanes.find_map(|lane| blocks.propose_victim(lane, scale, policies, valid))
    }

    /// Begins the collection of a block, with its band where whole bands are collected; `None` if
    /// there is no room for its pages.
    fn collect_with(&mut self, block: u32) -> Option<()> {
        let bands = self.mapping.bands()?;
        let blocks = match &bands.members {
            Some(members) => members.members_with(block).to_vec(),
            None => vec![block],
        };
        let valid: u32 = blocks.iter().map(|&of| self.blocks.valid_in(of)).sum();
        let room = blocks.len() as u32 * self.shape.pages_per_block() - valid;
        let (from, keeps) = (bands.stream_of[block as usize].into(), bands.plan.keeps_classes());
        let class = if keeps { self.stream_of_moved(block) } else { 0 };
        let stream = self.mapping.bands()?.plan.stream_of_moved(class, from);
        self.make_room(stream, valid, block)?;
        let Space { shape, blocks: states, mapping, map, .. } = self;
        let bands = mapping.bands_mut()?;
        bands.streams[stream as usize].claim(valid);
        if let Some(members) = &mut bands.members {
            members.dissolve(block);
        }
        for &of in &blocks {
            states.reopen(of);
            bands.lanes.collect(shape.group_of_block(of));
            bands.moved_to[of as usize] = stream as u8;
            map.prefetch_block(shape.first_page_of(of));
        }
        bands.victims.begin(Victim::new(stream, valid, &blocks, shape), room);
        Some(())
    }

    /// Opens bands of a stream of collection until it has room for so many pages; `None` if that
    /// cannot be done by now.
    fn make_room(&mut self, stream: u32, pages: u32, victim: u32) -> Option<()> {
        let bands = self.mapping.bands()?;
        let (width, widest) = (bands.plan.width_of(stream), bands.plan.widest());
        let at_once = bands.plan.open_at_once(stream);
        while self.mapping.bands()?.streams[stream as usize].unclaimed() < pages {
            let lanes = self.mapping.bands_mut()?.lanes.for_moved(width)?;
            self.open_band(stream, &lanes, victim)?;
        }
        let bands = self.mapping.bands_mut()?;
        let is_one_more = bands.streams[stream as usize].open_bands() < at_once;
        if is_one_more && bands.lanes.can_spare(width, widest) {
            let lanes = bands.lanes.for_moved(width)?;
            self.open_band(stream, &lanes, victim);
        }
        Some(())
    }

    /// Writes a logical page of the host in no time. Nothing may be under way.
    pub(crate) fn write_in_band_now(&mut self, logical: u32, hint: u32) {
        let bytes = u64::from(self.shape.page_bytes());
        let is_wide = self.is_wide(u64::from(logical) * bytes, bytes);
        let stream = self.band_stream_for(logical, hint, is_wide);
        self.collect_now(false);
        let mut next = self.next_in_band(stream);
        while next.is_none() {
            let frees = self.collect_now(true);
            assert!(frees, "there is no block for page {logical}, and none to be collected");
            next = self.next_in_band(stream);
        }
        if let Some(frontier) = next {
            let page = self.frontier(frontier).next();
            self.place_at(frontier, page, logical);
            self.advance_in_band(frontier, page + 1, 1);
        }
    }

    /// Does what collection has to do now, in no time; true if it did something. If the host
    /// waits, up to the erase of a block.
    fn collect_now(&mut self, host_waits: bool) -> bool {
        let row_pages = self.shape.row_end(0);
        let mut steps = 0_u32;
        while let Some(step) = self.next_band_step(host_waits) {
            steps += 1;
            match step {
                BandStep::Read { logical, physical } => {
                    let block = self.shape.block_of(physical);
                    let frontier = self.mapping.bands_mut().and_then(|bands| {
                        let to = bands.moved_to[block as usize];
                        let stream = &mut bands.streams[to as usize];
                        stream.unclaim(1);
                        stream.next(row_pages)
                    });
                    if let Some(frontier) = frontier {
                        let page = self.frontier(frontier).next();
                        self.place_moved_at(frontier, page, (logical, physical));
                        self.advance_in_band(frontier, page + 1, 1);
                    }
                    self.move_ended(block);
                }
                BandStep::Erase { die } => {
                    while let Some(block) = self.take_erase(die) {
                        self.count_erase();
                        self.erased_in_band(block);
                    }
                    if host_waits {
                        return true;
                    }
                }
            }
        }
        steps > 0
    }

    /// As [`check`](Space::check), of a drive with bands.
    pub(crate) fn check_bands(&self) -> Result<(), String> {
        self.check_map()?;
        (0..self.shape.groups()).try_for_each(|lane| self.check_lane(lane))
    }

    /// Checks the blocks of a lane.
    fn check_lane(&self, lane: u32) -> Result<(), String> {
        let Some(bands) = self.mapping.bands() else { return Ok(()) };
        let (free, counted) = (self.blocks.free_in(lane), bands.lanes.free_in(lane));
        if free != counted {
            return Err(format!("lane {lane} is counted for {counted} free blocks, not {free}"));
        }
        let frontiers = self.shape.frontiers_in(lane);
        let open = frontiers.filter(|&of| self.frontier(of).open_block() != NONE).count();
        self.blocks.check_use(lane, open + bands.lanes.in_between(lane) as usize)
    }
}

#[cfg(test)]
mod tests;
