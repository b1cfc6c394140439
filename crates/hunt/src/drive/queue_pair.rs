//! The queue pair of a drive: commands complete in any order.

use super::injector::Outcome;
use super::{Shared, duration, lock};
use softflash_base::random::Rng;
use softflash_base::{BufferPool, IoBuf, Time, UnitId, UnitSet};
use softflash_device::backend::{Accepted, Claim, check};
use softflash_device::{
    Command, Completion, Described, DeviceError, DeviceInfo, Operation, QueuePair, Submit,
    UnitGeometry, Wake,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const READ_NS: u64 = 60_000;
const WRITE_NS: u64 = 20_000;
const FLUSH_NS: u64 = 400_000;

/// A command in flight.
struct Active {
    accepted: Accepted,
    command: Command,
    refused: Option<DeviceError>,
    /// Sequence number of the last write when the command was submitted.
    writes_before: u64,
}

/// A queue pair over some units of a drive.
pub(super) struct DriveQueuePair {
    geometry: UnitGeometry,
    uuid: u128,
    claim: Claim,
    shared: Arc<Mutex<Shared>>,
    rng: Rng,
    pool: BufferPool,
    /// By completion time, then by order of submission.
    active: BTreeMap<(Time, u64), Active>,
    submitted: u64,
}

impl DriveQueuePair {
    pub(super) fn new(
        info: &DeviceInfo,
        claim: Claim,
        shared: Arc<Mutex<Shared>>,
        seed: u64,
    ) -> DriveQueuePair {
        DriveQueuePair {
            geometry: info.geometry,
            uuid: info.uuid,
            claim,
            shared,
            rng: Rng::seeded(seed),
            pool: BufferPool::of_this_thread(),
            active: BTreeMap::new(),
            submitted: 0,
        }
    }

    /// Executes a command; returns its buffer.
    fn carry_out(&self, active: Active, now: Time) -> (Option<IoBuf>, Result<(), DeviceError>) {
        let Active { command, refused, writes_before, .. } = active;
        let Command { mut target, operation, .. } = command;
        let Shared { cache, injector, flushes, .. } = &mut *lock(&self.shared);
        let mut result = refused.map_or(Ok(()), Err);
        let outcome = injector.outcome(&target, &operation, &self.geometry, now);
        match &outcome {
            Outcome::Elsewhere(elsewhere) => target = *elsewhere,
            Outcome::Failed(error) => result = result.and(Err(error.clone())),
            Outcome::Done | Outcome::Nothing | Outcome::Flipped => {}
        }
        let settled = match operation {
            Operation::Flush => flushes.flush(),
            Operation::Program { durable: true, .. } => flushes.durable(),
            _ => Ok(()),
        };
        match operation {
            Operation::Read(mut buffer) => {
                if result.is_ok() {
                    cache.read(&target, &mut buffer);
                }
                match outcome {
                    Outcome::Nothing => buffer.fill(0),
                    Outcome::Flipped => buffer.iter_mut().take(1).for_each(|byte| *byte ^= 1),
                    _ => {}
                }
                return (Some(buffer), result);
            }
            Operation::Program { data, durable } => {
                if result.is_ok() && outcome != Outcome::Nothing {
                    cache.write(&target, &data, durable && settled.is_ok());
                }
                return (Some(data), result.and(settled));
            }
            _ if result.is_err() => {}
            Operation::Erase => cache.erase(&target),
            Operation::Flush => match settled {
                Ok(()) => cache.flushed(self.claim.held(), writes_before),
                Err(error) => return (None, Err(error)),
            },
            Operation::MarkBad => cache.mark_bad(&target),
        }
        (None, result)
    }
}

impl Described for DriveQueuePair {
    fn geometry(&self) -> &UnitGeometry {
        &self.geometry
    }

    fn device_uuid(&self) -> u128 {
        self.uuid
    }

    fn units(&self) -> &UnitSet {
        self.claim.units()
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        lock(&self.shared).cache.bad_blocks(unit)
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for DriveQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let usual_ns = match command.operation {
            Operation::Read(_) => READ_NS,
            Operation::Program { durable: false, .. } | Operation::Erase => WRITE_NS,
            Operation::Program { .. } | Operation::Flush | Operation::MarkBad => FLUSH_NS,
        };
        let refused =
            check(&self.geometry, self.geometry.page_bytes, self.claim.held(), &command).err();
        let ends = now + duration(&mut self.rng, usual_ns).0;
        let writes_before = lock(&self.shared).cache.writes();
        self.submitted += 1;
        // Its commands do not wait for each other.
        let accepted = Accepted::new(command.tag, now, 0);
        let active = Active { accepted, command, refused, writes_before };
        self.active.insert((ends, self.submitted), active);
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        while let Some(first) = self.active.first_entry()
            && first.key().0 <= now
        {
            let ((finished_at, _), active) = first.remove_entry();
            let accepted = active.accepted;
            let (buffer, result) = self.carry_out(active, finished_at);
            completions.push(accepted.ended(finished_at, buffer, result));
        }
    }

    fn wake(&self) -> Wake {
        self.active.keys().next().map_or(Wake::Idle, |(ends, _)| Wake::At(*ends))
    }

    fn give_up(&mut self, unit: UnitId) {
        self.claim.release(unit);
    }
}

impl Drop for DriveQueuePair {
    /// Writes in flight have reached the cache: if the power is cut as well, any of them may
    /// survive.
    fn drop(&mut self) {
        let active = std::mem::take(&mut self.active);
        for (_, Active { command: Command { target, operation, .. }, refused, .. }) in active {
            if let (Operation::Program { data, .. }, None) = (operation, refused) {
                lock(&self.shared).cache.write(&target, &data, false);
            }
        }
    }
}
