//! Key-value workloads: the store that `serve` runs, on a device in virtual time.
//!
//! Keys and values are real and checked at every read. Flash keeps them packed, so that full-size
//! devices fit into memory. The store's log has a separate, very fast device, as in the SDF paper,
//! so that only the data's device is measured.

mod clients;
mod on_drive;
mod run;
mod setup;
mod spread;
#[cfg(test)]
mod tests;

use crate::cell::{Cell, Control};
use crate::engine::units::hardware::{Hardware, Observation};
use crate::error::LabError;
use crate::layout::LayoutKind;
use crate::outcome::Outcome;
use on_drive::OnDrive;
use run::{Run, Watch};
use softflash_base::Time;
use softflash_device::{Contents, Device};
use softflash_runtime::VirtualExecutor;
use softflash_workload::KvWorkload;
use std::sync::Arc;

/// The virtual time that the chart of operations covers.
const CHART_NS: u64 = 20_000_000;

/// Runs a key-value workload.
pub fn run(cell: &Cell, workload: &KvWorkload, control: &Control) -> Result<Outcome, LabError> {
    match &cell.layout.kind {
        LayoutKind::Units(layout) => {
            let hardware = Hardware::new(&cell.device, layout.unit, Contents::Packed, cell.seed)?;
            let device = hardware.device();
            run_on(device, true, cell, workload, control, &mut OnUnits { hardware, since: None })
        }
        LayoutKind::PageMapped(layout) => {
            let mut drive = OnDrive::new(cell, layout, control)?;
            run_on(drive.device(), true, cell, workload, control, &mut drive)
        }
    }
}

/// Runs a key-value workload on a new device. With `log_apart`, the store's log has a separate
/// device.
pub fn run_on(
    device: Arc<dyn Device>,
    log_apart: bool,
    cell: &Cell,
    workload: &KvWorkload,
    control: &Control,
    watch: &mut dyn Watch,
) -> Result<Outcome, LabError> {
    workload.validate().map_err(|error| LabError::Parameter(error.to_string()))?;
    if workload.rate_caps != Default::default() {
        return Err(LabError::Parameter(format!(
            "{}: rate caps are not for key-value workloads; leave rate_caps out",
            cell.key
        )));
    }
    let executor = VirtualExecutor::new(setup::wall_ms());
    let run = Run::new(cell, workload, control);
    match executor.try_block_on(run.go(device, log_apart, executor.handle(), watch)) {
        Ok(outcome) => outcome,
        Err(deadlock) => Err(LabError::Simulation(deadlock.to_string())),
    }
}

/// Observes units of flash.
struct OnUnits {
    hardware: Hardware,
    since: Option<Observation>,
}

impl Watch for OnUnits {
    fn begins(&mut self, now: Time) {
        self.since = Some(self.hardware.observe(now, CHART_NS));
    }

    fn ended(&mut self, now: Time, outcome: &mut Outcome) -> Result<(), LabError> {
        let Some(since) = &self.since else { return Ok(()) };
        let observed = self.hardware.observed(since, now);
        outcome.channel_utilisation = observed.channel_utilisation;
        outcome.die_utilisation = observed.die_utilisation;
        outcome.gantt = observed.gantt;
        outcome.bytes_per_page = observed.bytes_per_page;
        Ok(())
    }
}
