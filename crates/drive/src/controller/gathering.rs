//! Pages of a flash page that arrive one after the other. Writes wait for others that fill their
//! flash page, until none has arrived for a while, a write waits to be on flash, or the buffer is
//! full and no die works. A read, and a write without a buffer, waits for the next pages of its
//! request only.

use super::Controller;
use crate::mapping::Mapping;

/// When flash pages are programmed that are not full.
pub(super) struct Gathering {
    /// The time from the last write.
    patience_ns: u64,
    /// When what waits is programmed; `u64::MAX` while nothing waits.
    ends_at: u64,
}

impl Gathering {
    /// Nothing waits.
    pub(super) fn new(gather_us: u32) -> Gathering {
        Gathering { patience_ns: u64::from(gather_us) * 1000, ends_at: u64::MAX }
    }
}

impl<M: Mapping> Controller<M> {
    /// Whether several pages fill a flash page.
    #[inline(always)]
    pub(super) fn is_packed(&self) -> bool {
        M::GATHERS && self.space.shape().is_packed()
    }

    /// A page to be read has arrived, at a die if it is on flash. The die takes it with those of
    /// the request that follow in the same flash page. Returns the die that has new work.
    #[inline(never)]
    pub(super) fn read_arrived(&mut self, die: Option<u32>, more: bool) -> Option<u32> {
        let before = self.awaits_more.take();
        let Some(die) = die else {
            self.awaits_more = before.filter(|_| more);
            return before.filter(|_| !more);
        };
        let other = before.filter(|&before| before != die);
        if more {
            self.awaits_more = Some(die);
            return other;
        }
        if let Some(other) = other {
            self.dispatch(other, self.dies.accepts(other));
        }
        Some(die)
    }

    /// A page to be written has arrived. Without a buffer it waits for the next pages of its
    /// request. Returns the die that has new work.
    #[inline(always)]
    pub(super) fn write_arrived(&mut self, die: Option<u32>, more: bool) -> Option<u32> {
        if self.buffer.is_none() {
            if more {
                self.space.set_pads(false);
            } else if !self.space.pads() {
                self.end_gathering(self.now);
            }
        }
        die
    }

    /// A page waits to be programmed, and others may fill its flash page.
    #[inline]
    pub(super) fn gather(&mut self) {
        if self.buffer.is_some() {
            self.space.set_pads(false);
            let patience_ns = if self.durable.waits() { 0 } else { self.gathering.patience_ns };
            self.gathering.ends_at = self.now + patience_ns;
        }
    }

    /// Pages that wait for others are programmed now.
    pub(super) fn program_what_waits(&mut self) {
        if self.is_packed() {
            self.gathering.ends_at = self.now;
        }
    }

    /// When pages that wait for others are programmed; `u64::MAX` while none waits.
    #[inline(always)]
    pub(super) fn gathering_ends_at(&self) -> u64 {
        if !M::GATHERS || self.gathering.ends_at == u64::MAX {
            return u64::MAX;
        }
        // No others come to a full buffer that nothing empties.
        let is_stuck = !self.has_room() && self.dies.event_at() == u64::MAX;
        if is_stuck { self.now } else { self.gathering.ends_at }
    }

    /// Programs what waits, full flash pages or not.
    #[cold]
    pub(super) fn end_gathering(&mut self, at: u64) {
        self.pass_to(at);
        self.gathering.ends_at = u64::MAX;
        self.space.set_pads(true);
        for die in 0..self.space.shape().dies() {
            if self.space.has_writes(die) {
                self.dispatch(die, self.dies.accepts(die));
            }
        }
    }
}
