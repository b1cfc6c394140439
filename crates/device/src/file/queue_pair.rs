//! The queue pair of a file device.

use super::device::Shared;
use super::plan::{Done, Job, Plan, Planner, Ticket};
use super::ring::Ring;
use super::sync::{SyncEngine, io_error};
use crate::accepted::Accepted;
use crate::claims::Claim;
use crate::command::{Command, Completion, Operation};
use crate::geometry::UnitGeometry;
use crate::label::BadBlock;
use crate::queue_pair::{Described, QueuePair, Submit, Wake};
use softflash_base::{BufferPool, Time, UnitId, UnitSet};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

/// The executor of requests.
pub(super) enum Engine {
    Ring(Box<Ring>),
    Sync(SyncEngine),
}

/// A queue pair over some units of a file device.
pub(super) struct FileQueuePair {
    // Dropped first: it waits for the requests that use the following fields.
    engine: Engine,
    /// The file, with O_DIRECT unless that was refused or is off.
    data: File,
    planner: Planner,
    /// A flush or durable write is in progress, and `waiting` ones wait for it. Only with the page
    /// cache: there, of two concurrent ones, one may get the error of the other.
    settling: bool,
    waiting: VecDeque<Job>,
    /// Ended without a request; delivered by the next poll.
    ended: Vec<Done>,
    /// Bad-block marks that the next poll writes to the label.
    marks: Vec<(Ticket, BadBlock)>,
    /// Reused by every poll.
    reaped: Vec<Done>,
    /// Commands of each unit that are accepted and not returned.
    in_units: Vec<u16>,
    capacity: usize,
    pool: BufferPool,
    shared: Arc<Shared>,
    claim: Claim,
}

impl FileQueuePair {
    pub(super) fn new(
        engine: Engine,
        data: File,
        planner: Planner,
        capacity: usize,
        pool: BufferPool,
        shared: Arc<Shared>,
        claim: Claim,
    ) -> FileQueuePair {
        FileQueuePair {
            engine,
            data,
            in_units: vec![0; claim.units().len()],
            planner,
            settling: false,
            waiting: VecDeque::new(),
            ended: Vec::new(),
            marks: Vec::new(),
            reaped: Vec::new(),
            capacity,
            pool,
            shared,
            claim,
        }
    }

    fn pending(&self) -> usize {
        let started = match &self.engine {
            Engine::Ring(ring) => ring.pending(),
            Engine::Sync(engine) => engine.pending(),
        };
        started + self.waiting.len() + self.ended.len() + self.marks.len()
    }

    /// Accepts a command behind the others of its unit.
    fn accept(&mut self, now: Time, command: &Command) -> Ticket {
        let unit = match command.operation {
            Operation::Flush | Operation::MarkBad => None,
            _ => self.claim.units().position(command.target.unit.0),
        };
        let unit = unit.unwrap_or(usize::MAX);
        let in_unit = self.in_units.get_mut(unit);
        let queue = in_unit.map_or(0, |in_unit| std::mem::replace(in_unit, *in_unit + 1));
        Ticket { accepted: Accepted::new(command.tag, now, queue), unit }
    }

    /// Whether commands for a unit are accepted and not returned.
    fn is_at_work_on(&self, unit: UnitId) -> bool {
        let position = self.claim.units().position(unit.0);
        let in_unit = position.and_then(|position| self.in_units.get(position));
        in_unit.is_some_and(|in_unit| *in_unit > 0)
            || self.marks.iter().any(|(_, bad)| bad.unit == unit.0)
    }

    /// Starts a request. A flush or durable write fails at once if an earlier one has failed.
    fn start(&mut self, job: Job) {
        if job.kind.settles() {
            if let Err(error) = self.shared.settled().check() {
                let Job { ticket, buffer, .. } = job;
                return self.ended.push(Done { ticket, buffer, result: Err(error), settles: true });
            }
            if self.settling {
                return self.waiting.push_back(job);
            }
            self.settling = !self.planner.direct;
        }
        match &mut self.engine {
            Engine::Ring(ring) => ring.start(job),
            Engine::Sync(engine) => engine.start(job),
        }
    }

    /// Records the results of completed flushes and durable writes, all of them before any is
    /// delivered: an error also fails those that succeeded in the same poll. Starts the waiting
    /// ones.
    fn settle(&mut self) {
        let settled = self.shared.settled();
        for done in self.reaped.iter_mut().filter(|done| done.settles) {
            done.result = settled.judge(done.result.clone());
            self.settling = false;
        }
        while !self.settling
            && let Some(job) = self.waiting.pop_front()
        {
            self.start(job);
        }
    }

    /// Rewrites the label once for all waiting marks. Rare, so it may block the poll for the few
    /// milliseconds of two durable writes.
    fn record_marks(&mut self) {
        if self.marks.is_empty() {
            return;
        }
        let blocks: Vec<BadBlock> = self.marks.iter().map(|(_, block)| *block).collect();
        let result = self.shared.label().mark_bad(&blocks).map_err(io_error);
        if result.is_ok() {
            self.planner.bad_blocks.extend(blocks);
        }
        self.ended.extend(self.marks.drain(..).map(|(ticket, _)| Done {
            ticket,
            buffer: None,
            result: result.clone(),
            settles: false,
        }));
    }
}

impl Described for FileQueuePair {
    fn geometry(&self) -> &UnitGeometry {
        &self.planner.geometry
    }

    fn device_uuid(&self) -> u128 {
        self.shared.info().uuid
    }

    fn units(&self) -> &UnitSet {
        self.claim.units()
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        let of_unit = self.planner.bad_blocks.iter().filter(|bad| bad.unit == unit.0);
        of_unit.map(|bad| (bad.die, bad.plane, bad.block)).collect()
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for FileQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        if self.pending() >= self.capacity {
            return Submit::Full(command);
        }
        let ticket = self.accept(now, &command);
        match self.planner.plan(command, ticket) {
            Plan::Job(job) => self.start(job),
            Plan::Done(done) => self.ended.push(done),
            Plan::MarkBad(ticket, block) => self.marks.push((ticket, block)),
        }
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        match &mut self.engine {
            Engine::Ring(ring) => ring.poll(&mut self.reaped),
            Engine::Sync(engine) => {
                engine.poll(self.shared.instead().unwrap_or(&self.data), &mut self.reaped);
            }
        }
        self.record_marks();
        self.settle();
        let FileQueuePair { shared, ended, reaped, in_units, .. } = self;
        let settled = shared.settled();
        completions.extend(ended.drain(..).chain(reaped.drain(..)).map(|done| {
            let Done { ticket, buffer, result, settles } = done;
            if let Some(in_unit) = in_units.get_mut(ticket.unit) {
                *in_unit -= 1;
            }
            let result = if settles { settled.check().and(result) } else { result };
            ticket.accepted.ended(now, buffer, result)
        }));
    }

    fn wake(&self) -> Wake {
        if !self.ended.is_empty() || !self.marks.is_empty() {
            return Wake::Now;
        }
        match &self.engine {
            Engine::Ring(ring) if ring.must_poll() => Wake::Now,
            Engine::Ring(ring) if ring.pending() > 0 => Wake::Readable(ring.descriptor()),
            Engine::Sync(engine) if engine.pending() > 0 => Wake::Now,
            _ => Wake::Idle,
        }
    }

    fn give_up(&mut self, unit: UnitId) {
        assert!(!self.is_at_work_on(unit), "unit {unit} is given up with commands under way");
        self.claim.release(unit);
        self.planner.units = self.claim.held().clone();
    }
}
