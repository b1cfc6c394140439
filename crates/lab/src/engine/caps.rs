//! Bandwidth caps that all clients of a run share.

use softflash_base::{AccessKind, Time};
use softflash_workload::{RateCap, RateCaps};

/// The caps of reads and of writes.
pub struct Caps {
    reads: Option<RateCap>,
    writes: Option<RateCap>,
}

impl Caps {
    /// Caps whose buckets are full.
    pub fn new(caps: &RateCaps) -> Caps {
        Caps { reads: caps.of(AccessKind::Read), writes: caps.of(AccessKind::Write) }
    }

    /// Whether there is a cap.
    pub fn any(&self) -> bool {
        self.reads.is_some() || self.writes.is_some()
    }

    /// The time until which a request that is ready now is held back, if it is.
    #[inline]
    pub fn hold(&mut self, kind: AccessKind, bytes: u64, now: Time) -> Option<Time> {
        let cap = if kind == AccessKind::Read { &mut self.reads } else { &mut self.writes };
        let at = cap.as_mut()?.earliest(now, bytes);
        (at > now).then_some(at)
    }
}
