//! A lower bound of a request's completion time, for drives that share a clock.

use crate::host_interface::HostInterface;
use softflash_base::{AccessKind, Time};

/// The position of a request in the firmware: as the last of so many pages of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirmwareProgress {
    kind: AccessKind,
    number: u64,
}

impl FirmwareProgress {
    /// The position of a request for so many pages that enters the host interface next; `None` if
    /// it never waits there. Requests that wait for the queue depth are not included, so the
    /// position can be too low. The bound computed from it is then lower, but still valid.
    pub(crate) fn behind(
        interface: &HostInterface,
        kind: AccessKind,
        pages: u64,
    ) -> Option<FirmwareProgress> {
        let number = interface.entered(kind) + pages;
        (kind != AccessKind::Trim && !interface.is_straight(kind))
            .then_some(FirmwareProgress { kind, number })
    }

    /// A lower bound of the completion time of the request, if it has not completed.
    pub(crate) fn completes_not_before(self, interface: &HostInterface, now: u64) -> Time {
        Time(interface.passes_not_before(now, self.kind, self.number))
    }
}
