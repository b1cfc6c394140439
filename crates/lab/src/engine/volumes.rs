//! Runs block workloads and traces on a volume over units of flash: the code that `serve` has for
//! its volumes, on simulated flash and in virtual time.
//!
//! One domain has all units, and one volume all of its usable space. On two sets there are two
//! domains, a pair: each has half of the channels and a copy of the volume, and with windows one of
//! them programs at a time. They are mounted, paired and given windows as by `serve`, but in one
//! thread of virtual time; the windows begin after the preparation. A write completes when its
//! frame is programmed, as there is no buffer that survives a power cut; it is durable after a
//! flush, which a trace may have. Requests that do not cover whole mapping units of 4 KiB read the
//! units of their ends first, as the server of volumes does.

mod clients;
mod disk;
mod domains;
mod state;
#[cfg(test)]
mod tests;

use crate::cell::{Cell, Control, Limits};
use crate::engine::drive::Asked;
use crate::engine::limits::{add_limits, add_programmed_share};
use crate::engine::meter::{Cut, Meter};
use crate::engine::units::hardware::{Hardware, Observation};
use crate::error::LabError;
use crate::layout::{Sets, Units};
use crate::outcome::{Outcome, Programs};
use clients::{Clients, Measured};
use disk::{Counts, Disk};
use domains::Making;
use softflash_base::random::Rng;
use softflash_device::Contents;
use softflash_drive::spec::DeviceSpec;
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_volume::PairFigures;
use softflash_workload::{BlockWorkload, Precondition};
use std::time::Duration;

/// The virtual time that the chart of operations covers.
const CHART_NS: u64 = 10_000_000;

/// Units of flash, and how they are used.
pub struct Setting<'a> {
    /// The hardware.
    pub device: &'a DeviceSpec,
    /// The layout.
    pub layout: &'a Units,
    /// Its sets.
    pub sets: Sets,
    /// Spare / logical of all flash, in percent; if it is not given, what domains of `serve` have.
    pub op_percent: Option<f64>,
    /// The volume's initial state.
    pub precondition: Precondition,
    /// The limits of the run; a trace ends by itself.
    pub limits: Limits,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// Runs a block workload.
pub fn run(
    cell: &Cell,
    layout: &Units,
    workload: &BlockWorkload,
    control: &Control,
) -> Result<Outcome, LabError> {
    let setting = Setting {
        device: &cell.device,
        layout,
        sets: cell.layout.sets,
        op_percent: cell.parameters.op_percent.or(layout.op_percent),
        precondition: cell.parameters.precondition,
        limits: cell.limits(),
        seed: cell.seed,
    };
    simulate(&setting, Asked::Workload(workload), control)
}

/// Runs a workload or a trace on a volume.
pub fn simulate(
    setting: &Setting<'_>,
    asked: Asked<'_>,
    control: &Control,
) -> Result<Outcome, LabError> {
    if let Asked::Workload(workload) = &asked {
        workload.validate()?;
    }
    let hardware = setting.hardware()?;
    let executor = VirtualExecutor::new(0);
    let run = Run { setting, control, hardware, rng: Rng::seeded(setting.seed) };
    match executor.try_block_on(run.go(executor.handle(), asked)) {
        Ok(outcome) => outcome,
        Err(deadlock) => Err(LabError::Simulation(deadlock.to_string())),
    }
}

impl Setting<'_> {
    /// Bytes that the host can address: the size of a volume in an empty domain.
    pub fn capacity_bytes(&self) -> Result<u64, LabError> {
        let (hardware, executor) = (self.hardware()?, VirtualExecutor::new(0));
        let opened = async {
            let disk = self.open(&hardware, executor.handle()).await?;
            let capacity_bytes = disk.capacity_bytes;
            disk.domains.stop();
            Ok(capacity_bytes)
        };
        match executor.try_block_on(opened) {
            Ok(capacity) => capacity,
            Err(deadlock) => Err(LabError::Simulation(deadlock.to_string())),
        }
    }

    fn hardware(&self) -> Result<Hardware, LabError> {
        domains::check(self.device, &self.sets)?;
        Hardware::new(self.device, self.layout.unit, Contents::Packed, self.seed)
    }

    async fn open(&self, hardware: &Hardware, runtime: RuntimeHandle) -> Result<Disk, LabError> {
        let Setting { layout, sets, seed, .. } = self;
        let making = Making { hardware, layout, sets, is_spare_given: false, seed: *seed };
        Disk::open(making, self.op_percent, runtime).await
    }
}

/// A run with valid parameters.
struct Run<'a> {
    setting: &'a Setting<'a>,
    control: &'a Control<'a>,
    hardware: Hardware,
    rng: Rng,
}

/// The state at the beginning of the measured part.
struct Before {
    flash: Observation,
    counts: Counts,
    pair: Option<PairFigures>,
}

impl Run<'_> {
    async fn go(&self, runtime: RuntimeHandle, asked: Asked<'_>) -> Result<Outcome, LabError> {
        let disk = self.setting.open(&self.hardware, runtime).await?;
        let outcome = self.on_disk(&disk, asked).await;
        disk.domains.stop();
        outcome
    }

    async fn on_disk(&self, disk: &Disk, asked: Asked<'_>) -> Result<Outcome, LabError> {
        let (control, limits) = (self.control, &self.setting.limits);
        let workload = match &asked {
            Asked::Workload(workload) => Some(*workload),
            Asked::Flows(_) | Asked::Repeated(_) | Asked::Trace(_) => None,
        };
        let state = self.setting.precondition;
        let settled = state::prepare(disk, state, workload, &self.rng, control).await?;
        if self.setting.sets.window_ms > 0 {
            let length = Duration::from_millis(self.setting.sets.window_ms.into());
            disk.domains.begin_windows(length).await?;
        }
        let mut clients = Clients::new(disk, workload, &self.rng, control)?;
        if workload.is_some() && limits.warm_up_ns > 0 {
            clients.warm_up(disk.now() + limits.warm_up_ns).await?;
        }
        (control.on_measuring)();
        let begin = disk.now();
        let before = Before {
            flash: self.hardware.observe(begin, CHART_NS),
            counts: disk.counts(),
            pair: disk.domains.pair(),
        };
        // A trace is played completely.
        let limits = match workload {
            Some(_) => *limits,
            None => Limits { requests: None, duration_ns: None, ..*limits },
        };
        let meter = Meter::new(begin, Cut::of(&limits));
        let measured = Measured::new(disk, meter, before.counts, limits, control);
        match asked {
            Asked::Workload(_) => clients.measure(&measured).await?,
            Asked::Flows(_) | Asked::Repeated(_) => {
                return Err(LabError::Parameter(
                    "a volume takes one flow of requests, and a trace once; use a page-mapped layout for several"
                        .to_owned(),
                ));
            }
            Asked::Trace(requests) => clients.replay(&measured, requests).await?,
        }
        (control.on_measured)();
        let is_open = workload.is_none_or(|workload| workload.load.outstanding().is_none());
        let mut outcome = measured.outcome(is_open);
        outcome.settled = settled;
        self.describe(disk, &before, &mut outcome);
        disk.domains.check().await?;
        Ok(outcome)
    }

    /// Adds the figures of flash and domain at the end of a run.
    fn describe(&self, disk: &Disk, before: &Before, outcome: &mut Outcome) {
        let observed = self.hardware.observed(&before.flash, disk.now());
        outcome.channel_utilisation = observed.channel_utilisation;
        outcome.die_utilisation = observed.die_utilisation;
        outcome.gantt = observed.gantt;
        let flash_bytes = self.hardware.flash_bytes() as f64;
        let risen = disk.counts().since(&before.counts);
        // Headers of superblocks are below the domain, so it does not count them.
        let units = risen.programmed();
        // Each copy counts, as on drives; a domain counts discards, too.
        let host = match disk.domains.copies() {
            1 => risen.written,
            _ => risen.domain.written,
        };
        outcome.programs = Programs {
            host,
            collection: risen.domain.collected,
            metadata: units.saturating_sub(host + risen.domain.collected),
            ..Programs::default()
        };
        outcome.programmed_bytes = risen.programmed_bytes;
        outcome.erases = risen.erases * u64::from(self.setting.device.geometry.planes_per_die);
        outcome.bytes_per_page = observed.bytes_per_page;
        add_limits(self.setting.device, outcome.bytes_per_second(), &mut outcome.figures);
        let capacity = disk.capacity_bytes as f64;
        let figures = [
            // All that the host cannot address is spare, as on a drive.
            ("op_percent", 100.0 * (flash_bytes / disk.domains.copies() as f64 / capacity - 1.0)),
            ("capacity_bytes", capacity),
            ("capacity_share", capacity / flash_bytes),
            ("frames", risen.domain.frames as f64),
            ("checkpoints", risen.domain.checkpoints as f64),
            ("flushes", risen.domain.flushes as f64),
            ("map_bytes", disk.domains.memory_bytes() as f64),
            ("interrupts_per_completion", observed.interrupts_per_completion),
        ];
        outcome.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        if let (Some(now), Some(base)) = (disk.domains.pair(), before.pair)
            && self.setting.sets.window_ms > 0
        {
            outcome.figures.extend(of_windows(&now, &base));
        }
        add_programmed_share(self.setting.device, outcome);
    }
}

/// The figures of the windows of a pair, under the names that they have on drives.
fn of_windows(now: &PairFigures, base: &PairFigures) -> [(String, f64); 7] {
    let staged_bytes = now.most_staged_units * disk::SECTOR;
    [
        ("windows", (now.turns - base.turns) as f64),
        ("drain_max_us", now.longest_drain_ns as f64 / 1e3),
        ("staged_max_bytes", staged_bytes as f64),
        ("early_windows", (now.early_turns - base.early_turns) as f64),
        ("late_windows", (now.late_turns - base.late_turns) as f64),
        ("staged_reads", (now.staged_reads - base.staged_reads) as f64),
        ("behind_bytes", now.behind_bytes as f64),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}
