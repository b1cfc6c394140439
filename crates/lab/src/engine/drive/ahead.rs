//! Prefetches for requests: requests are generated shortly before their submission, so that the
//! drive can prefetch its map entries into the processor's cache. The prefetches of a batch are
//! issued together, so that their address translations, which take longest, overlap.

use super::foresight::Foresight;
use crate::error::LabError;
use crate::trace_workload::Repeated;
use softflash_drive::{AccessKind, Drive, HostRequest};
use softflash_trace::{Request, TraceError};
use softflash_workload::{Access, BlockSource};

/// Requests of a batch; one to two batches are ahead.
const BATCH: usize = 16;

/// A request and its time in a trace; 0 for a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    pub(super) at_ns: u64,
    pub(super) request: HostRequest,
}

enum From<'a> {
    Workload(BlockSource),
    Repeated(Repeated),
    Trace(&'a mut dyn Iterator<Item = Result<Request, TraceError>>),
}

/// The next requests, in order.
pub(super) struct Ahead<'a> {
    from: From<'a>,
    /// The current batch, and the number of requests taken from it.
    now: Vec<Next>,
    taken: usize,
    /// The next batch.
    soon: Vec<Next>,
    /// The error that cut a trace short.
    broken: Option<TraceError>,
    /// The requests further ahead, where lifetimes are foretold.
    foresight: Option<Foresight<Next>>,
}

impl<'a> Ahead<'a> {
    pub(super) fn of_workload(source: BlockSource) -> Ahead<'a> {
        Ahead::of(From::Workload(source))
    }

    pub(super) fn of_repeated(requests: Repeated) -> Ahead<'a> {
        Ahead::of(From::Repeated(requests))
    }

    pub(super) fn of_trace(
        requests: &'a mut dyn Iterator<Item = Result<Request, TraceError>>,
    ) -> Ahead<'a> {
        Ahead::of(From::Trace(requests))
    }

    fn of(from: From<'a>) -> Ahead<'a> {
        let batch = || Vec::with_capacity(BATCH);
        let mut ahead =
            Ahead { from, now: batch(), taken: 0, soon: batch(), broken: None, foresight: None };
        ahead.next_batch();
        ahead.next_batch();
        ahead
    }

    /// Foretells the lifetimes of all requests from now on.
    pub(super) fn foretell(&mut self, mut foresight: Foresight<Next>) {
        let drawn = self.now.drain(..).skip(self.taken).chain(self.soon.drain(..));
        drawn.for_each(|next| foresight.add(next));
        self.foresight = Some(foresight);
        self.next_batch();
        self.next_batch();
    }

    /// The time of the next request; `None` at the end.
    #[inline]
    pub(super) fn at_ns(&self) -> Option<u64> {
        // A trace that was cut short has one more item: its error.
        self.now.get(self.taken).map(|next| next.at_ns).or(self.broken.as_ref().map(|_| 0))
    }

    /// The next request; `None` at the end, or after an [error](Ahead::broken) of the trace. The
    /// drive that will take it, if there is only one, prefetches.
    #[inline(always)]
    pub(super) fn take(&mut self, drive: Option<&Drive>) -> Option<HostRequest> {
        let Next { request, .. } = *self.now.get(self.taken)?;
        self.taken += 1;
        if self.taken == self.now.len() {
            self.next_batch();
            if let Some(drive) = drive {
                self.prefetch(drive);
            }
        }
        Some(request)
    }

    /// The error that cut a trace short, if there is one.
    #[cold]
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.broken.take().map(LabError::from)
    }

    /// Advances to the next batch, and generates the one after it.
    #[inline(never)]
    fn next_batch(&mut self) {
        std::mem::swap(&mut self.now, &mut self.soon);
        self.taken = 0;
        self.soon.clear();
        while self.soon.len() < BATCH
            && let Some(next) = self.foresee()
        {
            self.soon.push(next);
        }
    }

    /// Prefetches for both batches; the map entries of the first are in the cache by now, so the
    /// pages that its writes replace are known. The loops do nothing else, as a processor's window
    /// of instructions is limited.
    #[inline(never)]
    fn prefetch(&self, drive: &Drive) {
        for Next { request, .. } in &self.now {
            if request.kind == AccessKind::Write {
                drive.prefetch_write(request.offset_bytes);
            }
        }
        for Next { request, .. } in &self.soon {
            drive.prefetch(request.offset_bytes);
        }
    }

    /// Draws a request, with its lifetime if that is foretold.
    #[inline(always)]
    fn foresee(&mut self) -> Option<Next> {
        let Ahead { from, broken, foresight, .. } = self;
        match foresight {
            None => from.draw(broken),
            Some(foresight) => foresight.next(|| from.draw(broken)),
        }
    }
}

impl From<'_> {
    /// Draws a request; `None` at the end, or after an error.
    #[inline(always)]
    fn draw(&mut self, broken: &mut Option<TraceError>) -> Option<Next> {
        match self {
            From::Workload(source) => Some(Next { at_ns: 0, request: of_access(&source.next()) }),
            From::Repeated(requests) => {
                let request = requests.next()?;
                Some(Next { at_ns: request.at_ns, request: of_request(&request)? })
            }
            From::Trace(_) if broken.is_some() => None,
            From::Trace(requests) => loop {
                match requests.next()? {
                    Ok(request) => match of_request(&request) {
                        Some(wanted) => {
                            return Some(Next { at_ns: request.at_ns, request: wanted });
                        }
                        None => continue,
                    },
                    Err(error) => {
                        *broken = Some(error);
                        return None;
                    }
                }
            },
        }
    }
}

#[inline]
fn of_access(access: &Access) -> HostRequest {
    let Access { kind, offset_bytes, bytes, hint, durability } = *access;
    HostRequest { tag: 0, kind, offset_bytes, bytes: bytes.into(), hint, durability }
}

/// Converts a request of a trace to a request of a drive. `None` for a flush, as the drive
/// acknowledges only safe data, and for a request of 0 bytes. The device of the trace is the class
/// of its data, as that of a stream.
fn of_request(request: &Request) -> Option<HostRequest> {
    let kind = request.kind.access()?;
    let Request { offset_bytes, bytes, device, .. } = *request;
    let wanted = HostRequest::new(0, kind, offset_bytes, bytes);
    (bytes > 0).then_some(HostRequest { hint: device, ..wanted })
}
