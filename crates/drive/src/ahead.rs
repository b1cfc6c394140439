//! Advances the drive to a time, and computes a lower bound of a request's completion time, for
//! drives that share a clock.

use crate::drive::Drive;
use crate::request::{Done, HostRequest};
use softflash_base::{AccessKind, Time};

/// The position of a request in the firmware: as the last of so many pages of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirmwareProgress {
    kind: AccessKind,
    number: u64,
}

impl Drive {
    /// Advances the drive to `now`, which must not be before its current time, and appends the
    /// completed requests. Requests can be submitted at `now` afterwards.
    pub fn play_until(&mut self, now: Time, done: &mut Vec<Done>) {
        while self.play_event(now.0.saturating_add(1)) {}
        self.pass_to(now.0);
        done.append(&mut self.host.completed);
    }

    /// The position of a request that is submitted next; `None` if it never waits in the front.
    /// Requests that wait for the queue depth are not included, so the position can be too low. The
    /// bound computed from it is then lower, but still valid.
    pub(crate) fn firmware_progress(&self, request: &HostRequest) -> Option<FirmwareProgress> {
        let kind = request.kind;
        let pages = request.bytes.div_ceil(u64::from(self.page_bytes()));
        let number = self.front.entered(kind) + pages;
        (kind != AccessKind::Trim && !self.is_straight(kind))
            .then_some(FirmwareProgress { kind, number })
    }

    /// A lower bound of the completion time of a request that has not completed; `None` if no event
    /// is pending.
    pub(crate) fn completes_not_before(&self, progress: Option<FirmwareProgress>) -> Option<Time> {
        let next = self.next_at()?;
        let Some(FirmwareProgress { kind, number }) = progress else { return Some(next) };
        Some(next.max(Time(self.front.passes_not_before(self.now, kind, number))))
    }
}
