//! The FTL as a whole: its requests, and the loop that collects completions, applies them and
//! submits the next commands.

mod allocation;
mod inspection;
mod transfer;
mod whole_unit;

use crate::commands::Commands;
use crate::config::FtlConfig;
use crate::dispatch::Dispatcher;
use crate::erase;
use crate::failure::program_failed;
use crate::headers::Headers;
use crate::layout::Layout;
use crate::op::{Next, Op, Work};
use crate::requests::{Done, RequestId, Requests};
use crate::scheduler::{OpKind, QueueClass};
use crate::slab::place_of;
use crate::slots::State;
use crate::superblock::FtlError;
use crate::unit::Unit;
use crate::units::Units;
use softflash_base::planted::{self, Bug};
use softflash_base::{BufferPool, Time, UnitSet};
use softflash_device::{Completion, DeviceError, Hint, Priority, QueuePair, Wake};
use softflash_policy::WearPolicy;
use whole_unit::UnitWork;

/// The host FTL over the units of one queue pair.
///
/// Requests are submitted at any time and finish in [`poll`](Ftl::poll), which must be called when
/// [`wake`](Ftl::wake) says so, and after submissions. A request that is refused at submission
/// returns its buffer with the error.
pub struct Ftl {
    dispatcher: Dispatcher,
    layout: Layout,
    wear: WearPolicy,
    units: Units,
    requests: Requests,
    commands: Commands,
    headers: Headers,
    completions: Vec<Completion>,
    /// Requests for whole units.
    unit_work: Vec<UnitWork>,
}

impl Ftl {
    /// An FTL over recovered units, at this epoch of the table of sets.
    pub(crate) fn new(
        queue: Box<dyn QueuePair>,
        config: &FtlConfig,
        epoch: u32,
        layout: Layout,
        units: Vec<Unit>,
    ) -> Ftl {
        Ftl {
            layout,
            wear: config.wear,
            requests: Requests::new(units.len()),
            commands: Commands::new(units.len(), config.order.is_fifo()),
            headers: Headers::new(queue.device_uuid(), epoch, queue.buffers().clone()),
            units: Units::new(queue.units().clone(), units),
            dispatcher: Dispatcher::new(queue, config),
            completions: Vec::new(),
            unit_work: Vec::new(),
        }
    }

    /// The units of the queue pair, also those that have left.
    pub fn units(&self) -> &UnitSet {
        self.units.ids()
    }

    /// The identity of the device.
    pub fn device_uuid(&self) -> u128 {
        self.dispatcher.device().device_uuid()
    }

    /// The pool for the buffers of requests. Other buffers work too but may be slower.
    pub fn buffers(&self) -> &BufferPool {
        self.dispatcher.device().buffers()
    }

    /// Collects the completions up to `now`, submits commands that the device can take, and erases
    /// ahead of need.
    pub fn poll(&mut self, now: Time, done: &mut Vec<Done>) {
        loop {
            let mut completions = std::mem::take(&mut self.completions);
            self.dispatcher.collect_completions(now, &mut completions);
            for completion in completions.drain(..) {
                self.complete(now, completion);
            }
            self.completions = completions;
            self.commands.retry_stalled();
            self.erase_ahead(now);
            self.end_unit_work(now);
            // A second poll may have to start the commands submitted here.
            if !self.dispatch(now) {
                break;
            }
        }
        done.extend(self.requests.take_finished());
    }

    /// The event to wait for before the next [`poll`](Ftl::poll) can make progress.
    pub fn wake(&self) -> Wake {
        if self.requests.any_finished() {
            return Wake::Now;
        }
        match (self.dispatcher.device().wake(), self.units.next_due()) {
            (Wake::At(device), Some(due)) => Wake::At(device.min(due)),
            (Wake::Idle, _) if self.commands.wait_for_device() => Wake::Now,
            (Wake::Idle, Some(due)) => Wake::At(due),
            // When the descriptor becomes readable, `poll` also starts the erases that are due.
            (device, _) => device,
        }
    }

    /// Whether no request or command is under way and all finished requests are collected.
    pub fn idle(&self) -> bool {
        self.commands.no_ops() && self.requests.none_under_way() && !self.requests.any_finished()
    }

    /// Requests a flush. When it is done, all appends that were done when it was requested survive
    /// a power cut.
    pub fn flush(&mut self, now: Time, hint: Hint) -> RequestId {
        let (place, id) = self.requests.begin_single(hint);
        self.commands.queue_flush(now, place, hint);
        self.dispatch(now);
        id
    }

    /// Submits as many commands as the device accepts. Returns true if there was any.
    fn dispatch(&mut self, now: Time) -> bool {
        let mut submitted = self.dispatcher.submit_urgent(now, &mut self.commands);
        while let Some(refused) =
            self.dispatcher.submit_ready(now, &mut self.units, &mut self.commands, &mut submitted)
        {
            self.cancel(now, refused.op, refused.error);
        }
        submitted
    }

    /// Starts the erases ahead of need that are due.
    fn erase_ahead(&mut self, now: Time) {
        for place in self.units.due(now) {
            let unit = &mut self.units[place];
            if let Some(chosen) = unit.next_to_erase() {
                unit.set_state(chosen.index, State::Erasing);
                let class = QueueClass::new(OpKind::Erase, Priority::Background);
                erase::start(unit, &mut self.commands, now, chosen.index, class);
            }
        }
    }

    /// Handles the completion of a command.
    fn complete(&mut self, now: Time, mut completion: Completion) {
        let op = self.commands.take_op(place_of(completion.tag));
        if planted::bug(Bug::ProgramFailureIgnored)
            && completion.result == Err(DeviceError::ProgramFailed)
        {
            completion.result = Ok(());
        }
        let unit = &mut self.units[op.unit];
        unit.count_command(&op, &completion);
        if !op.work.uses_die() {
            return self.complete_urgent(now, op.work, completion.result);
        }
        unit.die_mut(op.target.die).finished(completion.finished_at);
        self.commands.die_ready(op.unit, op.target.die);
        let next = self.apply(now, &op, completion);
        self.follow_up(now, &op, next);
        self.command_ended(now, &op);
    }

    /// Applies the completion of a command of a die to its request or superblock.
    fn apply(&mut self, now: Time, op: &Op, completion: Completion) -> Next {
        let (unit, commands) = (&mut self.units[op.unit], &mut self.commands);
        let superblock = unit.superblock(op.index);
        let named = |error| FtlError::Device { superblock, error };
        match op.work {
            Work::Read { request, part } => {
                self.requests.note_read(request, superblock, completion.retries);
                let result = completion.result.map_err(named);
                self.requests.finish_part(request, part, completion.buffer, result);
                self.queue_flushes(now);
                Next::Nothing
            }
            Work::Append { request, part, .. } => {
                if let Err(error) = &completion.result {
                    program_failed(unit, commands, self.dispatcher.device(), now, op, error);
                }
                let result = completion.result.map_err(named);
                self.requests.finish_part(request, part, completion.buffer, result);
                self.queue_flushes(now);
                Next::Nothing
            }
            Work::EraseHeader | Work::OpeningHeader => match completion.result {
                Ok(()) => self.headers.programmed(unit, commands, now, op, completion.buffer),
                Err(error) => Next::HeaderLost(error),
            },
            Work::Verification => self.headers.read_back(unit, commands, now, op, completion),
            Work::Erase => {
                let device = self.dispatcher.device();
                erase::ended(unit, commands, device, now, op, completion.result)
            }
            Work::EraseIdle => {
                let device = self.dispatcher.device();
                erase::idle_ended(unit, commands, device, now, op, completion.result);
                Next::Nothing
            }
            Work::MarkBad | Work::Flush { .. } => {
                unreachable!("flushes and records of bad blocks use no die")
            }
        }
    }

    /// Executes the next step after a completion.
    fn follow_up(&mut self, now: Time, op: &Op, next: Next) {
        let (unit, commands) = (&mut self.units[op.unit], &mut self.commands);
        let superblock = unit.superblock(op.index);
        let named = |error| FtlError::Device { superblock, error };
        match next {
            Next::Nothing => {}
            Next::WriteEraseHeader => {
                self.headers.write_erase_header(unit, commands, now, op.index);
            }
            Next::EndHeaderWaits => {
                self.requests.headers_ended(op.unit, op.index, &Ok(()));
                self.queue_flushes(now);
            }
            Next::HeaderLost(error) => {
                program_failed(unit, commands, self.dispatcher.device(), now, op, &error);
                self.fail_waiters(now, op.unit, op.index, &named(error));
            }
            Next::EraseFailed(error) => {
                self.fail_waiters(now, op.unit, op.index, &named(error));
            }
        }
    }

    fn complete_urgent(&mut self, now: Time, work: Work, result: Result<(), DeviceError>) {
        match (work, result) {
            (Work::Flush { request }, result) => {
                if result.is_ok() {
                    self.header_flushed(request);
                }
                self.requests.finish_one(request, result.map_err(FtlError::Flush));
                self.queue_flushes(now);
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
        let Some(superblock) = self.requests.superblock_of(request) else { return };
        if let Ok(unit) = self.units.locate(&superblock) {
            self.units[unit].slot_mut(superblock.index).note_header_durable();
        }
    }

    /// Ends a command that must not be submitted.
    fn cancel(&mut self, now: Time, id: u32, error: FtlError) {
        let mut op = self.commands.take_op(id);
        match op.work {
            Work::Append { request, part, .. } => {
                self.requests.finish_part(request, part, op.data.take(), Err(error));
            }
            Work::EraseHeader | Work::OpeningHeader => {
                self.fail_waiters(now, op.unit, op.index, &error);
            }
            work => unreachable!("{work:?} is never cancelled"),
        }
        self.command_ended(now, &op);
    }

    /// Ends all requests and programs that wait for the erase or the headers of a superblock.
    fn fail_waiters(&mut self, now: Time, unit: usize, index: u32, error: &FtlError) {
        self.requests.headers_ended(unit, index, &Err(error.clone()));
        for op in self.commands.take_held(unit, index) {
            self.cancel(now, op, error.clone());
        }
    }

    /// Queues the flushes that end requests.
    fn queue_flushes(&mut self, now: Time) {
        for (request, hint) in self.requests.take_flushes() {
            self.commands.queue_flush(now, request, hint);
        }
    }

    fn command_ended(&mut self, now: Time, op: &Op) {
        let unit = &mut self.units[op.unit];
        unit.command_ended(now, op.index);
        unit.settle(now, op.index);
    }
}
