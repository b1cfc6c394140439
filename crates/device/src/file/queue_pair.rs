//! The queue pair of a file device.

use super::device::Shared;
use super::plan::{Done, Job, Plan, Planner};
use super::ring::Ring;
use super::sync::{SyncEngine, io_error};
use crate::claims::Claim;
use crate::command::{Command, Completion, Tag};
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
    marks: Vec<(Tag, BadBlock)>,
    /// Reused by every poll.
    reaped: Vec<Done>,
    capacity: usize,
    pool: BufferPool,
    shared: Arc<Shared>,
    _claim: Claim,
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
            planner,
            settling: false,
            waiting: VecDeque::new(),
            ended: Vec::new(),
            marks: Vec::new(),
            reaped: Vec::new(),
            capacity,
            pool,
            shared,
            _claim: claim,
        }
    }

    fn pending(&self) -> usize {
        let started = match &self.engine {
            Engine::Ring(ring) => ring.pending(),
            Engine::Sync(engine) => engine.pending(),
        };
        started + self.waiting.len() + self.ended.len() + self.marks.len()
    }

    /// Starts a request. A flush or durable write fails at once if an earlier one has failed.
    fn start(&mut self, job: Job) {
        if job.kind.settles() {
            if let Err(error) = self.shared.settled().check() {
                let Job { tag, buffer, .. } = job;
                return self.ended.push(Done { tag, buffer, result: Err(error), settles: true });
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
        self.ended.extend(self.marks.drain(..).map(|(tag, _)| Done {
            tag,
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
        &self.planner.units
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
    fn submit(&mut self, _now: Time, command: Command) -> Submit {
        if self.pending() >= self.capacity {
            return Submit::Full(command);
        }
        match self.planner.plan(command) {
            Plan::Job(job) => self.start(job),
            Plan::Done(done) => self.ended.push(done),
            Plan::MarkBad(tag, block) => self.marks.push((tag, block)),
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
        let settled = self.shared.settled();
        completions.extend(self.ended.drain(..).chain(self.reaped.drain(..)).map(|done| {
            let Done { tag, buffer, result, settles } = done;
            let result = if settles { settled.check().and(result) } else { result };
            Completion { tag, buffer, result, retries: 0, finished_at: now }
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
}
