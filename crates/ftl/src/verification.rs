//! Reads opening headers of log segments back before any append behind them is acknowledged.
//!
//! A device may acknowledge a program that it did not execute, or executed elsewhere. A missing
//! patch is detected through the tree that refers to it, a missing log page through the frames
//! behind it. The newest log segment is referred to by its opening header alone: without it the
//! superblock looks free, and acknowledged writes are lost without an error. One read per segment
//! prevents that.

use crate::ftl::Ftl;
use crate::header::{Decoded, HeaderKind, HeaderPlace, decode, named_stream};
use crate::hint::{Priority, Stream};
use crate::request::{Op, Work};
use crate::scheduler::{OpKind, QueueClass};
use crate::superblock::FtlError;
use softflash_base::{IoBuf, Time};
use softflash_device::{Completion, DeviceError};

impl Ftl {
    /// Handles a header that the device reports as programmed; `page` is the data of the program.
    pub(crate) fn header_programmed(&mut self, now: Time, op: &Op, page: Option<IoBuf>) {
        let is_opening = op.work == Work::OpeningHeader;
        match page.filter(|page| is_opening && named_stream(page) == Some(Stream::Log)) {
            None => self.header_written(now, op),
            Some(buffer) => {
                let class = QueueClass::new(OpKind::Read, Priority::Foreground);
                let read = Op { work: Work::Verification, data: Some(buffer), class, ..*op };
                let read = self.add_op(read);
                self.enqueue(read);
            }
        }
    }

    /// Handles a header that was read back.
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
        let (columns, blocks) = (self.layout.columns(), self.layout.blocks_per_plane);
        match decode(HeaderKind::Opening, place, columns, blocks, page) {
            Decoded::Valid(header) => header.generation == unit.slot(op.index).generation,
            _ => false,
        }
    }

    /// Handles a header that is not on the flash: the superblock takes no appends, and the waiting
    /// requests fail.
    pub(crate) fn header_failed(&mut self, now: Time, op: &Op, error: DeviceError) {
        self.program_failed(now, op, &error);
        let superblock = self.superblock(op.unit, op.index);
        let error = FtlError::Device { superblock, error };
        self.fail_waiters(now, op.unit, op.index, &error);
    }
}
