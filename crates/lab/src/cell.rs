//! One run: a device, a layout, a workload and parameters. What engines are given.

use crate::layout::Layout;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use softflash_drive::spec::DeviceSpec;
use softflash_workload::Precondition;
use std::sync::atomic::{AtomicBool, Ordering};

/// One run of an experiment, complete: equal cells give equal outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name within the experiment.
    pub key: String,
    /// The name of the layout.
    pub layout_name: String,
    /// The name of the workload.
    pub workload_name: String,
    /// The hardware.
    pub device: DeviceSpec,
    /// How it is used.
    pub layout: Layout,
    /// What is asked of it.
    pub workload: Workload,
    /// How much, and from what state on.
    pub parameters: Parameters,
    /// Of everything random.
    pub seed: u64,
}

/// Parameters beside hardware, layout and workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Over-provisioning in percent, spare / logical; the layout's own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_percent: Option<f64>,
    /// The drive's state before: `none`, `fill`, `overwrite:2` or `steady`.
    #[serde(default, with = "as_text")]
    pub precondition: Precondition,
    /// Requests of the measured part; the workload's own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Virtual time of the measured part; what ends first, it or `requests`, ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Virtual time before the measured part that counts for nothing.
    #[serde(default)]
    pub warm_up_ms: u64,
    /// Intervals of the run's time series.
    #[serde(default = "hundred")]
    pub samples: u32,
    /// How a store reads a conventional drive. Units of flash have no file system in front of them.
    #[serde(default)]
    pub drive_io: DriveIo,
}

/// How a store reads a conventional drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveIo {
    /// Past the page cache, as `serve` does: a read is one request.
    #[default]
    Direct,
    /// From files, through the page cache of Linux with its read-ahead.
    Buffered,
}

fn hundred() -> u32 {
    100
}

/// Requests of a run that says neither how many nor for how long.
const REQUESTS: u64 = 100_000;

impl Parameters {
    /// The names that experiments may give values to.
    pub const NAMES: [&'static str; 7] = [
        "op_percent",
        "precondition",
        "requests",
        "duration_ms",
        "warm_up_ms",
        "samples",
        "drive_io",
    ];
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            op_percent: None,
            precondition: Precondition::default(),
            requests: None,
            duration_ms: None,
            warm_up_ms: 0,
            samples: hundred(),
            drive_io: DriveIo::default(),
        }
    }
}

/// States of a drive are written as on the command line.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use softflash_workload::Precondition;

    pub fn serialize<S: Serializer>(state: &Precondition, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(state)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Precondition, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// How long a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of the measured part.
    pub requests: Option<u64>,
    /// Virtual time of the measured part; whichever ends first ends the run.
    pub duration_ns: Option<u64>,
    /// Virtual time before the measured part.
    pub warm_up_ns: u64,
    /// Intervals of the run's time series.
    pub samples: u32,
}

impl Cell {
    /// Over-provisioning in percent.
    pub fn op_percent(&self) -> f64 {
        self.parameters.op_percent.unwrap_or_else(|| self.layout.op_percent())
    }

    /// The limits of the measured part: the experiment's, else the workload's.
    pub fn limits(&self) -> Limits {
        let Parameters { requests, duration_ms, warm_up_ms, samples, .. } = self.parameters;
        let given = (requests, duration_ms.map(|ms| ms.saturating_mul(1_000_000)));
        let (requests, duration_ns) = match given {
            (None, None) => self.workload.limits(),
            given => given,
        };
        let requests = requests.or(duration_ns.is_none().then_some(REQUESTS));
        let warm_up_ns = warm_up_ms.saturating_mul(1_000_000);
        Limits { requests, duration_ns, warm_up_ns, samples }
    }
}

/// Callbacks while a cell runs. Nothing here changes an outcome.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set when the run is to end early, with [`LabError::Stopped`](crate::LabError::Stopped).
    pub stop: &'a AtomicBool,
    /// Called now and then with the share of the run that is done, 0 to 1, preconditioning
    /// included.
    pub on_progress: &'a (dyn Fn(f64) + Sync),
    /// Called once, when the measured part begins, after preconditioning and warm-up.
    pub on_measuring: &'a (dyn Fn() + Sync),
    /// Called once, when the measured part is over, before the simulation's state is checked.
    pub on_measured: &'a (dyn Fn() + Sync),
}

impl Control<'_> {
    /// Whether the run is to end early.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A control that lets a run go to its end.
pub fn unattended(stop: &AtomicBool) -> Control<'_> {
    Control { stop, on_progress: &|_| {}, on_measuring: &|| {}, on_measured: &|| {} }
}
