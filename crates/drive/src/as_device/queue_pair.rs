//! The queue pair of a drive.

use super::Shared;
use super::state::State;
use crate::request::{Done, HostRequest};
use softflash_base::{AccessKind, BufferPool, IoBuf, Time, UnitId, UnitSet};
use softflash_device::backend::{Accepted, Claim, check};
use softflash_device::{
    Command, Completion, Described, DeviceError, Hint, Operation, QueuePair, Submit, Target,
    UnitGeometry, Wake,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A queue pair over some units of a drive.
pub(super) struct DriveQueuePair {
    shared: Arc<Shared>,
    /// Its key in the shared state.
    owner: u16,
    claim: Claim,
    pool: BufferPool,
    /// Commands that the drive works on, by its tags.
    under_way: BTreeMap<u64, UnderWay>,
    /// The number of commands that each unit has under way.
    in_units: Vec<u16>,
    /// Completions for the next poll.
    ended: Vec<Completion>,
    /// Reused by every poll.
    scratch: Vec<Done>,
}

/// A command that the drive works on.
struct UnderWay {
    accepted: Accepted,
    /// The position of its unit.
    unit: usize,
    buffer: Option<IoBuf>,
    /// Its result: contents are read and written in the order of the submissions.
    result: Result<(), DeviceError>,
}

/// The plan of a command.
enum Plan {
    /// A request to the drive, and the command's result when the request completes.
    Ask(AccessKind, Result<(), DeviceError>),
    /// The drive has nothing to do.
    End(Result<(), DeviceError>),
}

impl DriveQueuePair {
    pub(super) fn new(shared: Arc<Shared>, claim: Claim) -> DriveQueuePair {
        let in_units = vec![0; claim.units().len()];
        let owner = shared.state().open(claim.units().first().unwrap_or(0));
        DriveQueuePair {
            shared,
            owner,
            claim,
            pool: BufferPool::of_this_thread(),
            under_way: BTreeMap::new(),
            in_units,
            ended: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Executes an operation on the contents, and returns the work for the drive.
    fn plan(&self, state: &mut State, target: &Target, operation: &mut Operation) -> Plan {
        match operation {
            // A read of unwritten pages takes the drive as long.
            Operation::Read(into) => Plan::Ask(AccessKind::Read, state.contents.read(target, into)),
            Operation::Program { data, .. } => match state.contents.program(target, data) {
                Ok(()) => Plan::Ask(AccessKind::Write, Ok(())),
                refused => Plan::End(refused),
            },
            Operation::Erase => match state.contents.erase(target) {
                Ok(()) if self.shared.trim => Plan::Ask(AccessKind::Trim, Ok(())),
                ended => Plan::End(ended),
            },
            // Acknowledged data are durable.
            Operation::Flush => Plan::End(Ok(())),
            Operation::MarkBad => {
                state.contents.mark_bad(target);
                Plan::End(Ok(()))
            }
        }
    }

    /// The pages of a checked target as bytes of the drive.
    fn request(&self, kind: AccessKind, target: &Target, hint: Hint) -> HostRequest {
        let geometry = &self.shared.info.geometry;
        let page_bytes = u64::from(geometry.page_bytes);
        let extent_at = u64::from(target.unit.0) * geometry.unit_bytes()
            + u64::from(target.blocks[0]) * geometry.superblock_bytes();
        let (page, bytes) = match kind {
            AccessKind::Trim => (0, geometry.superblock_bytes()),
            _ => (u64::from(target.page), u64::from(target.rows) * page_bytes),
        };
        let class = hint.lifetime.placement_id(self.shared.placement_ids);
        let request = HostRequest::new(0, kind, extent_at + page * page_bytes, bytes);
        HostRequest { hint: class.into(), ..request }
    }

    /// Whether the unit of a command has no room for it.
    fn is_full(&self, command: &Command) -> bool {
        let in_unit = self.in_units.get(self.place(&command.target));
        let depth = self.shared.info.geometry.die_queue_depth;
        let free = matches!(command.operation, Operation::Flush | Operation::MarkBad);
        !free && in_unit.is_some_and(|in_unit| *in_unit >= depth)
    }

    /// The position of a target's unit; beyond all for a target that is refused.
    fn place(&self, target: &Target) -> usize {
        self.claim.units().position(target.unit.0).unwrap_or(usize::MAX)
    }
}

impl Described for DriveQueuePair {
    fn geometry(&self) -> &UnitGeometry {
        &self.shared.info.geometry
    }

    fn device_uuid(&self) -> u128 {
        self.shared.info.uuid
    }

    fn units(&self) -> &UnitSet {
        self.claim.units()
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        match self.claim.units().contains(unit.0) {
            true => self.shared.state().contents.bad_blocks(unit),
            false => Vec::new(),
        }
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for DriveQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let now = state.play(now);
        let checked = check(
            &shared.info.geometry,
            shared.info.geometry.page_bytes,
            self.claim.held(),
            &command,
        );
        if checked.is_ok() && self.is_full(&command) {
            return Submit::Full(command);
        }
        let Command { tag, target, mut operation, hint } = command;
        let plan = match checked {
            Ok(()) => self.plan(&mut state, &target, &mut operation),
            Err(error) => Plan::End(Err(error)),
        };
        let buffer = match operation {
            Operation::Read(buffer) | Operation::Program { data: buffer, .. } => Some(buffer),
            _ => None,
        };
        let (kind, result) = match plan {
            Plan::Ask(kind, result) => (kind, result),
            Plan::End(result) => {
                self.ended.push(Accepted::new(tag, now, 0).ended(now, buffer, result));
                return Submit::Accepted;
            }
        };
        match state.submit_for(self.owner, self.request(kind, &target, hint)) {
            Ok(place) => {
                let unit = self.place(&target);
                let accepted = Accepted::new(tag, now, self.in_units[unit]);
                self.in_units[unit] += 1;
                self.under_way.insert(place, UnderWay { accepted, unit, buffer, result });
            }
            Err(error) => {
                let result = Err(DeviceError::OutOfRange(error.to_string()));
                self.ended.push(Accepted::new(tag, now, 0).ended(now, buffer, result));
            }
        }
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        let mut state = self.shared.state();
        state.play(now);
        state.take_ended(self.owner, &mut self.scratch);
        completions.append(&mut self.ended);
        for done in self.scratch.drain(..) {
            let ended = self.under_way.remove(&done.tag);
            if let Some(UnderWay { accepted, unit, buffer, result }) = ended {
                self.in_units[unit] -= 1;
                completions.push(accepted.ended(done.at, buffer, result));
            }
        }
    }

    fn wake(&self) -> Wake {
        let state = self.shared.state();
        if !self.ended.is_empty() || state.has_ended(self.owner) {
            return Wake::Now;
        }
        state.completes_not_before(self.owner).map_or(Wake::Idle, Wake::At)
    }

    fn give_up(&mut self, unit: UnitId) {
        self.claim.release(unit);
    }
}

impl Drop for DriveQueuePair {
    fn drop(&mut self) {
        self.shared.state().close(self.owner);
    }
}
