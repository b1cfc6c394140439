//! Shared parts of `bench sim` and `replay`: the simulated drive and the results.

mod flows;
mod log;
mod report;
mod scaled;

pub use report::{Latency, Report};

use crate::states;
use clap::Args;
use log::RequestLog;
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::measure::{Cost, Stopwatch};
use softflash_console::new_file::Existing;
use softflash_console::progress::Progress;
use softflash_lab::cell::OnRequest;
use softflash_lab::{Control, LabError, Outcome, Precondition, Settling, StateCache};
use std::path::PathBuf;
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
    /// Preconditioning of the drive: none, fill, overwrite:TIMES, steady, steady:REWRITES or
    /// random-4k:SECONDS, as random-4k:3600s
    #[arg(long, value_name = "STATE", default_value_t)]
    pub precondition: Precondition,
    /// Seconds after which a drive that has not settled runs as it is, and the result says so
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    pub settle_limit: Option<f64>,
    /// Directory in which states of large drives that have settled are kept and found, or `none`;
    /// by default that of SOFTFLASH_STATES, or softflash/states in the user's cache
    #[arg(long, value_name = "DIR")]
    pub states: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Add the run over time to -o json: bytes, write amplification, and the latencies of reads and
    /// of writes in each of a hundred intervals; of each flow in a run with a duration
    #[arg(long)]
    pub series: bool,
    /// Write a CSV line for each request of the measured part to this file: arrival, start in the
    /// drive and end in nanoseconds of virtual time, kind, offset and length in bytes
    #[arg(long, value_name = "FILE")]
    pub log_requests: Option<PathBuf>,
    /// Replace an existing file of --log-requests, once the new one is complete
    #[arg(long, requires = "log_requests")]
    pub force: bool,
}

/// The processor time of the preparation, and the cost of the measured part.
pub struct Costs {
    preparation_cpu_seconds: f64,
    measured: Cost,
}

/// Runs a simulation and shows its progress, and measures the preparation and the measured part
/// separately.
pub fn measured(
    target: &Target,
    device: &str,
    layout: &str,
    progress: &Progress,
    run: impl FnOnce(&Control) -> Result<Outcome, LabError>,
) -> Result<Report, CliError> {
    let existing = Existing::by_force(target.force);
    let log = target.log_requests.as_deref();
    let log = log.map(|path| RequestLog::create(path, existing)).transpose()?;
    let states = states::cache(target.states.as_deref(), host::program_identity()?);
    let ran = timed(log.as_ref(), (target.settle_limit, states.as_ref()), progress, run);
    progress.finish();
    let (outcome, costs) = match log {
        Some(log) => log.finish(ran),
        None => ran,
    }?;
    Ok(Report::new(target, device, layout, outcome, &costs))
}

fn timed(
    log: Option<&RequestLog>,
    (limit, states): (Option<f64>, Option<&StateCache>),
    progress: &Progress,
    run: impl FnOnce(&Control) -> Result<Outcome, LabError>,
) -> Result<(Outcome, Costs), CliError> {
    let stop = AtomicBool::new(false);
    let before = Stopwatch::start();
    let (measuring, measured) = (Mutex::new(None), Mutex::new(None));
    let add = |log: &RequestLog, request: &_| log.add(request, &stop);
    let on_request = log.map(|log| move |request: &_| add(log, request));
    let outcome = run(&Control {
        stop: &stop,
        on_progress: &|share| progress.show(share),
        on_settling: &|settling| {
            let seconds = before.stop().seconds;
            progress.tell(&settling_line(settling, seconds));
            limit.is_none_or(|limit| seconds < limit)
        },
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
        on_request: on_request.as_ref().map(|on_request| on_request as OnRequest),
        states,
    });
    let measuring = measuring.into_inner().unwrap_or_else(PoisonError::into_inner);
    let measured = measured.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (preparation_cpu_seconds, measured) = match (measured, measuring) {
        (Some((before, cost)), _) => (before.cpu_seconds, cost),
        (None, Some((before, running))) => (before.cpu_seconds, running.stop()),
        (None, None) => (0.0, before.stop()),
    };
    let outcome = outcome?;
    if outcome.requests != outcome.completed {
        let Outcome { requests, completed, .. } = outcome;
        return Err(LabError::LostRequests { requests, completed }.into());
    }
    Ok((outcome, Costs { preparation_cpu_seconds, measured }))
}

/// How far a drive has settled: rewrites, write amplification, and the longest time left.
fn settling_line(settling: &Settling, seconds: f64) -> String {
    let Settling { rewrites, most, waf } = *settling;
    let left = match rewrites > 0.1 {
        true => format!("at most {:.0} s left", seconds * (f64::from(most) / rewrites - 1.0)),
        false => "time left not known yet".to_owned(),
    };
    // A window of rewrites has programmed nothing at its beginning.
    let waf = if waf > 0.0 { format!("{waf:.3}") } else { "not known yet".to_owned() };
    format!("settling: rewrite {rewrites:.1} of at most {most}, write amplification {waf}, {left}")
}

fn positive_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 { Ok(seconds) } else { Err("must be above 0".to_owned()) }
}
