//! Requests of the layers above, and their commands.

use crate::scheduler::QueueClass;
use crate::superblock::{FtlError, Superblock};
use smallvec::SmallVec;
use softflash_base::{IoBuf, Time};
use softflash_device::Target;

/// Identifies a request from its submission until its [`Done`] is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    pub(crate) fn new(serial: u32, place: u32) -> RequestId {
        RequestId(u64::from(serial) << 32 | u64::from(place))
    }

    /// A small number that no other request under way has. It is reused later, and can index a
    /// table.
    pub fn place(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct Done {
    /// The request.
    pub request: RequestId,
    /// Success or an error. After a failed read the contents of the buffer are undefined.
    pub result: Result<(), FtlError>,
    /// The buffer of the append or read; none for a flush, and if the device lost it.
    pub buffer: Option<IoBuf>,
    /// Most read retries of any page.
    pub retries: u8,
}

/// Most requests have at most this many parts.
const FEW_PARTS: usize = 8;

/// A request under way.
pub(crate) struct Request {
    pub serial: u32,
    /// None for a flush.
    pub superblock: Option<Superblock>,
    /// Commands and headers that have not ended.
    pub remaining: u32,
    /// The pieces of the buffer in order; none while a command has it.
    pub parts: SmallVec<[Option<IoBuf>; FEW_PARTS]>,
    pub result: Result<(), FtlError>,
    /// Most read retries of any page.
    pub retries: u8,
    /// Whether a flush follows the other commands, to make the request durable.
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

    /// Joins the pieces of the buffer.
    pub fn join_parts(&mut self) -> Option<IoBuf> {
        let mut parts = self.parts.drain(..);
        let mut whole = parts.next()??;
        for part in parts {
            whole.unsplit(part?);
        }
        Some(whole)
    }
}

/// The purpose of a command.
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
    /// Reads back an opening header.
    Verification,
    Erase,
    MarkBad,
    Flush {
        request: u32,
    },
}

impl Work {
    /// Whether the command changes a superblock. Such commands of a superblock keep their order.
    pub fn is_mutation(self) -> bool {
        matches!(self, Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader | Work::Erase)
    }

    /// Whether the command waits in the queue of a die.
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
    pub class: QueueClass,
    pub since: Time,
}
