//! A device of units in virtual time, as its preset defines it: the array behind link and host
//! software.

use crate::error::LabError;
use crate::host::{HostPath, HostPathConfig};
use crate::outcome::Span;
use softflash_base::Time;
use softflash_device::model::UnitKind;
use softflash_device::{BusyTimes, Contents, Device, ModelConfig, ModelDevice};
use softflash_drive::spec::{DeviceSpec, HostSpec, LinkSpec};
use softflash_nand::FaultConfig;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest that a completion waits for others to share an interrupt with, in nanoseconds. An
/// assumption without a source; common controllers wait for some tens of microseconds.
const INTERRUPT_WAIT_NS: u64 = 20_000;

/// Channels whose dies are in the chart: enough to show a pattern, few enough to be legible.
const CHARTED_CHANNELS: u32 = 4;
/// The maximum number of recorded operations of a queue pair's flash, more than occur in the window
/// of the chart.
const MOST_RECORDED: usize = 1 << 14;

/// A device in virtual time, and the observation of its activity.
pub struct Hardware {
    /// The array.
    model: Arc<ModelDevice>,
    /// The array as the host sees it.
    path: Arc<HostPath>,
}

impl Hardware {
    /// A new, erased device of units of a kind, which stores `contents` of its data.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the flash cannot be built.
    pub fn new(
        spec: &DeviceSpec,
        unit: UnitKind,
        contents: Contents,
        seed: u64,
    ) -> Result<Hardware, LabError> {
        let config = ModelConfig { seed: seed >> 1, ..config(spec, unit) };
        let model = ModelDevice::in_memory_keeping(config, contents)
            .map_err(|error| LabError::Parameter(format!("device {}: {error}", spec.name)))?;
        let model = Arc::new(model);
        let inner: Arc<dyn Device> = Arc::clone(&model) as Arc<dyn Device>;
        let path = Arc::new(HostPath::new(inner, host_path(&spec.link, &spec.host)));
        Ok(Hardware { model, path })
    }

    /// Bytes of payload in a superblock of such units.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the flash cannot be built.
    pub fn payload_bytes(spec: &DeviceSpec, unit: UnitKind) -> Result<u64, LabError> {
        let geometry = config(spec, unit).unit_geometry();
        let geometry = geometry
            .map_err(|error| LabError::Parameter(format!("device {}: {error}", spec.name)))?;
        Ok(softflash_ftl::payload_bytes(&geometry))
    }

    /// The device.
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.path) as Arc<dyn Device>
    }

    /// Bytes of the flash.
    pub fn flash_bytes(&self) -> u64 {
        self.model.config().array.geometry.bytes()
    }

    /// Begins an observation, and a chart of the next `chart_ns`.
    pub fn observe(&self, now: Time, chart_ns: u64) -> Observation {
        self.model.record(now, Time(u64::MAX), MOST_RECORDED);
        let (busy, traffic) = (self.model.busy_times(), self.path.traffic());
        Observation {
            begin: now,
            chart_ns,
            busy,
            interrupts: traffic.interrupts,
            completions: traffic.completions,
        }
    }

    /// The observation up to `now`.
    pub fn observed(&self, since: &Observation, now: Time) -> Observed {
        let BusyTimes { channels_ns, dies_ns } = self.model.busy_times();
        let elapsed_ns = now.since_ns(since.begin).max(1) as f64;
        let shares = |after: &[u64], before: &[u64]| {
            let busy = after.iter().zip(before).map(|(after, before)| after - before);
            // Started work counts completely, so the last may reach beyond the end.
            busy.map(|busy_ns| (busy_ns as f64 / elapsed_ns).min(1.0)).collect()
        };
        let traffic = self.path.traffic();
        let completions = traffic.completions - since.completions;
        let interrupts = traffic.interrupts - since.interrupts;
        Observed {
            channel_utilisation: shares(&channels_ns, &since.busy.channels_ns),
            die_utilisation: shares(&dies_ns, &since.busy.dies_ns),
            interrupts_per_completion: interrupts as f64 / completions.max(1) as f64,
            gantt: self.gantt(since),
            bytes_per_page: self.model.memory_bytes() as f64
                / self.model.config().array.geometry.pages() as f64,
        }
    }

    /// The chart of a short time from the first operation on, as a store may buffer writes in
    /// memory for long before it. It shows the first of the dies that work in this time.
    fn gantt(&self, &Observation { begin, chart_ns, .. }: &Observation) -> Vec<Span> {
        let recorded = self.model.recorded();
        let until = recorded.first().map_or(begin, |first| first.begin) + chart_ns;
        let window: Vec<_> =
            recorded.into_iter().take_while(|recorded| recorded.begin < until).collect();
        let working: BTreeSet<u32> = window.iter().map(|recorded| recorded.die.0).collect();
        let most = CHARTED_CHANNELS * self.model.config().array.geometry.dies_per_channel();
        let charted: BTreeSet<u32> = working.into_iter().take(most as usize).collect();
        let of_charted = window.into_iter().filter(|recorded| charted.contains(&recorded.die.0));
        of_charted
            .map(|recorded| Span {
                die: recorded.die.0,
                what: recorded.activity,
                begin_ns: recorded.begin.since_ns(begin),
                end_ns: recorded.end.since_ns(begin),
            })
            .collect()
    }
}

/// A faultless array of these units.
fn config(spec: &DeviceSpec, unit: UnitKind) -> ModelConfig {
    ModelConfig { unit, seed: 0, array: spec.array(), faults: FaultConfig::default() }
}

/// The state at the beginning of an observation.
pub struct Observation {
    begin: Time,
    /// The duration of the chart.
    chart_ns: u64,
    busy: BusyTimes,
    interrupts: u64,
    completions: u64,
}

/// An observation.
pub struct Observed {
    /// Share of the time that each channel's bus was busy.
    pub channel_utilisation: Vec<f64>,
    /// Share of the time that each die's cell array was busy.
    pub die_utilisation: Vec<f64>,
    /// Interrupts for each completed command.
    pub interrupts_per_completion: f64,
    /// The first operations of some dies.
    pub gantt: Vec<Span>,
    /// Memory of the simulated flash for each of its pages.
    pub bytes_per_page: f64,
}

fn host_path(link: &LinkSpec, host: &HostSpec) -> HostPathConfig {
    HostPathConfig {
        read_bytes_per_second: link.read_bytes_per_second,
        write_bytes_per_second: link.write_bytes_per_second,
        half_duplex: link.half_duplex,
        submit_ns: host.submit_ns,
        complete_ns: host.complete_ns,
        completions_per_interrupt: host.completions_per_interrupt,
        interrupt_wait_ns: INTERRUPT_WAIT_NS,
    }
}
