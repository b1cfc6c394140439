//! Background scrub (patrol reads): reads every flash page of full blocks with data once in a
//! period, beside the host's requests. The reads wait for their die as those of the host do; a
//! group of blocks has at most one of them. While no request is under way nothing waits for a die,
//! and the scrub takes no steps.

use crate::shape::Shape;
use crate::spec::PageMapped;

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

    /// When the next step is due; `u64::MAX` without a scrub.
    #[inline(always)]
    pub(super) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// Takes a step: returns the block of the next flash page, and the first page there. `None`
    /// while the last read of its group is under way: then the step is put off.
    pub(super) fn step(&mut self, now: u64, shape: &Shape) -> Option<(u32, u32)> {
        self.next_at = now + self.interval_ns;
        let (group, block, first) = self.next(shape);
        if self.reads[group as usize] {
            return None;
        }
        self.passed += 1;
        Some((block, first))
    }

    /// A read of a group begins.
    pub(super) fn begin(&mut self, group: u32) {
        let reads = &mut self.reads[group as usize];
        assert!(!*reads, "the scrub reads twice from group {group}");
        *reads = true;
    }

    /// The read of a group has ended.
    pub(super) fn end(&mut self, group: u32) {
        let reads = &mut self.reads[group as usize];
        assert!(*reads, "a read of the scrub ends that did not begin in group {group}");
        *reads = false;
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
