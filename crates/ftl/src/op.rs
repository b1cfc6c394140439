//! The commands of requests and of the FTL itself.

use crate::layout::Run;
use crate::scheduler::{OpKind, QueueClass};
use softflash_base::{IoBuf, Time};
use softflash_device::{DeviceError, Hint, Target};

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
    /// Of a block that no superblock has.
    EraseIdle,
    MarkBad,
    Flush {
        request: u32,
    },
}

impl Work {
    /// Whether the command changes a superblock. Such commands of a superblock keep their order.
    pub fn is_mutation(self) -> bool {
        matches!(self.kind(), Some(OpKind::Program | OpKind::Erase))
    }

    /// The operation on a die; none if it needs none.
    pub fn kind(self) -> Option<OpKind> {
        match self {
            Work::Read { .. } | Work::Verification => Some(OpKind::Read),
            Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader => Some(OpKind::Program),
            Work::Erase | Work::EraseIdle => Some(OpKind::Erase),
            Work::MarkBad | Work::Flush { .. } => None,
        }
    }

    /// Whether the command waits in the queue of a die.
    pub fn uses_die(self) -> bool {
        self.kind().is_some()
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
    pub hint: Hint,
    pub since: Time,
}

impl Op {
    /// The pages of the target.
    pub fn run(&self) -> Run {
        Run {
            die: self.target.die,
            plane: self.target.plane,
            planes: self.target.planes,
            page: self.target.page,
            rows: self.target.rows,
        }
    }
}

/// The next step for the superblock of a command that has ended.
pub(crate) enum Next {
    Nothing,
    /// All blocks are erased.
    WriteEraseHeader,
    /// All its headers are on the flash: the requests that wait for them end.
    EndHeaderWaits,
    /// A header is not on the flash: the superblock takes no appends, and the waiting requests
    /// fail.
    HeaderLost(DeviceError),
    /// It cannot be erased: the waiting requests fail.
    EraseFailed(DeviceError),
}
