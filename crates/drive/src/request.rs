//! What a host asks, and what it hears.

use softflash_base::Time;

/// What a request asks. As wide as its neighbours in requests, which are then copied in whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum AccessKind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Forget bytes.
    Trim,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRequest {
    /// Returned at the end.
    pub tag: u64,
    /// What it asks.
    pub kind: AccessKind,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub bytes: u64,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The request's tag.
    pub tag: u64,
    /// What it asked.
    pub kind: AccessKind,
    /// How long it was.
    pub bytes: u64,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When the host heard of its end.
    pub at: Time,
}

impl Done {
    /// From submission to end, in nanoseconds.
    #[inline]
    pub fn latency_ns(&self) -> u64 {
        self.at.0 - self.submitted_at.0
    }
}

/// A request in the drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    tag: u64,
    bytes: u64,
    submitted_at: u64,
    /// Pages that have not ended.
    pub(crate) pages_left: u32,
    kind: AccessKind,
}

impl InFlight {
    /// A page has ended; whether it was the last.
    #[inline]
    pub(crate) fn end_page(&mut self) -> bool {
        self.pages_left -= 1;
        self.pages_left == 0
    }
}

/// The requests in the drive, in places that are used again.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    places: Vec<InFlight>,
    free: Vec<u32>,
}

impl Requests {
    #[inline]
    pub(crate) fn add(&mut self, now: u64, request: &HostRequest, pages: u32) -> u32 {
        let new = InFlight {
            tag: request.tag,
            bytes: request.bytes,
            submitted_at: now,
            pages_left: pages,
            kind: request.kind,
        };
        match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = new;
                place
            }
            None => {
                self.places.push(new);
                (self.places.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> &mut InFlight {
        &mut self.places[place as usize]
    }

    /// Takes a request out, as it has ended.
    #[inline]
    pub(crate) fn end(&mut self, place: u32, at: u64) -> Done {
        let InFlight { tag, bytes, submitted_at, kind, .. } = self.places[place as usize];
        self.free.push(place);
        Done { tag, kind, bytes, submitted_at: Time(submitted_at), at: Time(at) }
    }

    /// Requests in the drive.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<InFlight>() + self.free.capacity() * 4) as u64
    }
}
