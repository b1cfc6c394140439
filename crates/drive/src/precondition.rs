//! Preconditioning: puts a drive into a used state, in no virtual time.
//!
//! [`Drive::fill`] and [`Drive::overwrite_now`] update map, frontiers and collection as timed
//! writes do. [`Drive::make_steady`] sets the steady state of uniform random writes of single pages
//! directly: random logical pages in blocks whose numbers of valid pages follow the known
//! distributions. A wrong distribution would show as drift in the run that follows.

use crate::drive::Drive;
use crate::map::NONE;
use crate::policy::NOT_CLOSED;
use crate::spec::VictimPolicy;
use softflash_base::random::Rng;

impl Drive {
    /// Writes every logical page once, in order.
    pub fn fill(&mut self) {
        for logical in 0..self.shape.logical_pages {
            self.write_now(logical);
        }
    }

    /// Writes the page at this offset, in no virtual time. Nothing may be under way.
    pub fn overwrite_now(&mut self, offset_bytes: u64) {
        let logical = offset_bytes / u64::from(self.shape.page_bytes);
        if logical < u64::from(self.shape.logical_pages) {
            self.write_now(logical as u32);
        }
    }

    fn write_now(&mut self, logical: u32) {
        let frontier = self.shape.frontier_of(logical);
        loop {
            let state = &self.blocks.frontiers[frontier as usize];
            let parity = self.shape.is_parity(frontier, state.next);
            if state.collects() && !parity {
                let left = self.left_to_move(state);
                if left == 0 {
                    let victim = self.take_victim(frontier);
                    self.erased(victim);
                    continue;
                }
                let room = self.shape.data_pages_from(frontier, state.next).saturating_sub(left);
                if room == 0 || state.pace.owes() {
                    self.move_now(frontier);
                    continue;
                }
            }
            if parity {
                self.counters.programmed_for_parity += 1;
            } else {
                self.place(frontier, logical);
                self.blocks.frontiers[frontier as usize].pace.written += 1;
                self.counters.programmed_for_host += 1;
                self.counters.host_pages_written += 1;
            }
            self.pass_page(frontier);
            if !parity {
                return;
            }
        }
    }

    /// Moves the next pages of a write frontier's victim.
    fn move_now(&mut self, frontier: u32) {
        let from = self.blocks.frontiers[frontier as usize].next;
        self.move_chunk(frontier);
        let state = &mut self.blocks.frontiers[frontier as usize];
        let to = std::mem::replace(&mut state.next, from);
        for page in from..to {
            if self.shape.is_parity(frontier, page) {
                self.counters.programmed_for_parity += 1;
            } else {
                self.counters.programmed_for_collection += 1;
            }
            self.pass_page(frontier);
        }
    }

    /// Advances the frontier by a page.
    fn pass_page(&mut self, frontier: u32) {
        let state = &mut self.blocks.frontiers[frontier as usize];
        state.next += 1;
        state.programmed = state.next;
        if state.next == self.shape.pages_per_block {
            self.close(frontier);
            let state = &self.blocks.frontiers[frontier as usize];
            if state.open == NONE && state.collects() {
                assert_eq!(
                    self.left_to_move(state),
                    0,
                    "a frontier has no room for what it collects"
                );
                let victim = self.take_victim(frontier);
                self.erased(victim);
            }
        }
    }

    /// Sets the steady state of uniform random writes of single pages over the whole drive. The
    /// drive must be new.
    pub fn make_steady(&mut self, seed: u64) {
        let rng = Rng::seeded(seed).fork("steady");
        for place in 0..self.shape.frontiers {
            self.make_frontier_steady(place, &mut rng.fork(place.to_le_bytes()));
        }
    }

    fn make_frontier_steady(&mut self, place: u32, rng: &mut Rng) {
        let frontier = self.shape.stripe[place as usize];
        let mut logical: Vec<u32> =
            (place..self.shape.logical_pages).step_by(self.shape.frontiers as usize).collect();
        rng.shuffle(&mut logical);
        let mut logical = logical.into_iter();

        // One block is open, at any stage of being written; one is erased; the others are closed.
        let closed = self.shape.blocks_per_frontier - 2;
        let in_block = self.shape.data_pages_from(frontier, 0);
        let pages = logical.len() as u32;
        let most_open = in_block.min(pages);
        let least_open = pages.saturating_sub(closed * in_block);
        let open = least_open + rng.below(u64::from(most_open - least_open) + 1) as u32;
        let counts = match self.layout.victim {
            VictimPolicy::Greedy => greedy_counts(pages - open, closed, in_block),
            VictimPolicy::Fifo => fifo_counts(pages - open, closed, in_block),
        };
        for count in counts {
            self.write_block(frontier, count, &mut logical);
        }
        for logical in logical {
            while self.shape.is_parity(frontier, self.blocks.frontiers[frontier as usize].next) {
                self.pass_page(frontier);
            }
            self.place(frontier, logical);
            self.pass_page(frontier);
        }
    }

    /// Writes a block of which `count` pages are still valid, spread evenly.
    fn write_block(&mut self, frontier: u32, count: u32, logical: &mut impl Iterator<Item = u32>) {
        let in_block = self.shape.data_pages_from(frontier, 0);
        let mut due = 0;
        for page in 0..self.shape.pages_per_block {
            if !self.shape.is_parity(frontier, page) {
                due += count;
                if due >= in_block
                    && let Some(logical) = logical.next()
                {
                    due -= in_block;
                    self.place(frontier, logical);
                }
            }
            self.pass_page(frontier);
        }
    }

    /// Checks all state: both directions of the map agree, the valid counts of blocks are right,
    /// and every block is free, open, closed, or being collected or erased. Returns the first
    /// error.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = 0_u64;
        for block in 0..self.shape.blocks_end() {
            let first = block * self.shape.pages_per_block;
            let found = self.map.count_valid(first, first + self.shape.pages_per_block);
            let counted = u32::from(self.blocks.valid[block as usize] & !NOT_CLOSED);
            if found != counted {
                return Err(format!(
                    "block {block} is counted for {counted} valid pages, not {found}"
                ));
            }
            valid += u64::from(found);
        }
        let mut mapped = 0_u64;
        for logical in 0..self.shape.logical_pages {
            let physical = self.map.physical_of(logical);
            if physical != NONE {
                mapped += 1;
                if self.map.logical_of(physical) != logical {
                    return Err(format!("page {physical} does not hold logical page {logical}"));
                }
            }
        }
        if mapped != valid {
            return Err(format!("{mapped} logical pages lie in {valid} valid ones"));
        }
        for (frontier, state) in self.blocks.frontiers.iter().enumerate() {
            let first = self.shape.first_block_of(frontier as u32) as usize;
            let blocks = &self.blocks.valid[first..first + self.shape.blocks_per_frontier as usize];
            let not_closed = blocks.iter().filter(|&&valid| valid & NOT_CLOSED != 0).count();
            let known = self.blocks.free[frontier].len()
                + usize::from(state.open != NONE)
                + usize::from(state.victim != NONE);
            // An erase of one more may be under way.
            if not_closed < known || not_closed > known + 1 {
                return Err(format!(
                    "frontier {frontier}: {not_closed} blocks are in use, {known} known"
                ));
            }
        }
        Ok(())
    }
}

/// Valid pages of closed blocks under greedy collection (finite-block mean field): a block with `i`
/// valid pages loses one at a rate in proportion to `i`, so in the steady state it stays there for
/// a time in proportion to `1/i`, from full down to the level above the level of collection. Each
/// level represents the interval of half a page around it.
fn greedy_counts(pages: u32, blocks: u32, in_block: u32) -> Vec<u32> {
    let full = f64::from(in_block) + 0.5;
    spread(pages, blocks, in_block, |x, q| {
        let least = 0.5 + x * f64::from(in_block);
        least * (full / least).powf(q)
    })
}

/// Valid pages of closed blocks under FIFO collection: the same share of the remaining valid pages
/// becomes invalid between one block and the next, so the shares fall geometrically with age.
fn fifo_counts(pages: u32, blocks: u32, in_block: u32) -> Vec<u32> {
    let full = f64::from(in_block);
    // The oldest first, as they are closed in that order.
    spread(pages, blocks, in_block, |x, q| full * x.max(1e-9).powf(1.0 - q))
}

/// Whole numbers for `blocks` blocks that sum up to `pages`: `level(x, q)` at evenly spaced
/// quantiles q, with the x in 0..1 that gives this sum. `level` rises with x and with q.
fn spread(pages: u32, blocks: u32, in_block: u32, level: impl Fn(f64, f64) -> f64) -> Vec<u32> {
    let quantile = |block: u32| (f64::from(block) + 0.5) / f64::from(blocks);
    let sum = |x: f64| (0..blocks).map(|block| level(x, quantile(block))).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if sum(middle) < f64::from(pages) { low = middle } else { high = middle }
    }
    // Each block passes its rounding error on, so that the sum is exact except for the last block.
    let (mut ideal, mut given) = (0.0, 0);
    let mut counts: Vec<u32> = (0..blocks)
        .map(|block| {
            ideal += level(high, quantile(block));
            let count = ((ideal - f64::from(given)).round().max(0.0) as u32).min(in_block);
            given += count;
            count
        })
        .collect();
    for count in counts.iter_mut().rev() {
        let more = pages.saturating_sub(given).min(in_block - *count);
        let fewer = given.saturating_sub(pages).min(*count);
        *count = *count + more - fewer;
        given = given + more - fewer;
    }
    counts
}
