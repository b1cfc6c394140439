//! Caps on bytes a second that all clients of a run share.

use softflash_base::Time;
use softflash_workload::{AccessKind, RateCap, RateCaps};
use std::cell::RefCell;

/// The caps, if there are any.
pub struct Caps {
    reads: RefCell<Option<RateCap>>,
    writes: RefCell<Option<RateCap>>,
}

impl Caps {
    /// Full buckets.
    pub fn new(caps: &RateCaps) -> Caps {
        let of = |kind| RefCell::new(caps.of(kind));
        Caps { reads: of(AccessKind::Read), writes: of(AccessKind::Write) }
    }

    /// Until when a request that is ready now is held back, if it is.
    pub fn hold(&self, kind: AccessKind, bytes: u32, now: Time) -> Option<Time> {
        let cap = if kind == AccessKind::Read { &self.reads } else { &self.writes };
        let at = cap.borrow_mut().as_mut()?.earliest(now, bytes.into());
        (at > now).then_some(at)
    }
}
