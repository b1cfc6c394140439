//! A lower bound of a request's completion time, for drives that share a clock.

use crate::front::Front;
use softflash_base::{AccessKind, Time};

/// The position of a request in the firmware: as the last of so many pages of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirmwareProgress {
    kind: AccessKind,
    number: u64,
}

impl FirmwareProgress {
    /// The position of a request for so many pages that enters the front next; `None` if it never
    /// waits there. Requests that wait for the queue depth are not included, so the position can
    /// be too low. The bound computed from it is then lower, but still valid.
    pub(crate) fn behind(front: &Front, kind: AccessKind, pages: u64) -> Option<FirmwareProgress> {
        let number = front.entered(kind) + pages;
        (kind != AccessKind::Trim && !front.is_straight(kind))
            .then_some(FirmwareProgress { kind, number })
    }

    /// A lower bound of the completion time of the request, if it has not completed.
    pub(crate) fn completes_not_before(self, front: &Front, now: u64) -> Time {
        Time(front.passes_not_before(now, self.kind, self.number))
    }
}
