//! Commands of a device, and their completions.

use crate::geometry::MAX_PLANES;
use crate::hint::Hint;
use softflash_base::{IoBuf, Time, UnitId};
use thiserror::Error;

/// Chosen by the submitter; returned with the completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// The target of a command: the same page of one block in each of `planes` adjacent planes of one
/// die. Consecutive pages of the buffer are plane by plane, then row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The unit.
    pub unit: UnitId,
    /// The die inside the unit.
    pub die: u8,
    /// The first plane.
    pub plane: u8,
    /// The number of planes, from `plane` on (1 for a single-plane operation).
    pub planes: u8,
    /// The block in each of those planes; `blocks[0]` is the one in `plane`. Blocks may differ, as
    /// a bad one is replaced by another of its plane.
    pub blocks: [u32; MAX_PLANES],
    /// The first page in the blocks; 0 for an erase.
    pub page: u32,
    /// Rows of pages that a read or program covers: `rows * planes` pages in all.
    pub rows: u32,
}

/// The operation.
#[derive(Debug)]
pub enum Operation {
    /// Sense the pages and transfer them into the buffer (`rows * planes * page_bytes` long; of one
    /// page also [`sector_bytes`](crate::Described::sector_bytes), its beginning).
    Read(IoBuf),
    /// Program the pages from the buffer. Pages of a block must be programmed in order.
    Program {
        /// The data, `rows * planes * page_bytes` long.
        data: IoBuf,
        /// Complete only when the data survives a power cut (NVMe's Force Unit Access), and with it
        /// all data of this queue pair that completed before the submission and that a power cut in
        /// these programs can affect. Devices whose programs are always durable ignore it.
        durable: bool,
    },
    /// Erase the target's blocks.
    Erase,
    /// Complete when everything that completed on this queue pair before the submission survives a
    /// power cut. The target's unit is ignored.
    Flush,
    /// Record durably that the target's blocks must not be used again.
    MarkBad,
}

/// A command for a queue pair.
#[derive(Debug)]
pub struct Command {
    /// Returned with the completion.
    pub tag: Tag,
    /// The target.
    pub target: Target,
    /// The operation.
    pub operation: Operation,
    /// What the layers above say of it. A device may ignore it.
    pub hint: Hint,
}

/// The end of a command.
#[derive(Debug)]
pub struct Completion {
    /// The command's tag.
    pub tag: Tag,
    /// The buffer of a read or program, returned to its owner.
    pub buffer: Option<IoBuf>,
    /// Success, or the error. After a failed read the buffer's contents are undefined.
    pub result: Result<(), DeviceError>,
    /// The most read retries of any page: repeated reads with other thresholds until ECC could
    /// correct it. Such data should be rewritten before it is lost. 0 if the device does not report
    /// retries.
    pub retries: u8,
    /// Commands of the same die that the device had accepted before this one and not ended.
    pub queue: u16,
    /// The time from the acceptance by the device to the end, in nanoseconds: the wait behind
    /// `queue` commands, and the work. 0 for a command that the device refused.
    pub service_ns: u64,
    /// The time of completion.
    pub finished_at: Time,
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The page's bit errors exceed what ECC corrects. The data is lost unless a copy exists.
    #[error("uncorrectable bit errors")]
    Uncorrectable,
    /// The program failed; the page's contents are undefined and the block must be retired.
    #[error("program failed; retire the block")]
    ProgramFailed,
    /// The erase failed; the block must be retired.
    #[error("erase failed; retire the block")]
    EraseFailed,
    /// The page was not programmed since the last erase.
    #[error("page {page} is erased, nothing to read")]
    Erased {
        /// The first such page.
        page: u32,
    },
    /// The die is dead: it executes no commands, and its data cannot be read.
    #[error("the die is dead; its contents are lost")]
    DeadDie,
    /// The block is marked bad.
    #[error("block {block} is marked bad")]
    BadBlock {
        /// The block.
        block: u32,
    },
    /// A program that skips or repeats a page, or any other breach of the flash's physical rules: a
    /// defect in the layer above.
    #[error("against the rules of the flash: {0}")]
    RuleBroken(String),
    /// An address or length outside the device.
    #[error("outside the device: {0}")]
    OutOfRange(String),
    /// The operating system failed the request.
    #[error("I/O error: {}", std::io::Error::from_raw_os_error(*errno))]
    Io {
        /// The `errno`.
        errno: i32,
    },
    /// A flush of the device failed, this one or an earlier one: no written data is guaranteed to
    /// be durable any more.
    #[error(
        "a flush of the device failed ({}): written data may be lost; check the device, then restart",
        std::io::Error::from_raw_os_error(*errno)
    )]
    Unsettled {
        /// The `errno` of the first flush or durable write that failed.
        errno: i32,
    },
}
