//! Translation of commands to requests on the file.

use super::extent;
use super::options::Discard;
use crate::accepted::Accepted;
use crate::command::{Command, DeviceError, Operation};
use crate::geometry::UnitGeometry;
use crate::label::BadBlock;
use crate::validate::{blocks, check};
use softflash_base::io_buf::ALIGNMENT;
use softflash_base::{IoBuf, UnitSet};
use std::collections::BTreeSet;

/// An accepted command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) accepted: Accepted,
    /// The position of its unit; beyond all for a command that waits in no unit.
    pub(super) unit: usize,
}

/// A request to the operating system.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ticket: Ticket,
    pub(super) kind: Kind,
    /// The offset in the file.
    pub(super) offset: u64,
    /// The length in bytes.
    pub(super) len: u64,
    /// The data of a read or write; `len` bytes.
    pub(super) buffer: Option<IoBuf>,
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write { durable: bool },
    Discard { mode: i32 },
    Sync,
}

impl Kind {
    /// Whether its success means that data is durable.
    pub(super) fn settles(self) -> bool {
        matches!(self, Kind::Write { durable: true } | Kind::Sync)
    }
}

/// The end of a request, or of a command that needs none.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) ticket: Ticket,
    pub(super) buffer: Option<IoBuf>,
    pub(super) result: Result<(), DeviceError>,
    /// As [`Kind::settles`].
    pub(super) settles: bool,
}

/// The plan of a command.
#[derive(Debug)]
pub(super) enum Plan {
    /// A request to the operating system.
    Job(Job),
    /// Nothing to do; completes at the next poll.
    Done(Done),
    /// The label must be rewritten.
    MarkBad(Ticket, BadBlock),
}

/// The inputs of planning.
pub(super) struct Planner {
    pub(super) geometry: UnitGeometry,
    /// The units that commands may name: not those that were given up.
    pub(super) units: UnitSet,
    pub(super) discard: Discard,
    /// Whether buffers must be aligned for O_DIRECT.
    pub(super) direct: bool,
    pub(super) bad_blocks: BTreeSet<BadBlock>,
}

impl Planner {
    /// Checks a command and plans its execution.
    pub(super) fn plan(&self, command: Command, ticket: Ticket) -> Plan {
        if let Err(error) = self.check(&command) {
            let buffer = match command.operation {
                Operation::Read(buffer) | Operation::Program { data: buffer, .. } => Some(buffer),
                _ => None,
            };
            return Plan::Done(Done { ticket, buffer, result: Err(error), settles: false });
        }
        let target = &command.target;
        let job = |kind, offset, len, buffer| Plan::Job(Job { ticket, kind, offset, len, buffer });
        let offset = extent::offset(&self.geometry, target);
        match command.operation {
            Operation::Read(buffer) => job(Kind::Read, offset, buffer.len() as u64, Some(buffer)),
            Operation::Program { data, durable } => {
                job(Kind::Write { durable }, offset, data.len() as u64, Some(data))
            }
            Operation::Erase => match self.discard.fallocate_mode() {
                None => Plan::Done(Done { ticket, buffer: None, result: Ok(()), settles: false }),
                Some(mode) => {
                    let start =
                        offset - u64::from(target.page) * u64::from(self.geometry.page_bytes);
                    job(Kind::Discard { mode }, start, self.geometry.superblock_bytes(), None)
                }
            },
            Operation::Flush => job(Kind::Sync, 0, 0, None),
            Operation::MarkBad => {
                let block = blocks(target)[0];
                Plan::MarkBad(ticket, BadBlock { unit: target.unit.0, die: 0, plane: 0, block })
            }
        }
    }

    fn check(&self, command: &Command) -> Result<(), DeviceError> {
        check(&self.geometry, self.geometry.page_bytes, &self.units, command)?;
        match &command.operation {
            Operation::Read(buffer) => self.check_alignment(buffer),
            Operation::Program { data, .. } => {
                self.check_alignment(data)?;
                self.check_good(command)
            }
            Operation::Erase => self.check_good(command),
            Operation::Flush | Operation::MarkBad => Ok(()),
        }
    }

    fn check_alignment(&self, buffer: &IoBuf) -> Result<(), DeviceError> {
        if self.direct && !buffer.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return Err(DeviceError::RuleBroken(format!(
                "the buffer must start at a multiple of {ALIGNMENT} bytes; do not split pages"
            )));
        }
        Ok(())
    }

    /// Bad blocks may still be read, to rescue their data, but not be changed.
    fn check_good(&self, command: &Command) -> Result<(), DeviceError> {
        let unit = command.target.unit.0;
        let block = blocks(&command.target)[0];
        match self.bad_blocks.contains(&BadBlock { unit, die: 0, plane: 0, block }) {
            true => Err(DeviceError::BadBlock { block }),
            false => Ok(()),
        }
    }
}
