//! What a drive does beside what it was told to: commands that fail, or do something else and say nothing; units that end.

use softflash_base::{Time, UnitId};
use softflash_device::{DeviceError, Operation, Target, UnitGeometry};
use softflash_nand::faults::{FaultPlace, FaultTime, PlannedFault, Strike};
use std::collections::BTreeMap;

/// What the operating system says of a drive that does not answer: `EIO`.
const IO_ERROR: DeviceError = DeviceError::Io { errno: 5 };

/// What is planned for a session, and how far it has come. A drive has one die a unit.
#[derive(Default)]
pub(super) struct Struck {
    faults: Vec<PlannedFault>,
    reads: BTreeMap<u16, u64>,
    programs: BTreeMap<u16, u64>,
}

/// What becomes of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is done.
    Done,
    /// It is done elsewhere, and reported as done.
    Elsewhere(Target),
    /// Nothing is done, and it is reported as done. What is read is zeros.
    Nothing,
    /// It is done, and a bit of what is read is wrong.
    Flipped,
    /// It fails.
    Failed(DeviceError),
}

impl Struck {
    /// Planned for a session that begins.
    pub(super) fn planned(faults: &[PlannedFault]) -> Struck {
        Struck { faults: faults.to_vec(), ..Struck::default() }
    }

    /// What becomes of a command that ends now.
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
        // One flush is for all units of a queue pair: what was written to one that is dead has failed by itself.
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
        let strike = self.faults.iter().filter(here).find(|fault| fault.when == when);
        match strike.map(|fault| fault.what) {
            Some(Strike::Fail) => Outcome::Failed(IO_ERROR),
            Some(Strike::Misdirect) => Outcome::Elsewhere(next_blocks(target, geometry)),
            Some(Strike::Phantom | Strike::Stale) => Outcome::Nothing,
            Some(Strike::Miscorrect) => Outcome::Flipped,
            _ => Outcome::Done,
        }
    }
}

/// The same pages of the blocks behind.
fn next_blocks(target: &Target, geometry: &UnitGeometry) -> Target {
    let blocks = target.blocks.map(|block| (block + 1) % geometry.blocks_per_plane.max(1));
    Target { blocks, ..*target }
}
