//! One run: a device, a layout, a workload and parameters, the input of an engine.

use crate::layout::Layout;
use crate::states::StateCache;
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_drive::spec::DeviceSpec;
use softflash_workload::{AccessKind, Precondition};
use std::sync::atomic::{AtomicBool, Ordering};

/// The complete description of one run of an experiment. Equal cells give equal outcomes.
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
    /// The layout.
    pub layout: Layout,
    /// The workload.
    pub workload: Workload,
    /// The length of the run, the initial state and further parameters.
    pub parameters: Parameters,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// Parameters beside hardware, layout and workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Over-provisioning in percent, spare / logical; that of the layout by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub op_percent: Option<f64>,
    /// The drive's state before: `none`, `fill`, `overwrite:2`, `steady` or `random-4k:3600s`.
    #[serde(default, with = "as_text")]
    #[schemars(with = "Precondition")]
    pub precondition: Precondition,
    /// Requests of the measured part; that of the workload by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Virtual time of the measured part; the run ends when this time or `requests` is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Virtual time of the warm-up before the measured part, which is not measured.
    #[serde(default)]
    pub warm_up_ms: u64,
    /// Intervals of the run's time series.
    #[serde(default = "hundred")]
    pub samples: u32,
    /// How a store reads a conventional drive. Units of flash have no file system in front of them.
    #[serde(default)]
    pub drive_io: DriveIo,
    /// Drives that share the workload evenly: one is simulated, with its share.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub drives: u32,
}

/// How a store reads a conventional drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriveIo {
    /// Bypasses the page cache, as `serve` does: a read is one request.
    #[default]
    Direct,
    /// From files, through the page cache of Linux with its read-ahead.
    Buffered,
}

fn one() -> u32 {
    1
}

fn hundred() -> u32 {
    100
}

/// Default number of requests of a run without a limit of requests or time.
const REQUESTS: u64 = 100_000;

impl Parameters {
    /// The names of the parameters that experiments can set.
    pub const NAMES: [&'static str; 8] = [
        "op_percent",
        "precondition",
        "requests",
        "duration_ms",
        "warm_up_ms",
        "samples",
        "drive_io",
        "drives",
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
            drives: one(),
        }
    }
}

/// The state of a drive in the syntax of the command line.
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

/// The limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests of the measured part.
    pub requests: Option<u64>,
    /// Virtual time of the measured part; the run ends at the limit that is reached first.
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
        let warm_up_ns = match warm_up_ms {
            0 => self.workload.warm_up_ns(),
            given => given.saturating_mul(1_000_000),
        };
        Limits { requests, duration_ns, warm_up_ns, samples }
    }
}

/// A completed request of the measured part. Times are virtual, from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedRequest {
    /// When the client issued it, in nanoseconds.
    pub arrival_ns: u64,
    /// When the drive took it into its queue, in nanoseconds.
    pub start_ns: u64,
    /// When it completed, in nanoseconds.
    pub end_ns: u64,
    /// Its kind.
    pub kind: AccessKind,
    /// Its offset, in bytes.
    pub offset_bytes: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// Takes the requests of a run in the order of their completion.
pub type OnRequest<'a> = &'a (dyn Fn(&LoggedRequest) + Sync);

/// How far a drive has settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settling {
    /// Rewrites of the drive so far.
    pub rewrites: f64,
    /// The most rewrites that settling takes.
    pub most: u32,
    /// The write amplification of the last of them, in pages.
    pub waf: f64,
}

/// Takes the progress of settling; false ends it.
pub type OnSettling<'a> = &'a (dyn Fn(&Settling) -> bool + Sync);

/// Callbacks while a cell runs. They do not affect the outcome, unless settling is ended early.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set to end the run early, with [`LabError::Stopped`](crate::LabError::Stopped).
    pub stop: &'a AtomicBool,
    /// Called periodically with the completed share of the run, 0 to 1, preconditioning included.
    pub on_progress: &'a (dyn Fn(f64) + Sync),
    /// Called periodically while the writes of a workload settle a drive; false ends that before
    /// write amplification is level.
    pub on_settling: OnSettling<'a>,
    /// Called once, when the measured part begins, after preconditioning and warm-up.
    pub on_measuring: &'a (dyn Fn() + Sync),
    /// Called once, when the measured part is over, before the simulation's state is checked.
    pub on_measured: &'a (dyn Fn() + Sync),
    /// Called for each completed request of the measured part; only for block requests on
    /// page-mapped layouts and volumes.
    pub on_request: Option<OnRequest<'a>>,
    /// Where states that take long are kept.
    pub states: Option<&'a StateCache>,
}

impl Control<'_> {
    /// Whether the run is to end early.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A control whose callbacks do nothing.
pub fn unattended(stop: &AtomicBool) -> Control<'_> {
    Control {
        stop,
        on_progress: &|_| {},
        on_settling: &|_| true,
        on_measuring: &|| {},
        on_measured: &|| {},
        on_request: None,
        states: None,
    }
}
