//! Playing up to a time, and how long it is certain that a request does not end: for those who
//! share a drive and a clock with others.

use crate::drive::Drive;
use crate::request::{Done, HostRequest};
use softflash_base::{AccessKind, Time};

/// When a request will have passed the firmware: as the last of so many pages of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    kind: AccessKind,
    number: u64,
}

impl Drive {
    /// Plays everything that happens up to `now`, which must not be before what was played, and
    /// appends the requests that completed. Requests can be submitted at `now` then.
    pub fn play_until(&mut self, now: Time, done: &mut Vec<Done>) {
        while self.play_event(now.0.saturating_add(1)) {}
        self.pass_to(now.0);
        done.append(&mut self.completed);
    }

    /// The ticket of a request that is submitted next. It may be out of date, by requests that wait
    /// outside of the drive, to the side of caution.
    pub(crate) fn ticket(&self, request: &HostRequest) -> Option<Ticket> {
        let kind = request.kind;
        let pages = request.bytes.div_ceil(u64::from(self.page_bytes()));
        let number = self.front.entered(kind) + pages;
        (kind != AccessKind::Trim && !self.is_straight(kind)).then_some(Ticket { kind, number })
    }

    /// A time before which a request does not end, if it has not ended by now.
    pub(crate) fn ends_not_before(&self, ticket: Option<Ticket>) -> Option<Time> {
        let next = self.next_at()?;
        let Some(Ticket { kind, number }) = ticket else { return Some(next) };
        Some(next.max(Time(self.front.passes_not_before(self.now, kind, number))))
    }
}
