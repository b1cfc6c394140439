//! Completions of commands and requests.

use crate::ftl::Ftl;
use crate::request::{Done, Op, Request, RequestId, Work};
use crate::slab::place_of;
use crate::superblock::{FtlError, Superblock};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time};
use softflash_device::{Completion, DeviceError};

impl Ftl {
    /// Handles the completion of a command.
    pub(crate) fn complete(&mut self, now: Time, mut completion: Completion) {
        let op = self.ops.remove(place_of(completion.tag));
        if planted::bug(Bug::ProgramFailureIgnored)
            && completion.result == Err(DeviceError::ProgramFailed)
        {
            completion.result = Ok(());
        }
        self.count(&op, completion.buffer.as_ref(), &completion.result);
        let (unit, index, die) = (op.unit, op.index, op.target.die);
        if !op.work.uses_die() {
            return self.complete_urgent(now, op.work, completion.result);
        }
        self.units[unit].dies[usize::from(die)].finished(completion.finished_at);
        self.ready(unit, die);
        let superblock = self.superblock(unit, index);
        let named = |error| FtlError::Device { superblock, error };
        match op.work {
            Work::Read { request, part } => {
                let read = self.requests.get_mut(request);
                assert!(
                    read.superblock == Some(superblock),
                    "{superblock} was erased during a read of {:?}",
                    read.superblock
                );
                read.retries = completion.retries.max(read.retries);
                let result = completion.result.map_err(named);
                self.finish_part(now, request, part, completion.buffer, result);
            }
            Work::Append { request, part } => {
                if let Err(error) = &completion.result {
                    self.program_failed(now, &op, error);
                }
                let result = completion.result.map_err(named);
                self.finish_part(now, request, part, completion.buffer, result);
            }
            Work::EraseHeader | Work::OpeningHeader => match completion.result {
                Ok(()) => self.header_programmed(now, &op, completion.buffer),
                Err(error) => self.header_failed(now, &op, error),
            },
            Work::Verification => self.header_read_back(now, &op, completion),
            Work::Erase => self.erase_ended(now, &op, completion.result),
            Work::MarkBad | Work::Flush { .. } => {
                unreachable!("flushes and records of bad blocks use no die")
            }
        }
        self.op_ended(now, unit, index);
    }

    /// Ends a command that must not be submitted.
    pub(crate) fn cancel(&mut self, now: Time, id: u32, error: FtlError) {
        let op = self.ops.remove(id);
        match op.work {
            Work::Append { request, part } => {
                self.finish_part(now, request, part, op.data, Err(error));
            }
            Work::EraseHeader | Work::OpeningHeader => {
                self.fail_waiters(now, op.unit, op.index, &error);
            }
            work => unreachable!("{work:?} is never cancelled"),
        }
        self.op_ended(now, op.unit, op.index);
    }

    fn op_ended(&mut self, now: Time, unit: usize, index: u32) {
        let state = &mut self.units[unit];
        state.load -= 1;
        if state.load == 0 {
            state.idle_since = now;
        }
        state.slot_mut(index).under_way -= 1;
        self.settle(now, unit, index);
    }

    fn complete_urgent(&mut self, now: Time, work: Work, result: Result<(), DeviceError>) {
        match (work, result) {
            (Work::Flush { request }, result) => {
                if result.is_ok() {
                    self.header_flushed(request);
                }
                self.finish_one(now, request, result.map_err(FtlError::Flush));
            }
            (_, Ok(())) => {}
            (_, Err(error)) => {
                tracing::warn!(%error, "a bad block is not recorded; its next use fails again");
            }
        }
    }

    /// Records that the opening header of a superblock is durable, if the flush was for an append
    /// to it.
    fn header_flushed(&mut self, request: u32) {
        let Some(superblock) = self.requests.get(request).superblock else { return };
        if let Ok(unit) = self.locate(&superblock) {
            self.units[unit].slot_mut(superblock.index).header_durable = true;
        }
    }

    fn count(&mut self, op: &Op, buffer: Option<&IoBuf>, result: &Result<(), DeviceError>) {
        let counters = &mut self.units[op.unit].counters;
        let bytes = buffer.map_or(0, |buffer| buffer.len() as u64);
        match op.work {
            Work::Read { .. } | Work::Verification => {
                counters.reads += 1;
                counters.bytes_read += bytes;
            }
            Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader => {
                counters.programs += 1;
                counters.bytes_programmed += bytes;
            }
            Work::Erase => counters.erases += 1,
            Work::MarkBad => {}
            Work::Flush { .. } => return,
        }
        counters.errors += u64::from(result.is_err());
    }

    /// Returns a piece of the buffer of a request.
    fn finish_part(
        &mut self,
        now: Time,
        request: u32,
        part: u32,
        buffer: Option<IoBuf>,
        result: Result<(), FtlError>,
    ) {
        self.requests.get_mut(request).parts[part as usize] = buffer;
        self.finish_one(now, request, result);
    }

    /// Ends one of the commands or headers for which a request waits.
    pub(crate) fn finish_one(&mut self, now: Time, place: u32, result: Result<(), FtlError>) {
        let request = self.requests.get_mut(place);
        if request.result.is_ok() {
            request.result = result;
        }
        request.remaining -= 1;
        if request.remaining > 0 {
            return;
        }
        if request.flush_at_end && request.result.is_ok() {
            request.flush_at_end = false;
            request.remaining = 1;
            return self.queue_flush(now, place);
        }
        let mut request = self.requests.remove(place);
        let buffer = request.join_parts();
        let id = RequestId::new(request.serial, place);
        let Request { result, retries, .. } = request;
        self.finished.push(Done { request: id, result, buffer, retries });
    }

    /// The handle of the current life of a superblock.
    pub(crate) fn superblock(&self, unit: usize, index: u32) -> Superblock {
        let unit = &self.units[unit];
        Superblock { unit: unit.id, index, generation: unit.slot(index).generation }
    }
}
