//! The queue pair of a model device.

use super::device::Shared;
use super::engine::Engine;
use super::group::Group;
use crate::claims::Claim;
use crate::command::{Command, Completion, DeviceError, Operation, Target};
use crate::geometry::UnitGeometry;
use crate::queue_pair::{Described, QueuePair, Submit, Wake};
use crate::validate::check;
use softflash_base::checksum::identity;
use softflash_base::{BufferPool, Time, UnitId, UnitSet};
use softflash_nand::{CommandKind, DieCommand, DieIndex, Finished};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue pair over the units of some channels. Dropping it with commands in progress is a power
/// cut for these channels.
pub(super) struct ModelQueuePair {
    engine: Engine,
    group: Arc<Mutex<Group>>,
    geometry: UnitGeometry,
    /// For each page, the number of pages of its block that must be programmed until it is safe.
    safe_after: Vec<u32>,
    pool: BufferPool,
    /// Reused by every advance.
    scratch: Vec<Finished>,
    /// The latest time seen.
    now: Time,
    shared: Arc<Shared>,
    claim: Claim,
}

/// Locks the array of a queue pair; only power cuts and observers contend for the lock.
pub(super) fn lock(group: &Mutex<Group>) -> MutexGuard<'_, Group> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelQueuePair {
    pub(super) fn new(
        shared: Arc<Shared>,
        group: Arc<Mutex<Group>>,
        claim: Claim,
    ) -> ModelQueuePair {
        let geometry = shared.info.geometry;
        let dies = u32::from(geometry.dies) * claim.units().len() as u32;
        let die = &shared.config.array.die;
        let reads_pass = die.program_suspend.is_some() || die.erase_suspend.is_some();
        let safe_after = lock(&group).safe_after();
        ModelQueuePair {
            engine: Engine::new(geometry, reads_pass, dies),
            group,
            geometry,
            safe_after,
            pool: BufferPool::of_this_thread(),
            scratch: Vec::new(),
            now: Time::ZERO,
            shared,
            claim,
        }
    }

    /// Locks the group, advances its array to the caller's clock and passes the completions to the
    /// engine. `None` if the device has no power, also after a planned cut that is due now.
    fn catch_up<'a>(
        shared: &Shared,
        group: &'a Mutex<Group>,
        engine: &mut Engine,
        scratch: &mut Vec<Finished>,
        now: Time,
    ) -> Option<MutexGuard<'a, Group>> {
        let mut group = lock(group);
        if group.is_powered() {
            group.advance(now, scratch, |group, rows| engine.completed(group, rows));
            let Some(cut) = group.cut_due(now) else { return Some(group) };
            // All groups are cut, this one too.
            drop(group);
            let seed = identity(&[shared.config.seed, cut.0]);
            if let Err(error) = shared.power_cut(cut, seed) {
                tracing::error!(%error, "the state after the planned power cut is not recorded");
            }
        }
        engine.lose_all(now);
        None
    }

    /// The array's indices of a unit's dies.
    fn dies_of(&self, unit: UnitId) -> Option<Range<u32>> {
        let position = self.claim.units().position(unit.0)?;
        let dies = u32::from(self.geometry.dies);
        let first = position as u32 * dies;
        Some(first..first + dies)
    }

    /// The array's index of a target's die; 0 for a target that will be refused.
    fn die_of(&self, target: &Target) -> DieIndex {
        let first = self.dies_of(target.unit).map_or(0, |dies| dies.start);
        DieIndex(first + u32::from(target.die))
    }
}

/// The blocks of a checked target, for the array.
fn blocks_of(target: &Target, die: DieIndex) -> DieCommand {
    let Target { plane, planes, blocks, .. } = *target;
    DieCommand {
        tag: 0,
        die,
        kind: CommandKind::Erase,
        plane,
        planes,
        blocks,
        page: 0,
        head: false,
    }
}

impl Described for ModelQueuePair {
    fn geometry(&self) -> &UnitGeometry {
        &self.geometry
    }

    fn device_uuid(&self) -> u128 {
        self.shared.info.uuid
    }

    fn units(&self) -> &UnitSet {
        self.claim.units()
    }

    fn sector_bytes(&self) -> u32 {
        self.shared.config.array.geometry.sector_bytes()
    }

    fn safe_after(&self, page: u32) -> u32 {
        self.safe_after.get(page as usize).copied().unwrap_or(self.geometry.pages_per_block)
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        let Some(dies) = self.dies_of(unit) else { return Vec::new() };
        let bad = lock(&self.group).bad_blocks();
        bad.into_iter()
            .filter(|address| dies.contains(&address.die.0))
            .map(|address| ((address.die.0 - dies.start) as u8, address.plane, address.block))
            .collect()
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for ModelQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        self.now = self.now.max(now);
        let die = self.die_of(&command.target);
        let checked = check(&self.geometry, self.sector_bytes(), self.claim.held(), &command);
        let ModelQueuePair { engine, group, scratch, now, shared, .. } = self;
        let Some(mut group) = Self::catch_up(shared, group, engine, scratch, *now) else {
            engine.end(command, Err(DeviceError::Io { errno: libc::ENODEV }), *now);
            return Submit::Accepted;
        };
        let result = match (checked, &command.operation) {
            (Err(error), _) => Err(error),
            (Ok(()), Operation::Flush) => group.sync(),
            (Ok(()), Operation::MarkBad) => group.mark_bad(&blocks_of(&command.target, die)),
            (Ok(()), operation) if !engine.has_room(die, operation) => {
                return Submit::Full(command);
            }
            (Ok(()), _) => {
                engine.accept(&mut group, die, command);
                return Submit::Accepted;
            }
        };
        engine.end(command, result, *now);
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        self.now = self.now.max(now);
        drop(Self::catch_up(
            &self.shared,
            &self.group,
            &mut self.engine,
            &mut self.scratch,
            self.now,
        ));
        self.engine.deliver(completions);
    }

    fn wake(&self) -> Wake {
        if self.engine.has_ended() {
            return Wake::Now;
        }
        if self.engine.pending() == 0 {
            return Wake::Idle;
        }
        let group = lock(&self.group);
        match group.next_event_at() {
            Some(at) if group.is_powered() => Wake::At(at),
            _ => Wake::Now,
        }
    }

    fn give_up(&mut self, unit: UnitId) {
        let saved = self.dies_of(unit).map(|dies| lock(&self.group).give_up(dies));
        if let Some(Err(error)) = saved {
            tracing::error!(%error, "the last state of unit {unit} is not recorded");
        }
        self.claim.release(unit);
    }
}

impl Drop for ModelQueuePair {
    fn drop(&mut self) {
        // Completed operations are on the medium. Operations in progress are interrupted, with
        // outcomes drawn from the current time.
        if let Err(error) = lock(&self.group).power_cut(self.now, self.now.0) {
            tracing::error!(%error, "the last state of the model device is not recorded");
        }
        self.shared.forget(&self.group);
    }
}
