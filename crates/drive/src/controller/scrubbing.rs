//! Background scrub (patrol reads): reads every flash page of full blocks with data once in a
//! period, beside the host's requests. The reads wait for their die as those of the host do; a
//! group of blocks has at most one of them. While no request is under way nothing waits for a die,
//! and the scrub takes no steps.

use super::Controller;
use crate::mapping::Mapping;
use crate::pages::Purpose;
use crate::shape::Shape;
use crate::spec::PageMapped;
use softflash_mapping::NONE;

const HOUR_NS: f64 = 3600.0 * 1e9;

/// The progress of the scrub.
pub(super) struct Scrubbing {
    /// The time between two steps.
    interval_ns: u64,
    /// When the next one is due; `u64::MAX` without a scrub.
    next_at: u64,
    /// Flash pages passed so far.
    passed: u64,
    /// The groups of blocks with a read under way.
    reads: Vec<bool>,
}

impl Scrubbing {
    /// Of a layout.
    pub(super) fn new(layout: &PageMapped, shape: &Shape) -> Scrubbing {
        let steps = u64::from(shape.groups()) * steps_of_group(shape);
        let interval_ns = (layout.scrub_hours * HOUR_NS / steps as f64) as u64;
        let scrubs = layout.scrub_hours > 0.0;
        Scrubbing {
            interval_ns: interval_ns.max(1),
            next_at: if scrubs { interval_ns } else { u64::MAX },
            passed: 0,
            reads: vec![false; if scrubs { shape.groups() as usize } else { 0 }],
        }
    }

    /// The group, block and first page of the next flash page, the groups in turn.
    fn next(&self, shape: &Shape) -> (u32, u32, u32) {
        let groups = u64::from(shape.groups());
        let group = (self.passed % groups) as u32;
        let step = self.passed / groups % steps_of_group(shape);
        let per_block = u64::from(shape.flash_page_of(shape.pages_per_block()));
        let block = shape.blocks_of(group).start + (step / per_block) as u32;
        let flash_page = (step % per_block) as u32;
        (group, block, shape.first_page_of(block) + flash_page * shape.per_flash_page())
    }
}

/// Flash pages of the blocks of a group.
fn steps_of_group(shape: &Shape) -> u64 {
    let pages = u64::from(shape.flash_page_of(shape.pages_per_block()));
    shape.blocks_of(0).len() as u64 * pages
}

impl<M: Mapping> Controller<M> {
    /// When the scrub takes its next step; `u64::MAX` if it takes none.
    #[inline(always)]
    pub(super) fn scrubs_at(&self) -> u64 {
        if !M::GATHERS || self.scrubbing.next_at == u64::MAX || self.pages.requests() == 0 {
            return u64::MAX;
        }
        self.scrubbing.next_at.max(self.now)
    }

    /// Reads the next flash page, if its block is full and has data. A step is put off while the
    /// last read of its group is under way.
    #[inline(never)]
    pub(super) fn scrub(&mut self, at: u64) {
        self.pass_to(at);
        let Controller { scrubbing, space, .. } = self;
        scrubbing.next_at = at + scrubbing.interval_ns;
        let (group, block, first) = scrubbing.next(space.shape());
        if scrubbing.reads[group as usize] {
            return;
        }
        scrubbing.passed += 1;
        if space.has_data_at_rest(block) {
            scrubbing.reads[group as usize] = true;
            let page = self.pages.add_page(NONE, NONE, 0);
            let die = self.queue_read(page, (NONE, first), Purpose::Scrub);
            self.dispatch(die, self.dies.accepts(die));
        }
    }

    /// A flash page has been read by the scrub.
    #[cold]
    pub(super) fn scrubbed(&mut self, page: u32) {
        let group = self.space.shape().group_of_block(self.pages.block(page));
        self.scrubbing.reads[group as usize] = false;
        self.counters.scrub_reads += 1;
        self.pages.complete_page(page);
    }
}
