//! Requests of the layers above, and the commands that they become.

use crate::scheduler::Lane;
use crate::superblock::{FtlError, Superblock};
use smallvec::SmallVec;
use softflash_base::{IoBuf, Time};
use softflash_device::Target;

/// Names a request from its submission until its [`Done`] has been delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    pub(crate) fn new(serial: u32, place: u32) -> RequestId {
        RequestId(u64::from(serial) << 32 | u64::from(place))
    }

    /// A small number that no other request under way has; reused later. Good to index a table.
    pub fn place(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The end of a request.
#[derive(Debug)]
pub struct Done {
    /// The request.
    pub request: RequestId,
    /// Success, or why not. After a failed read the buffer's contents mean nothing.
    pub result: Result<(), FtlError>,
    /// The buffer given with an append or read, back with its owner; lost only if the device lost it.
    pub buffer: Option<IoBuf>,
    /// Read retries of the page that needed most.
    pub retries: u8,
}

/// Parts that most requests have at most.
const FEW_PARTS: usize = 8;

/// A request under way.
pub(crate) struct Request {
    pub serial: u32,
    /// None for a flush.
    pub superblock: Option<Superblock>,
    /// Commands and headers that have not finished.
    pub remaining: u32,
    /// The pieces of the buffer in order, as they come back.
    pub parts: SmallVec<[Option<IoBuf>; FEW_PARTS]>,
    pub result: Result<(), FtlError>,
    /// Read retries of the page that needed most.
    pub retries: u8,
    /// A flush makes it durable when all else is done.
    pub flush_at_end: bool,
}

impl Request {
    pub fn new(serial: u32, superblock: Option<Superblock>) -> Request {
        Request {
            serial,
            superblock,
            remaining: 0,
            parts: SmallVec::new(),
            result: Ok(()),
            retries: 0,
            flush_at_end: false,
        }
    }

    /// The whole buffer again.
    pub fn join_parts(&mut self) -> Option<IoBuf> {
        let mut parts = self.parts.drain(..);
        let mut whole = parts.next()??;
        for part in parts {
            whole.unsplit(part?);
        }
        Some(whole)
    }
}

/// Why a command is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Read {
        request: u32,
        part: u32,
    },
    Append {
        request: u32,
        part: u32,
    },
    EraseHeader,
    OpeningHeader,
    /// Reads an opening header back.
    Verification,
    Erase,
    MarkBad,
    Flush {
        request: u32,
    },
}

impl Work {
    /// Whether it changes a superblock and so keeps its place among the others that do.
    pub fn is_mutation(self) -> bool {
        matches!(self, Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader | Work::Erase)
    }

    /// Whether it waits in a die's queue.
    pub fn uses_die(self) -> bool {
        self.is_mutation() || matches!(self, Work::Read { .. } | Work::Verification)
    }
}

/// A command, waiting or in the device.
pub(crate) struct Op {
    pub work: Work,
    /// Place of the unit in the FTL's table.
    pub unit: usize,
    /// The superblock.
    pub index: u32,
    pub target: Target,
    pub data: Option<IoBuf>,
    pub durable: bool,
    pub lane: Lane,
    pub since: Time,
}
