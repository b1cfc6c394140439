//! What the headers on the flash tell while the power is away: the least that a mount must find from then on.

use crate::medium::Medium;
use crate::trouble::Trouble;
use crate::world::World;
use softflash_ftl::FtlConfig;
use softflash_nand::faults::CutPages;
use softflash_runtime::VirtualExecutor;
use softflash_store::driver::Flash;

/// Of each unit, the greatest generation that a mount has found last.
#[derive(Default)]
pub struct Headers {
    generations: Vec<u64>,
}

impl Headers {
    /// Mounts the flash beside the store, and looks whether generations have run back since the last look. Only where the
    /// flash forgets nothing, and does not mind to be read once more.
    ///
    /// # Errors
    /// Which have, or that the flash does not mount.
    pub fn look(&mut self, world: &World, medium: &Medium) -> Result<(), Trouble> {
        let is_steady = world.faults.cut_pages.unstable == CutPages::default().unstable;
        let forgets = world.may_lose() || world.store.is_redundant() || world.drive.is_some();
        if forgets || !is_steady {
            return Ok(());
        }
        let generations = mounted(medium).map_err(Trouble::Wrong)?;
        for (unit, (now, before)) in generations.iter().zip(&self.generations).enumerate() {
            if now < before {
                let what = format!("unit {unit}: generations ran back from {before} to {now}");
                return Err(Trouble::Wrong(what));
            }
        }
        self.generations = generations;
        Ok(())
    }
}

/// The generations that a mount finds which changes nothing.
fn mounted(medium: &Medium) -> Result<Vec<u64>, String> {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let device = medium.device();
    let mounted = executor.try_block_on(async {
        let queue = device.open_queue_pair(0..device.info().units);
        let queue = queue.map_err(|error| error.to_string())?;
        let config = FtlConfig { prepared_target: 0, ..FtlConfig::default() };
        let mounted = Flash::mount(queue, config, runtime.clone()).await;
        let (flash, _) = mounted.map_err(|error| error.to_string())?;
        flash.stop();
        Ok(flash.units().map(|unit| flash.newest_generation(unit)).collect())
    });
    mounted.map_err(|deadlock| format!("a mount: {deadlock}"))?
}
