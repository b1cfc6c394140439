//! Preconditioning: puts the space of a drive into a used state, in no virtual time.
//!
//! [`write`] updates map, frontiers and collection as timed writes do. [`make_steady`] sets the
//! steady state of uniform random writes of single pages directly: random logical pages in blocks
//! whose numbers of valid pages follow the known distributions. A wrong distribution would show as
//! drift in the run that follows.

use crate::mapping::Mapping;
use crate::space::{Collected, Space};
use crate::spec::VictimPolicy;
use crate::write_frontier::Due;
use softflash_base::random::Rng;
use softflash_mapping::NONE;
use softflash_mapping::map::cached::Step;
use std::vec::IntoIter;

/// Random logical pages whose map entries are prefetched while those before them are written.
const AHEAD: usize = 16;

/// Map pages that are brought to flash after each write, at most: what is left follows the next
/// ones.
const MAP_STEPS: usize = 1024;

/// Random writes of a whole drive with bands that bring it near its steady state.
const BAND_REWRITES: u64 = 2;

/// Writes a logical page of the host, of a class. Nothing may be under way.
pub(crate) fn write<M: Mapping>(space: &mut Space<M>, logical: u32, hint: u32) {
    if M::BANDED {
        return space.write_in_band_now(logical, hint);
    }
    if !space.look_up(logical) {
        settle_map(space);
    }
    write_page(space, logical, hint);
    settle_map(space);
}

/// Unmaps a logical page of the host. Nothing may be under way.
pub(crate) fn forget<M: Mapping>(space: &mut Space<M>, logical: u32) {
    if !space.look_up(logical) {
        settle_map(space);
    }
    space.forget(logical);
    settle_map(space);
}

/// Writes a logical page.
fn write_page<M: Mapping>(space: &mut Space<M>, logical: u32, hint: u32) {
    let home = space.shape().frontier_of(logical);
    let frontier = space.frontier_for(logical, hint).unwrap_or(home);
    loop {
        // A frontier that shares its blocks may have none to write.
        let waits = space.frontier(frontier).open_block() == NONE;
        if !waits && program_parity(space, frontier) {
            continue;
        }
        if space.due(frontier) == Due::Collection {
            collect(space, space.collector_for(frontier));
            continue;
        }
        place(space, frontier, logical);
        space.entry_changes(logical);
        return advance(space, frontier, 1);
    }
}

/// Reads and programs the pages of a map on flash.
fn settle_map<M: Mapping>(space: &mut Space<M>) {
    for _ in 0..MAP_STEPS {
        match space.next_map_step() {
            Some(Step::Read(page)) => _ = space.map_page_read(page),
            Some(Step::Program(page)) => write_page(space, page, 0),
            None => return,
        }
    }
}

/// Programs the next page of a write frontier if it is parity.
fn program_parity<M: Mapping>(space: &mut Space<M>, frontier: u32) -> bool {
    let parity = space.shape().is_parity(frontier, space.frontier(frontier).next());
    if parity {
        space.count_parity(1);
        advance(space, frontier, 0);
    }
    parity
}

/// Does the next step of a write frontier's collection, with all rows that it programs.
fn collect<M: Mapping>(space: &mut Space<M>, frontier: u32) {
    match space.next_collected(frontier) {
        Collected::Erase(victim) => space.erased(victim),
        Collected::Program => {
            while space.frontier(frontier).is_moving(space.shape()) {
                space.take_moved_row(frontier);
                reopen(space, frontier);
            }
        }
    }
}

/// Maps a logical page to the next page of its write frontier.
fn place<M: Mapping>(space: &mut Space<M>, frontier: u32, logical: u32) {
    space.place_at(frontier, space.frontier(frontier).next(), logical);
}

/// Advances a write frontier by a page, which holds `data` pages of the host.
fn advance<M: Mapping>(space: &mut Space<M>, frontier: u32, data: u32) {
    space.advance(frontier, space.frontier(frontier).next() + 1, data);
    reopen(space, frontier);
}

/// Erases the victim of a write frontier that has no other block to write. One that shares its
/// blocks waits for them instead.
fn reopen<M: Mapping>(space: &mut Space<M>, frontier: u32) {
    let state = space.frontier(frontier);
    if state.open_block() == NONE && state.collects() && space.streams() == 1 {
        let left = space.left_to_move(frontier);
        assert_eq!(left, 0, "a frontier has no room for what it collects");
        collect(space, frontier);
    }
}

/// Whether theory gives the distribution of valid pages that [`make_steady`] sets.
pub(crate) fn is_known<M: Mapping>(space: &Space<M>) -> bool {
    let victims = [VictimPolicy::GREEDY, VictimPolicy::FIFO, VictimPolicy::windowed_greedy(1)];
    victims.contains(&space.victim_policy())
        && space.shape().translation_pages() == 0
        && !M::BANDED
        && !space.predicts_lifetimes()
}

/// Sets the steady state of uniform random writes of single pages over the whole drive, which must
/// be new.
pub(crate) fn make_steady<M: Mapping>(space: &mut Space<M>, seed: u64) {
    let mut rng = Rng::seeded(seed).fork("steady");
    if M::BANDED {
        return settle_bands(space, &mut rng);
    }
    for place in 0..space.shape().groups() {
        make_frontier_steady(space, place, &mut rng.fork(place.to_le_bytes()));
    }
    space.recount();
    let host_pages = space.shape().logical_pages();
    for page in 0..space.shape().translation_pages() {
        write_page(space, host_pages + page, 0);
    }
}

/// Comes close to the steady state of a drive with bands, the long way: all pages are written, then
/// random ones. The blocks of a band are collected together, so that no distribution of single
/// blocks would do.
fn settle_bands<M: Mapping>(space: &mut Space<M>, rng: &mut Rng) {
    let pages = space.shape().logical_pages();
    let random = (0..BAND_REWRITES * u64::from(pages)).map(|_| rng.below(pages.into()) as u32);
    let mut coming: std::collections::VecDeque<u32> = std::collections::VecDeque::new();
    for logical in (0..pages).chain(random) {
        space.prefetch_lookup(logical);
        coming.push_back(logical);
        if coming.len() > AHEAD
            && let Some(logical) = coming.pop_front()
        {
            space.write_in_band_now(logical, 0);
        }
    }
    coming.into_iter().for_each(|logical| space.write_in_band_now(logical, 0));
}

/// As [`make_steady`], for the write frontier of the flash pages from `first` on, one in every
/// stripe.
fn make_frontier_steady<M: Mapping>(space: &mut Space<M>, first: u32, rng: &mut Rng) {
    let shape = space.shape();
    let frontier = shape.frontier_of(first * shape.per_flash_page());
    let per_flash_page = shape.per_flash_page();
    let mut logical: Vec<u32> = (first * per_flash_page..shape.logical_pages())
        .step_by((shape.groups() * per_flash_page) as usize)
        .flat_map(|page| page..page + per_flash_page)
        .collect();
    rng.shuffle(&mut logical);
    let mut logical = logical.into_iter();

    // One block is open; one is erased; the others are closed. Of several streams, each has an open
    // block.
    let blocks = shape.blocks_of(shape.group_of(frontier)).len() as u32;
    let closed = blocks - shape.reserved_blocks();
    let in_block = shape.data_pages_from(frontier, 0);
    let pages = logical.len() as u32;
    // Of the others greedy's is the nearest that is known; they come to their own as they run.
    let is_fifo =
        [VictimPolicy::FIFO, VictimPolicy::windowed_greedy(1)].contains(&space.victim_policy());
    let counts = |open: u32| match is_fifo {
        true => fifo_counts(pages - open, closed, in_block),
        false => greedy_counts(pages - open, closed, in_block),
    };
    // The last victim has moved to the open block, and the host writes the rest of that: it has
    // written any part of the rest. With more of it left, the host would write for many victims'
    // worth before anything is collected.
    let most_open = in_block.min(pages);
    let moved = counts(most_open).first().copied().unwrap_or(0).min(most_open);
    let least_open = pages.saturating_sub(closed * in_block).max(moved);
    let open = least_open + rng.below(u64::from(most_open - least_open) + 1) as u32;
    let counts = counts(open);
    for count in counts {
        write_block(space, frontier, count, &mut logical);
    }
    while let Some(logical) = take(space, &mut logical) {
        while space.shape().is_parity(frontier, space.frontier(frontier).next()) {
            advance(space, frontier, 0);
        }
        place(space, frontier, logical);
        advance(space, frontier, 0);
    }
}

/// Writes a block of which `count` pages are still valid, spread evenly.
fn write_block<M: Mapping>(
    space: &mut Space<M>,
    frontier: u32,
    count: u32,
    logical: &mut IntoIter<u32>,
) {
    let in_block = space.shape().data_pages_from(frontier, 0);
    let mut due = 0;
    for page in 0..space.shape().pages_per_block() {
        if !space.shape().is_parity(frontier, page) {
            due += count;
            if due >= in_block
                && let Some(logical) = take(space, logical)
            {
                due -= in_block;
                place(space, frontier, logical);
            }
        }
        advance(space, frontier, 0);
    }
}

/// Takes the next of random logical pages.
fn take<M: Mapping>(space: &Space<M>, logical: &mut IntoIter<u32>) -> Option<u32> {
    if let Some(&later) = logical.as_slice().get(AHEAD) {
        space.prefetch_lookup(later);
    }
    logical.next()
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
