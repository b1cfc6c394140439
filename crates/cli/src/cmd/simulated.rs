//! Shared parts of `bench sim` and `replay`: the simulated drive and the results.

use crate::cmd::bench::measure::Stopwatch;
use crate::cmd::progress::Progress;
use crate::error::CliError;
use clap::Args;
use serde::Serialize;
use softflash_base::histogram::LatencySummary;
use softflash_lab::{Control, LabError, Outcome, Precondition, Programs};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// The simulated drive.
#[derive(Debug, Args)]
pub struct Target {
    /// The device: a preset of `softflash lab list`, or the path of a TOML file
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// Layout: a preset or a path; by default the device's own
    #[arg(long, value_name = "NAME")]
    pub layout: Option<String>,
    /// Over-provisioning in percent, spare / logical; by default the layout's
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    pub op: Option<f64>,
    /// Preconditioning of the drive: none, fill, overwrite:TIMES, steady or random-4k:SECONDS, as
    /// random-4k:3600s
    #[arg(long, value_name = "STATE", default_value_t)]
    pub precondition: Precondition,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Results and cost of a simulation.
#[derive(Debug, Serialize)]
pub struct Report {
    device: String,
    layout: String,
    requests: u64,
    completed: u64,
    bytes_read: u64,
    bytes_written: u64,
    simulated_seconds: f64,
    seconds: f64,
    cpu_seconds: f64,
    requests_per_cpu_second: f64,
    precondition_cpu_seconds: f64,
    bytes_per_page: f64,
    waf: f64,
    programs: Programs,
    erases: u64,
    /// Of a drive whose map lies on flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapReport>,
    read_latency_ns: Latency,
    write_latency_ns: Latency,
}

/// Figures of latencies for JSON, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct Latency {
    mean: f64,
    p50: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p999: u64,
    max: u64,
}

/// Work for a map that lies on flash.
#[derive(Debug, Serialize)]
struct MapReport {
    hit_ratio: f64,
    reads: u64,
    programs: u64,
    /// Translation pages programmed for each page that the host wrote.
    waf: f64,
}

impl MapReport {
    fn of(outcome: &Outcome) -> Option<MapReport> {
        let figure = |name: &str| outcome.figures.get(name).copied();
        Some(MapReport {
            hit_ratio: figure("map_hit_ratio")?,
            reads: figure("map_reads")? as u64,
            programs: figure("map_programs")? as u64,
            waf: figure("map_waf")?,
        })
    }

    fn line(&self) -> String {
        let MapReport { hit_ratio, reads, programs, waf } = self;
        format!(
            "hit ratio {hit_ratio:.4}, {reads} pages read, {programs} programmed, {waf:.3} of the write amplification"
        )
    }
}

impl From<LatencySummary> for Latency {
    fn from(summary: LatencySummary) -> Latency {
        Latency {
            mean: summary.mean_ns,
            p50: summary.p50_ns,
            p99: summary.p99_ns,
            p999: summary.p999_ns,
            max: summary.max_ns,
        }
    }
}

/// Runs a simulation and shows its progress, and measures the preparation and the measured part
/// separately.
pub fn measured(
    device: &str,
    layout: &str,
    progress: &Progress,
    run: impl FnOnce(&Control) -> Result<Outcome, LabError>,
) -> Result<Report, CliError> {
    let stop = AtomicBool::new(false);
    let before = Stopwatch::start();
    let (measuring, measured) = (Mutex::new(None), Mutex::new(None));
    let outcome = run(&Control {
        stop: &stop,
        on_progress: &|share| progress.show(share),
        on_measuring: &|| {
            let cost = (before.stop(), Stopwatch::start());
            *measuring.lock().unwrap_or_else(PoisonError::into_inner) = Some(cost);
            progress.measuring();
        },
        on_measured: &|| {
            let mut measuring = measuring.lock().unwrap_or_else(PoisonError::into_inner);
            let cost = measuring.take().map(|(before, running)| (before, running.stop()));
            *measured.lock().unwrap_or_else(PoisonError::into_inner) = cost;
        },
    });
    progress.finish();
    let measuring = measuring.into_inner().unwrap_or_else(PoisonError::into_inner);
    let measured = measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (precondition_cpu_seconds, cost) = match (measured, measuring) {
        (Some((before, cost)), _) => (before.cpu_seconds, cost),
        (None, Some((before, running))) => (before.cpu_seconds, running.stop()),
        (None, None) => (0.0, before.stop()),
    };
    let outcome = outcome?;
    if outcome.requests != outcome.completed {
        let Outcome { requests, completed, .. } = outcome;
        return Err(LabError::LostRequests { requests, completed }.into());
    }
    Ok(Report {
        device: device.to_owned(),
        layout: layout.to_owned(),
        map: MapReport::of(&outcome),
        requests: outcome.requests,
        completed: outcome.completed,
        bytes_read: outcome.bytes_read,
        bytes_written: outcome.bytes_written,
        simulated_seconds: outcome.simulated_ns as f64 / 1e9,
        seconds: cost.seconds,
        cpu_seconds: cost.cpu_seconds,
        requests_per_cpu_second: outcome.completed as f64 / cost.cpu_seconds,
        precondition_cpu_seconds,
        bytes_per_page: outcome.bytes_per_page,
        waf: outcome.programs.waf(),
        programs: outcome.programs,
        erases: outcome.erases,
        read_latency_ns: outcome.read_latency.into(),
        write_latency_ns: outcome.write_latency.into(),
    })
}

impl Report {
    /// Rows of a table.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let seconds = self.simulated_seconds.max(f64::MIN_POSITIVE);
        let rate = |bytes: u64| format!("{:.1} MB/s", bytes as f64 / seconds / 1e6);
        let latency = |latency: &Latency| {
            let us = |ns: f64| format!("{:.1}", ns / 1000.0);
            let [mean, p50, p99, p999, max] = [
                latency.mean,
                latency.p50 as f64,
                latency.p99 as f64,
                latency.p999 as f64,
                latency.max as f64,
            ]
            .map(us);
            format!("mean {mean}, p50 {p50}, p99 {p99}, p99.9 {p999}, max {max} us")
        };
        let mut lines = vec![
            ("device", format!("{}, layout {}", self.device, self.layout)),
            ("requests", format!("{}, completed {}", self.requests, self.completed)),
            ("read", rate(self.bytes_read)),
            ("written", rate(self.bytes_written)),
            ("read latency", latency(&self.read_latency_ns)),
            ("write latency", latency(&self.write_latency_ns)),
            ("write amplification", format!("{:.3}", self.waf)),
            ("simulated", format!("{:.3} s", self.simulated_seconds)),
            ("took", format!("{:.3} s", self.seconds)),
            ("processor time", format!("{:.3} s", self.cpu_seconds)),
            ("preparation", format!("{:.3} s of processor time", self.precondition_cpu_seconds)),
            ("requests per CPU second", format!("{:.2} M", self.requests_per_cpu_second / 1e6)),
            ("memory per flash page", format!("{:.2} bytes", self.bytes_per_page)),
        ];
        lines.extend(self.map.iter().map(|map| ("map on flash", map.line())));
        lines
    }
}
