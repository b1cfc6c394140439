//! Runs block workloads on units of flash, through the FTL and the driver that serve stores.
//!
//! A client with a queue depth of 1 is a synchronous thread with a unit of its own: thread `t` uses
//! unit `t` modulo the units, so that fewer threads use fewer channels. Clients with more requests
//! outstanding, and open loops, use all units: a read goes to the unit of its data, a write to the
//! unit that the layout's scheduler chooses. A write fills a whole superblock and includes its
//! erase. The two header pages are no payload and do not count. The flash stores no data.
//!
//! Workloads of smaller writes run on a [volume](super::volumes) over the units.

mod clients;
mod erases;
pub mod hardware;
mod pace;
mod testbed;

use crate::cell::{Cell, Control, Limits};
use crate::engine::caps::Caps;
use crate::engine::limits::add_limits;
use crate::engine::progress::Progress;
use crate::engine::quota::Quota;
use crate::engine::tally::Tally;
use crate::error::LabError;
use crate::layout::{Interface, Units};
use crate::outcome::{Outcome, Programs};
use clients::Phase;
use futures_util::future::try_join_all;
use hardware::Hardware;
use pace::Clients;
use softflash_base::random::Rng;
use softflash_device::Contents;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, UnitTelemetry};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_workload::{BlockWorkload, Precondition, Span};
use std::cell::RefCell;
use std::rc::Rc;
use testbed::{Testbed, TestbedHandle};

/// The virtual time that the chart of operations covers.
const CHART_NS: u64 = 10_000_000;

/// Idle time between the preparation of a run and the run.
const SETTLE_NS: u64 = 100_000_000;

/// Runs a block workload.
pub fn run(
    cell: &Cell,
    layout: &Units,
    workload: &BlockWorkload,
    control: &Control,
) -> Result<Outcome, LabError> {
    let run = Run::new(cell, layout, workload, control)?;
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    if workload.trim_fraction == 1.0 {
        return erases::run(cell, &run.hardware, &executor);
    }
    match executor.try_block_on(run.go(runtime)) {
        Ok(outcome) => outcome,
        Err(deadlock) => Err(LabError::Simulation(deadlock.to_string())),
    }
}

/// What takes the requests of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A volume over the units.
    ByVolume,
    /// The superblocks of the units.
    BySuperblocks,
}

/// What takes the requests of a workload to units of a layout.
///
/// # Errors
/// [`LabError::Parameter`] if the device cannot be built, or has sets of superblocks.
pub fn takes(cell: &Cell, layout: &Units, workload: &BlockWorkload) -> Result<Taken, LabError> {
    Ok(match layout.interface {
        Interface::Superblocks if cell.layout.sets.are_used() => {
            return Err(LabError::Parameter(
                "interface = \"superblocks\" has no sets: use interface = \"volume\", or remove `sets`"
                    .to_owned(),
            ));
        }
        Interface::Volume => Taken::ByVolume,
        Interface::Superblocks => Taken::BySuperblocks,
        Interface::Auto if cell.layout.sets.are_used() => Taken::ByVolume,
        // Erases alone have no block interface.
        Interface::Auto if workload.trim_fraction == 1.0 => Taken::BySuperblocks,
        Interface::Auto => {
            let payload = Hardware::payload_bytes(&cell.device, layout.unit)?;
            match clients::check_workload(workload, payload) {
                Ok(()) => Taken::BySuperblocks,
                Err(_) => Taken::ByVolume,
            }
        }
    })
}

/// A run with valid parameters.
struct Run<'a> {
    cell: &'a Cell,
    workload: &'a BlockWorkload,
    layout: &'a Units,
    control: &'a Control<'a>,
    limits: Limits,
    hardware: Hardware,
    rng: Rng,
}

impl<'a> Run<'a> {
    fn new(
        cell: &'a Cell,
        layout: &'a Units,
        workload: &'a BlockWorkload,
        control: &'a Control<'a>,
    ) -> Result<Run<'a>, LabError> {
        workload.validate().map_err(|error| LabError::Parameter(error.to_string()))?;
        Ok(Run {
            cell,
            workload,
            layout,
            control,
            limits: cell.limits(),
            hardware: Hardware::new(&cell.device, layout.unit, Contents::Nothing, cell.seed)?,
            rng: Rng::seeded(cell.seed).fork("units"),
        })
    }

    async fn go(&self, runtime: RuntimeHandle) -> Result<Outcome, LabError> {
        let device = self.hardware.device();
        let queue = device
            .open_queue_pair(&device.info().all_units())
            .map_err(|error| LabError::Simulation(error.to_string()))?;
        let config = FtlConfig { order: self.layout.order, ..FtlConfig::default() };
        let mounted = Flash::mount(queue, config, runtime.clone()).await;
        let (flash, _) = mounted.map_err(|error| LabError::Simulation(error.to_string()))?;
        let testbed = Rc::new(Testbed::new(flash, runtime));
        let outcome = self.on_testbed(&testbed).await;
        testbed.flash.stop();
        outcome
    }

    async fn on_testbed(&self, testbed: &TestbedHandle) -> Result<Outcome, LabError> {
        clients::check_workload(self.workload, testbed.flash.payload_bytes() as u64)?;
        let progress = Progress::new(self.control);
        let blocks = self.precondition(testbed, &progress).await?;
        // Waits for the FTL to erase superblocks ahead of need after the preparation, which is not
        // measured.
        testbed.runtime.sleep_until(testbed.now() + SETTLE_NS).await;
        let scheduler = self.layout.scheduler;
        let mut clients = Clients::new(testbed, self.workload, scheduler, self.rng.clone())?;
        let caps = RefCell::new(Caps::new(&self.workload.rate_caps));
        let phase =
            Phase { testbed, tally: None, control: self.control, caps: &caps, told: &|| {} };
        if let Some(end) = clients::warm_up_end(testbed.now(), self.limits.warm_up_ns) {
            clients.work("warm-up", &phase, |_, _| Quota::until(end)).await?;
        }
        (self.control.on_measuring)();
        let (begin, before) = (testbed.now(), self.telemetry(testbed));
        let observation = self.hardware.observe(begin, CHART_NS);
        let tally = Tally::new(begin);
        let told = || progress.measured(&self.limits, begin, testbed.now());
        let phase = Phase { tally: Some(&tally), told: &told, ..phase };
        let share = |client, count| Quota::share(&self.limits, begin, client, count);
        clients.work("measured", &phase, share).await?;
        let mut outcome = tally.outcome(self.limits.samples);
        let observed = self.hardware.observed(&observation, testbed.now());
        outcome.channel_utilisation = observed.channel_utilisation;
        outcome.die_utilisation = observed.die_utilisation;
        outcome.gantt = observed.gantt;
        outcome.bytes_per_page = observed.bytes_per_page;
        self.count_pages(testbed, &mut outcome, &before);
        self.add_figures(testbed, &mut outcome, blocks, observed.interrupts_per_completion);
        Ok(outcome)
    }

    /// Fills the units before the run; returns the number of blocks of each unit.
    async fn precondition(
        &self,
        testbed: &TestbedHandle,
        progress: &Progress<'_>,
    ) -> Result<usize, LabError> {
        let blocks = match self.cell.parameters.precondition {
            Precondition::None => 0,
            // There is no garbage collection, so a filled device is in its steady state.
            _ => self.blocks_to_fill(testbed)?,
        };
        if blocks == 0 && self.workload.read_fraction > 0.0 {
            return Err(LabError::Parameter(format!(
                "{}: there is nothing to read; use precondition = \"fill\", and a span of at least a superblock a unit",
                self.cell.key
            )));
        }
        let all = (blocks * testbed.units()).max(1);
        let told = || {
            progress.filled(all);
            if self.control.stopped() { Err(LabError::Stopped) } else { Ok(()) }
        };
        try_join_all((0..testbed.units()).map(|unit| testbed.fill(unit, blocks, &told))).await?;
        Ok(blocks)
    }

    /// Superblocks of each unit that are written before the run: the span of the workload, at most
    /// all but one, as a new block is written before the old one is erased.
    fn blocks_to_fill(&self, testbed: &TestbedHandle) -> Result<usize, LabError> {
        let free = (0..testbed.units()).map(|unit| testbed.flash.space(unit as u16).free()).min();
        let most = free.unwrap_or(0).saturating_sub(1) as u64;
        let payload = testbed.flash.payload_bytes() as u64;
        let blocks = match self.workload.span {
            Span::Share(share) => (most as f64 * share).round() as u64,
            Span::Bytes(bytes) => bytes / (payload * testbed.units() as u64),
        };
        if blocks > most {
            let capacity = most * payload * testbed.units() as u64;
            return Err(LabError::Parameter(format!(
                "{}: span is beyond the capacity of {capacity} bytes; make it smaller",
                self.cell.key
            )));
        }
        Ok(blocks as usize)
    }

    fn telemetry(&self, testbed: &TestbedHandle) -> Vec<UnitTelemetry> {
        testbed.flash.units().iter().map(|unit| testbed.flash.telemetry(unit)).collect()
    }

    fn count_pages(
        &self,
        testbed: &TestbedHandle,
        outcome: &mut Outcome,
        before: &[UnitTelemetry],
    ) {
        let after = self.telemetry(testbed);
        let risen = |of: fn(&UnitTelemetry) -> u64| -> u64 {
            after.iter().zip(before).map(|(after, before)| of(after) - of(before)).sum()
        };
        let page = u64::from(self.cell.device.geometry.page_bytes);
        let programmed = risen(|unit| unit.bytes_programmed) / page;
        let host = outcome.bytes_written / page;
        outcome.programs =
            Programs { host, metadata: programmed.saturating_sub(host), ..Programs::default() };
        let planes = u64::from(self.cell.device.geometry.planes_per_die);
        outcome.erases = risen(|unit| unit.erases) * planes;
    }

    fn add_figures(
        &self,
        testbed: &TestbedHandle,
        outcome: &mut Outcome,
        blocks: usize,
        interrupts_per_completion: f64,
    ) {
        add_limits(&self.cell.device, outcome.bytes_per_second(), &mut outcome.figures);
        let units = testbed.flash.units();
        let usable: u64 =
            units.iter().map(|unit| u64::from(testbed.flash.space(unit).total())).sum();
        let payload = testbed.flash.payload_bytes() as u64;
        let raw = self.cell.device.geometry.bytes() as f64;
        let figures = [
            ("capacity_share", (usable * payload) as f64 / raw),
            ("filled_share", (blocks as u64 * payload * testbed.units() as u64) as f64 / raw),
            ("interrupts_per_completion", interrupts_per_completion),
        ];
        outcome.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests;
