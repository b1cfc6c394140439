//! Requests, looked at a little before they are made, so that the drive can bring what it will need
//! of its map into the processor's cache. They are drawn in batches: what a batch needs is asked
//! for at once, so that the translations of its addresses, which take longest, overlap.

use crate::error::LabError;
use softflash_drive::{AccessKind, Drive, HostRequest};
use softflash_trace::{Request, TraceError};
use softflash_workload::{Access, BlockSource};

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
    /// The batch that is being taken, and how much of it is.
    now: Vec<Next>,
    taken: usize,
    /// The batch behind it.
    soon: Vec<Next>,
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
        let batch = || Vec::with_capacity(BATCH);
        let mut ahead = Ahead { from, now: batch(), taken: 0, soon: batch(), broken: None };
        ahead.next_batch();
        ahead.next_batch();
        ahead
    }

    /// When the next request is made; `None` at the end.
    #[inline]
    pub(super) fn at_ns(&self) -> Option<u64> {
        // A trace that is broken off has one more to take: its error.
        self.now.get(self.taken).map(|next| next.at_ns).or(self.broken.as_ref().map(|_| 0))
    }

    /// The next request; none at the end, or where a trace is [broken](Ahead::broken) off.
    #[inline(always)]
    pub(super) fn take(&mut self, drive: &Drive) -> Option<HostRequest> {
        let Next { request, .. } = *self.now.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.now.len() {
            self.next_batch();
            self.expect(drive);
        }
        Some(request)
    }

    /// Why there is no next request, if a trace ended before its end.
    #[cold]
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.broken.take().map(LabError::from)
    }

    /// Goes on to the next batch, and draws the one behind it.
    #[inline(never)]
    fn next_batch(&mut self) {
        std::mem::swap(&mut self.now, &mut self.soon);
        self.taken = 0;
        self.soon.clear();
        while self.soon.len() < BATCH
            && let Some(next) = self.draw()
        {
            self.soon.push(next);
        }
    }

    /// Has the drive expect the batches. What writes of the first replace is known by now. Nothing
    /// else is done between two of a batch: a processor looks only so many instructions ahead.
    #[inline(never)]
    fn expect(&self, drive: &Drive) {
        for Next { request, .. } in &self.now {
            if request.kind == AccessKind::Write {
                drive.expect_write(request.offset_bytes);
            }
        }
        for Next { request, .. } in &self.soon {
            drive.expect(request.offset_bytes);
        }
    }

    #[inline(always)]
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
    let Access { kind, offset_bytes, bytes } = *access;
    HostRequest { tag: 0, kind, offset_bytes, bytes: bytes.into() }
}

/// The request to a drive for a request of a trace. A flush asks nothing of one that acknowledges
/// what is safe; neither does a request for nothing.
fn of_request(request: &Request) -> Option<HostRequest> {
    let kind = request.kind.access()?;
    let Request { offset_bytes, bytes, .. } = *request;
    (bytes > 0).then_some(HostRequest { tag: 0, kind, offset_bytes, bytes })
}
