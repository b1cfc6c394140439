//! Requests, looked at a little before they are made, so that the drive can bring what it will need of its
//! map into the processor's cache. They are drawn in batches: what a batch needs is asked for at once, so that the
//! translations of its addresses, which take longest, overlap.

use crate::error::LabError;
use softflash_drive::{AccessKind, Drive, HostRequest};
use softflash_trace::{Kind, Request, TraceError};
use softflash_workload::{Access, BlockSource};
use std::collections::VecDeque;

/// Requests of a batch; one to two batches are ahead.
const BATCH: usize = 16;

/// A request and when a trace says that it is made; 0 for a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    pub(super) at_ns: u64,
    pub(super) request: HostRequest,
}

enum From<'a> {
    Workload(BlockSource),
    Trace(&'a mut dyn Iterator<Item = Result<Request, TraceError>>),
}

/// The next requests, in order.
pub(super) struct Ahead<'a> {
    from: From<'a>,
    next: VecDeque<Next>,
    /// Why a trace ended before its end.
    broken: Option<TraceError>,
}

impl<'a> Ahead<'a> {
    pub(super) fn of_workload(source: BlockSource) -> Ahead<'a> {
        Ahead::of(From::Workload(source))
    }

    pub(super) fn of_trace(
        requests: &'a mut dyn Iterator<Item = Result<Request, TraceError>>,
    ) -> Ahead<'a> {
        Ahead::of(From::Trace(requests))
    }

    fn of(from: From<'a>) -> Ahead<'a> {
        let mut ahead = Ahead { from, next: VecDeque::with_capacity(2 * BATCH), broken: None };
        while ahead.next.len() < BATCH
            && let Some(next) = ahead.draw()
        {
            ahead.next.push_back(next);
        }
        ahead
    }

    /// When the next request is made; `None` at the end.
    #[inline]
    pub(super) fn at_ns(&self) -> Option<u64> {
        // A trace that is broken off has one more to take: its error.
        self.next.front().map(|next| next.at_ns).or(self.broken.as_ref().map(|_| 0))
    }

    /// The next request.
    #[inline]
    pub(super) fn take(&mut self, drive: &Drive) -> Result<Option<HostRequest>, LabError> {
        if self.next.len() <= BATCH {
            self.draw_batch(drive);
        }
        match self.next.pop_front() {
            Some(next) => Ok(Some(next.request)),
            None => self.broken.take().map_or(Ok(None), |error| Err(error.into())),
        }
    }

    /// Draws a batch, and has the drive expect it. What the batch before replaces is known by now.
    fn draw_batch(&mut self, drive: &Drive) {
        for soon in &self.next {
            if soon.request.kind == AccessKind::Write {
                drive.expect_write(soon.request.offset_bytes);
            }
        }
        for _ in 0..BATCH {
            let Some(new) = self.draw() else { return };
            drive.expect(new.request.offset_bytes);
            self.next.push_back(new);
        }
    }

    #[inline]
    fn draw(&mut self) -> Option<Next> {
        match &mut self.from {
            From::Workload(source) => Some(Next { at_ns: 0, request: of_access(&source.next()) }),
            From::Trace(_) if self.broken.is_some() => None,
            From::Trace(requests) => loop {
                match requests.next()? {
                    Ok(request) => match of_request(&request) {
                        Some(wanted) => {
                            return Some(Next { at_ns: request.at_ns, request: wanted });
                        }
                        None => continue,
                    },
                    Err(error) => {
                        self.broken = Some(error);
                        return None;
                    }
                }
            },
        }
    }
}

#[inline]
fn of_access(access: &Access) -> HostRequest {
    let kind = match access.kind {
        softflash_workload::AccessKind::Read => AccessKind::Read,
        softflash_workload::AccessKind::Write => AccessKind::Write,
        softflash_workload::AccessKind::Trim => AccessKind::Trim,
    };
    HostRequest { tag: 0, kind, offset_bytes: access.offset_bytes, bytes: access.bytes.into() }
}

/// What a request of a trace asks of a drive. A flush asks nothing of one that acknowledges what is safe;
/// neither does a request for nothing.
fn of_request(request: &Request) -> Option<HostRequest> {
    let kind = match request.kind {
        Kind::Read => AccessKind::Read,
        Kind::Write => AccessKind::Write,
        Kind::Trim => AccessKind::Trim,
        Kind::Flush => return None,
    };
    let Request { offset_bytes, bytes, .. } = *request;
    (bytes > 0).then_some(HostRequest { tag: 0, kind, offset_bytes, bytes })
}
