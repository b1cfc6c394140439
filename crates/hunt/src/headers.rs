//! Generations of superblock headers, read while the power is off: the newest generation that a
//! mount finds never decreases.

use crate::medium::Medium;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use crate::virtual_time;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Owners, Ownership};
use softflash_nand::faults::CutPages;

/// Greatest generation of each unit at the last mount.
#[derive(Default)]
pub struct Headers {
    generations: Vec<u64>,
}

impl Headers {
    /// Mounts the flash without the store and compares the greatest generation of each unit with
    /// that of the last call. Skips scenarios whose flash may lose headers, and scenarios in which
    /// a read changes the result of later reads.
    ///
    /// # Errors
    /// The greatest generation of a unit has decreased, or the mount fails.
    pub fn look(
        &mut self,
        scenario: &Scenario,
        (medium, epoch): (&Medium, u32),
    ) -> Result<(), SessionFailure> {
        let is_steady = scenario.faults.cut_pages.unstable == CutPages::default().unstable;
        let forgets =
            scenario.may_lose() || scenario.store.is_redundant() || scenario.drive.is_some();
        if forgets || !is_steady {
            return Ok(());
        }
        let generations = mounted(medium, epoch).map_err(SessionFailure::Wrong)?;
        for (unit, (now, before)) in generations.iter().zip(&self.generations).enumerate() {
            if now < before {
                let what =
                    format!("unit {unit}: the newest generation decreased from {before} to {now}");
                return Err(SessionFailure::Wrong(what));
            }
        }
        self.generations = generations;
        Ok(())
    }
}

/// Mounts without writing, by a table of sets of this epoch; returns the greatest generation of
/// each unit.
fn mounted(medium: &Medium, epoch: u32) -> Result<Vec<u64>, String> {
    let executor = virtual_time::executor(0);
    let runtime = executor.handle();
    let device = medium.device();
    let mounted = executor.try_block_on(async {
        let units = device.info().all_units();
        let queue = device.open_queue_pair(&units);
        let queue = queue.map_err(|error| error.to_string())?;
        let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
        let owners = Owners::one(units, Ownership::BLOCKS).at_epoch(epoch);
        let mounted = Flash::mount_one(queue, config, owners, runtime.clone()).await;
        let (flash, _) = mounted.map_err(|error| error.to_string())?;
        flash.stop();
        Ok(flash.units().iter().map(|unit| flash.newest_generation(unit)).collect())
    });
    mounted.map_err(|deadlock| format!("a mount: {deadlock}"))?
}
