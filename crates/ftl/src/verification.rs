//! Opening headers of the log are read back before anything behind them counts.
//!
//! Where a device acknowledges a program that it has not done, or has done elsewhere, what is missing is told by what
//! refers to it: a patch by the tree, a page of the log by the frames behind. To the newest segment of the log nothing
//! refers but its opening header: without it the superblock looks free, and acknowledged writes would be gone without a
//! word. One read for each segment rules that out.

use crate::ftl::Ftl;
use crate::header::{Decoded, HeaderKind, HeaderPlace, decode, named_stream};
use crate::hint::{Priority, Stream};
use crate::request::{Op, Work};
use crate::scheduler::{Class, Lane};
use crate::superblock::FtlError;
use softflash_base::{IoBuf, Time};
use softflash_device::{Completion, DeviceError};

impl Ftl {
    /// A header was programmed, as the device says; `page` is what it was given.
    pub(crate) fn header_programmed(&mut self, now: Time, op: &Op, page: Option<IoBuf>) {
        let is_opening = op.work == Work::OpeningHeader;
        match page.filter(|page| is_opening && named_stream(page) == Some(Stream::Log)) {
            None => self.header_written(now, op),
            Some(buffer) => {
                let lane = Lane::new(Class::Read, Priority::Foreground);
                let read = Op { work: Work::Verification, data: Some(buffer), lane, ..*op };
                let read = self.add_op(read);
                self.enqueue(read);
            }
        }
    }

    /// A header was read back.
    pub(crate) fn header_read_back(&mut self, now: Time, op: &Op, completion: Completion) {
        let outcome = match (completion.result, completion.buffer) {
            (Err(error @ (DeviceError::Io { .. } | DeviceError::DeadDie)), _) => Err(error),
            (Ok(()), Some(page)) if self.is_opening_header(op, &page) => Ok(()),
            _ => Err(DeviceError::ProgramFailed),
        };
        match outcome {
            Ok(()) => self.header_written(now, op),
            Err(error) => self.header_failed(now, op, error),
        }
    }

    fn is_opening_header(&self, op: &Op, page: &[u8]) -> bool {
        let unit = &self.units[op.unit];
        let place = HeaderPlace { device_uuid: self.device_uuid, unit: unit.id.0, index: op.index };
        let (seats, blocks) = (self.layout.seats(), self.layout.blocks_per_plane);
        match decode(HeaderKind::Opening, place, seats, blocks, page) {
            Decoded::Valid(header) => header.generation == unit.slot(op.index).generation,
            _ => false,
        }
    }

    /// A header is not on the flash: the superblock takes nothing, and who waits hears it.
    pub(crate) fn header_failed(&mut self, now: Time, op: &Op, error: DeviceError) {
        self.program_failed(now, op, &error);
        let superblock = self.superblock(op.unit, op.index);
        let error = FtlError::Device { superblock, error };
        self.fail_waiters(now, op.unit, op.index, &error);
    }
}
