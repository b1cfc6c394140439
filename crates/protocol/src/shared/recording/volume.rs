//! The requests to a volume, in the order of their arrival.
//!
//! A request gets its place when it arrives and its latency when it is done, so a reader gets
//! those before the oldest one under way.

use super::{Taken, Tapes};
use crate::error::Result;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kind of a request to a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeAccess {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// Bytes become zeros that take no space.
    Discard,
    /// All completed writes become durable.
    Flush,
}

/// A request to a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeRequest {
    /// Its kind.
    pub access: VolumeAccess,
    /// Its offset; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush.
    pub bytes: u32,
}

/// All active recordings of volumes.
#[derive(Debug, Default)]
pub struct VolumeRecordings {
    tapes: Tapes<Tape>,
    /// The number of the next request.
    next: AtomicU64,
}

/// Buffered requests of one recorder.
#[derive(Debug)]
struct Tape {
    export: String,
    capacity: usize,
    /// In the order of their numbers.
    places: VecDeque<Place>,
    dropped: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    at_ns: u64,
    request: VolumeRequest,
    latency_ns: Option<u64>,
}

/// A recorded request under way.
#[derive(Debug)]
#[must_use = "a request that is not ended is under way for ever"]
pub struct Begun {
    recordings: Arc<VolumeRecordings>,
    number: u64,
    at_ns: u64,
}

impl VolumeRecordings {
    /// Starts a recording of an export for a client, or restarts its recording.
    pub(crate) fn start(&self, client: u64, export: &str, capacity: usize) -> Result<()> {
        // Allocated in full, so that no client waits while it grows.
        let places = VecDeque::with_capacity(capacity);
        let export = export.to_owned();
        self.tapes.start(client, Tape { export, capacity, places, dropped: 0 })
    }

    /// Stops a client's recording, if it has one.
    pub(crate) fn stop(&self, client: u64) {
        self.tapes.stop(client);
    }

    /// Removes and returns the oldest requests of a client's recording, if it has one: up to the
    /// first one under way, or `all`.
    pub(crate) fn take(&self, client: u64, count: usize, all: bool) -> Option<Taken> {
        let (places, dropped) = self.tapes.of(client, |tape| {
            let ready = |place: &Place| all || place.latency_ns.is_some();
            let count = tape.places.iter().take(count).take_while(|place| ready(place)).count();
            let places: Vec<Place> = tape.places.drain(..count).collect();
            (places, std::mem::take(&mut tape.dropped))
        })?;
        Some(Taken { lines: lines(&places), dropped })
    }

    /// Whether there is any recording.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.tapes.is_on()
    }

    /// Records a request to an export that has arrived. All requests to an export come from one
    /// thread.
    pub fn begin(self: &Arc<Self>, export: &str, at_ns: u64, request: VolumeRequest) -> Begun {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = Place { number, at_ns, request, latency_ns: None };
        self.tapes.for_each(|tape| {
            if tape.export == export {
                tape.put(place);
            }
        });
        Begun { recordings: Arc::clone(self), number, at_ns }
    }
}

impl Begun {
    /// Records its latency.
    pub fn end(self, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(self.at_ns);
        self.recordings.tapes.for_each(|tape| tape.complete(self.number, latency_ns));
    }
}

impl Tape {
    fn put(&mut self, place: Place) {
        if self.places.len() < self.capacity {
            self.places.push_back(place);
        } else {
            self.dropped += 1;
        }
    }

    /// Completes a request, if it is here: it may have been dropped, or taken while under way.
    fn complete(&mut self, number: u64, latency_ns: u64) {
        if let Ok(index) = self.places.binary_search_by_key(&number, |place| place.number)
            && let Some(place) = self.places.get_mut(index)
        {
            place.latency_ns = Some(latency_ns);
        }
    }
}

/// One line per request: nanoseconds, kind, offset, length, nanoseconds of latency.
fn lines(places: &[Place]) -> String {
    let mut lines = String::with_capacity(places.len() * 48);
    for Place { at_ns, request, latency_ns, .. } in places {
        let VolumeRequest { access, offset_bytes, bytes } = request;
        let kind = match access {
            VolumeAccess::Read => "read",
            VolumeAccess::Write => "write",
            VolumeAccess::Discard => "discard",
            VolumeAccess::Flush => "flush",
        };
        // Writing to a string does not fail.
        let _ = write!(lines, "{at_ns} {kind} {offset_bytes} {bytes} ");
        let _ = match latency_ns {
            Some(latency_ns) => writeln!(lines, "{latency_ns}"),
            None => writeln!(lines, "-"),
        };
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: VolumeRequest =
        VolumeRequest { access: VolumeAccess::Write, offset_bytes: 4096, bytes: 512 };
    const FLUSH: VolumeRequest =
        VolumeRequest { access: VolumeAccess::Flush, offset_bytes: 0, bytes: 0 };

    fn taken(recordings: &VolumeRecordings, client: u64, all: bool) -> (String, u64) {
        let taken = recordings.take(client, 100, all).unwrap();
        (taken.lines, taken.dropped)
    }

    #[test]
    fn requests_come_in_the_order_of_arrival_when_they_are_done() {
        let recordings = Arc::<VolumeRecordings>::default();
        assert!(recordings.take(1, 100, true).is_none(), "it does not record");
        recordings.start(1, "disk", 10).unwrap();
        recordings.start(2, "other", 10).unwrap();
        let first = recordings.begin("disk", 10, WRITE);
        let second = recordings.begin("disk", 20, FLUSH);
        second.end(25);
        assert_eq!(taken(&recordings, 1, false), (String::new(), 0), "the first is under way");
        first.end(40);
        let both = "10 write 4096 512 30\n20 flush 0 0 5\n";
        assert_eq!(taken(&recordings, 1, false), (both.to_owned(), 0));
        assert_eq!(taken(&recordings, 2, true), (String::new(), 0), "of another export");
    }

    #[test]
    fn the_last_fetch_has_those_under_way_and_their_end_changes_nothing() {
        let recordings = Arc::<VolumeRecordings>::default();
        recordings.start(1, "disk", 10).unwrap();
        let first = recordings.begin("disk", 10, WRITE);
        assert_eq!(taken(&recordings, 1, true).0, "10 write 4096 512 -\n");
        let second = recordings.begin("disk", 50, WRITE);
        first.end(60);
        assert_eq!(taken(&recordings, 1, true).0, "50 write 4096 512 -\n");
        recordings.start(1, "disk", 10).unwrap();
        second.end(70);
        assert_eq!(taken(&recordings, 1, true).0, "");
        recordings.stop(1);
        recordings.stop(1);
        assert!(!recordings.is_on());
    }

    #[test]
    fn requests_beyond_the_capacity_are_dropped_and_counted() {
        let recordings = Arc::<VolumeRecordings>::default();
        recordings.start(1, "disk", 2).unwrap();
        for at_ns in [1, 2, 3] {
            recordings.begin("disk", at_ns, FLUSH).end(9);
        }
        assert_eq!(taken(&recordings, 1, false), ("1 flush 0 0 8\n2 flush 0 0 7\n".to_owned(), 1));
        recordings.begin("disk", 10, FLUSH).end(10);
        assert_eq!(taken(&recordings, 1, false), ("10 flush 0 0 0\n".to_owned(), 0));
    }
}
