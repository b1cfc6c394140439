//! Commands of a die, and their completions.

use crate::address::DieIndex;
use crate::geometry::MAX_PLANES;
use crate::storage::StoreFailure;
use softflash_base::Time;
use thiserror::Error;

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Sense a page of each plane, then transfer it to the host.
    Read,
    /// Transfer a page for each plane to the die, then program it.
    Program,
    /// Erase a block of each plane.
    Erase,
}

/// A command for one die. With more than one plane it works on the same page number of one block in
/// each of `planes` adjacent planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DieCommand {
    /// Chosen by the submitter; returned with the completion.
    pub tag: u64,
    /// The die.
    pub die: DieIndex,
    /// The kind of work.
    pub kind: CommandKind,
    /// The first plane.
    pub plane: u8,
    /// The number of planes, from `plane` on.
    pub planes: u8,
    /// The block in each of those planes; `blocks[0]` is the one in `plane`.
    pub blocks: [u32; MAX_PLANES],
    /// The page of the blocks; ignored by an erase.
    pub page: u32,
    /// Whether a read of one plane transfers only the first
    /// [`sector_bytes`](crate::Geometry::sector_bytes) of the page: a controller may leave the rest
    /// in the die. The page is sensed, and fails, as a whole.
    pub head: bool,
}

impl DieCommand {
    /// A command on one plane.
    pub fn single(tag: u64, die: DieIndex, kind: CommandKind, block: u32, page: u32) -> DieCommand {
        DieCommand {
            tag,
            die,
            kind,
            plane: 0,
            planes: 1,
            blocks: [block, 0, 0, 0],
            page,
            head: false,
        }
    }
}

/// The result of one plane's part of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageStatus {
    /// Read without errors, programmed, or erased.
    #[default]
    Good,
    /// Read; ECC corrected this many bits in the worst codeword (255: that many or more).
    Corrected(u8),
    /// Read of a page that was not programmed since the block's erase. There is no data.
    Erased,
    /// Read; more bit errors than ECC corrects, also after all retries. There is no data.
    Uncorrectable,
    /// The program or erase failed, and the block is bad from now on.
    Failed,
    /// The die is dead: this command had no effect, and no later command will have one.
    Dead,
    /// The page store failed.
    StoreFailed(StoreFailure),
}

impl PageStatus {
    /// Whether the plane's part succeeded.
    pub fn is_good(self) -> bool {
        matches!(self, PageStatus::Good | PageStatus::Corrected(_))
    }
}

/// The completion of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The command's tag.
    pub tag: u64,
    /// When it ended.
    pub at: Time,
    /// When it was submitted.
    pub submitted_at: Time,
    /// The die.
    pub die: DieIndex,
    /// The kind of the command.
    pub kind: CommandKind,
    /// The number of planes.
    pub planes: u8,
    /// Read retries in the plane that needed most.
    pub retries: u8,
    /// Where the die holds the data of a read; see [`Array::read_data`](crate::Array::read_data).
    pub(crate) slot: u8,
    /// The result of each plane's part; entries from `planes` on are undefined.
    pub status: [PageStatus; MAX_PLANES],
}

impl Finished {
    /// The results of the planes, in the command's order.
    pub fn statuses(&self) -> &[PageStatus] {
        &self.status[..usize::from(self.planes)]
    }

    /// Whether every plane's part succeeded.
    pub fn is_good(&self) -> bool {
        self.statuses().iter().all(|status| status.is_good())
    }

    /// The time from submission to completion.
    pub fn latency_ns(&self) -> u64 {
        self.at.since_ns(self.submitted_at)
    }
}

/// Why a command was refused. The array is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The die has no room; try again when one of its commands has ended.
    #[error("the die is busy; submit again after its next completion")]
    Busy,
    /// The command breaks a rule of the flash.
    #[error(transparent)]
    Rule(#[from] RuleBroken),
}

/// A breach of the flash's rules: a defect in the layer above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleBroken {
    /// Outside the array.
    #[error("die {die} does not exist; there are {dies}")]
    NoSuchDie {
        /// The given value.
        die: DieIndex,
        /// Dies in the array.
        dies: u32,
    },
    /// Outside the die, or no plane at all.
    #[error("{planes} planes from plane {plane} on are not in a die of {limit} planes")]
    NoSuchPlanes {
        /// The first plane asked for.
        plane: u8,
        /// Planes asked for.
        planes: u8,
        /// Planes in a die.
        limit: u8,
    },
    /// Outside the plane.
    #[error("block {block} does not exist; a plane has {limit}")]
    NoSuchBlock {
        /// The given value.
        block: u32,
        /// Blocks in a plane.
        limit: u32,
    },
    /// Outside the block.
    #[error("page {page} does not exist; a block has {limit}")]
    NoSuchPage {
        /// The given value.
        page: u32,
        /// Pages in a block.
        limit: u32,
    },
    /// A page that is programmed already.
    #[error("page {page} of block {block} is programmed already; erase the block first")]
    ProgramWithoutErase {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
    /// A block that holds neither old data nor an erased state.
    #[error("block {block} is partly erased; erase it again before programming")]
    PartlyErased {
        /// The block.
        block: u32,
    },
    /// A page beyond the next one in order.
    #[error("page {page} of block {block} is out of order; the next page to program is {next}")]
    OutOfOrder {
        /// The block.
        block: u32,
        /// The page asked for.
        page: u32,
        /// The page that may be programmed.
        next: u32,
    },
    /// A block out of service.
    #[error("block {block} is marked bad")]
    BadBlock {
        /// The block.
        block: u32,
    },
    /// Data that does not fill the pages.
    #[error("{given} bytes of data for pages of {needed} bytes")]
    DataLength {
        /// Bytes given.
        given: usize,
        /// Bytes of the command's pages.
        needed: usize,
    },
    /// The given time is before the array's time or after its next event.
    #[error(
        "submitted at {now}, but the array must be between {earliest} and {latest}; advance it first"
    )]
    WrongTime {
        /// The time given.
        now: Time,
        /// The array's time.
        earliest: Time,
        /// Its next event.
        latest: Time,
    },
}
