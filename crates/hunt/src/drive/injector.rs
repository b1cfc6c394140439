//! Planned faults of a drive: commands that fail, commands that silently do something else, dead
//! units.

use softflash_base::{Time, UnitId};
use softflash_device::{DeviceError, Operation, Target, UnitGeometry};
use softflash_nand::faults::{FaultPlace, FaultTime, PlannedFault, Strike};
use std::collections::BTreeMap;

/// The operating system's error for a drive that does not respond: `EIO`.
const IO_ERROR: DeviceError = DeviceError::Io { errno: 5 };

/// The faults planned for a session, and the command counts so far. Each unit of a drive is one
/// die.
#[derive(Default)]
pub(super) struct Injector {
    faults: Vec<PlannedFault>,
    reads: BTreeMap<u16, u64>,
    programs: BTreeMap<u16, u64>,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Success.
    Done,
    /// Executed at another address, and reported as success.
    Elsewhere(Target),
    /// Not executed, and reported as success. Reads return zeros.
    Nothing,
    /// Executed; one bit of the data read is wrong.
    Flipped,
    /// Failure.
    Failed(DeviceError),
}

impl Injector {
    /// The faults of a new session.
    pub(super) fn planned(faults: &[PlannedFault]) -> Injector {
        Injector { faults: faults.to_vec(), ..Injector::default() }
    }

    /// The outcome of a command that completes at `now`.
    pub(super) fn outcome(
        &mut self,
        target: &Target,
        operation: &Operation,
        geometry: &UnitGeometry,
        now: Time,
    ) -> Outcome {
        let UnitId(unit) = target.unit;
        let here = |fault: &&PlannedFault| fault.place == FaultPlace::Die(u32::from(unit));
        let is_dead = |fault: &PlannedFault| {
            fault.what == Strike::Death
                && matches!(fault.when, FaultTime::AtNs(at) if now >= Time(at))
        };
        // One flush covers all units of a queue pair: the writes to a dead unit have failed
        // already.
        if matches!(operation, Operation::Flush) {
            return Outcome::Done;
        }
        if self.faults.iter().filter(here).any(is_dead) {
            return Outcome::Failed(IO_ERROR);
        }
        let count = match operation {
            Operation::Read(_) => &mut self.reads,
            Operation::Program { .. } => &mut self.programs,
            _ => return Outcome::Done,
        };
        let number = count.entry(unit).or_default();
        *number += 1;
        let when = match operation {
            Operation::Read(_) => FaultTime::Read(*number),
            _ => FaultTime::Program(*number),
        };
        let planned = self.faults.iter().filter(here).find(|fault| fault.when == when);
        match planned.map(|fault| fault.what) {
            Some(Strike::Fail) => Outcome::Failed(IO_ERROR),
            Some(Strike::Misdirect) => Outcome::Elsewhere(next_blocks(target, geometry)),
            Some(Strike::Phantom | Strike::Stale) => Outcome::Nothing,
            Some(Strike::Miscorrect) => Outcome::Flipped,
            _ => Outcome::Done,
        }
    }
}

/// The same pages of the next blocks.
fn next_blocks(target: &Target, geometry: &UnitGeometry) -> Target {
    let blocks = target.blocks.map(|block| (block + 1) % geometry.blocks_per_plane.max(1));
    Target { blocks, ..*target }
}
