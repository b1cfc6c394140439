//! `softflash replay`: replays a block trace on a simulated drive, or on a volume over units.

use crate::simulated::{Report, Target, measured};
use crate::trace::{Tick, open, remarks};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::progress::Progress;
use softflash_console::sizes::parse_size;
use softflash_lab::engine::drive::{self, Asked};
use softflash_lab::engine::volumes;
use softflash_lab::{Control, DeviceSpec, LabError, Layout, LayoutKind, Limits, Outcome, presets};
use softflash_trace::adapt::{AdaptError, Item};
use softflash_trace::{Format, Kind, ReadOptions, Request, Tally, TraceError, TraceExt};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash replay disk.csv.gz --device huawei-gen3 --wrap
  softflash replay disk.csv.gz --device intel-320 --op 12.5 \\
      --precondition steady --speed 4 -o json
  softflash replay disk.csv --device tlc-modern --copies 8 --copy-offset 32GiB
  softflash replay disk.csv --device tlc-modern --layout sdf --wrap

On a layout of units the trace goes to a volume over all of them, which also makes its flushes. \
Requests are issued at their times, even if the drive falls behind; the result says so. Changes \
apply in this order: speed, copies, wrap. Formats: msr, fio-v2, fio-v3, blkparse, vscsi, mqsim, \
alibaba, tencent; see docs/traces.md.")]
pub struct Replay {
    /// The trace, plain, gzip or zstd; `-` for standard input
    #[arg(value_name = "TRACE")]
    path: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Format of the trace; by default detected from its first lines
    #[arg(long, value_name = "FORMAT", visible_alias = "from")]
    format: Option<Format>,
    /// Unit of the times of vscsi
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    vscsi_tick: Tick,
    /// Fail at the first malformed line, instead of counting such lines
    #[arg(long)]
    strict: bool,
    /// Only the requests to this device of the trace; without it, all devices share the drive's
    /// addresses
    #[arg(long, value_name = "DEVICE")]
    only_device: Option<u32>,
    /// Speed factor: 2 halves all times, 0.5 doubles them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,
    /// Issue every request this many times, each copy at an offset of --copy-offset
    #[arg(long, value_name = "N", default_value_t = 1, requires = "copy_offset")]
    copies: u32,
    /// Distance of the addresses of two copies
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    copy_offset: Option<u64>,
    /// Fold addresses onto the drive
    #[arg(long)]
    wrap: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// Number of intervals in the time series.
const SAMPLES: u32 = 100;

#[derive(Serialize)]
struct ReplayReport {
    trace: String,
    format: Format,
    tally: Tally,
    #[serde(flatten)]
    played: Played,
    #[serde(flatten)]
    report: Report,
}

/// The replayed part of a trace.
#[derive(Default, Serialize)]
struct Played {
    devices: BTreeSet<u32>,
    /// Flushes that were not made, on a drive.
    flushes_passed_over: u64,
    /// Flushes of a volume.
    flushes_made: u64,
    /// Reads, writes and trims of no bytes, which are not issued.
    empty_passed_over: u64,
    #[serde(skip)]
    on_volume: bool,
}

/// What the trace is replayed on.
struct Place {
    device: DeviceSpec,
    layout_name: String,
    layout: Layout,
}

/// The engine of a place, with its settings.
enum Engine<'a> {
    Drive(drive::Setting<'a>),
    Volume(volumes::Setting<'a>),
}

impl Engine<'_> {
    /// Bytes that the host can address.
    fn capacity_bytes(&self) -> Result<u64, LabError> {
        match self {
            Engine::Drive(setting) => setting.capacity_bytes(),
            Engine::Volume(setting) => setting.capacity_bytes(),
        }
    }

    fn simulate(&self, asked: Asked<'_>, control: &Control) -> Result<Outcome, LabError> {
        match self {
            Engine::Drive(setting) => drive::simulate(setting, asked, control),
            Engine::Volume(setting) => volumes::simulate(setting, asked, control),
        }
    }
}

impl Played {
    fn note(&mut self, request: &Request) {
        self.devices.insert(request.device);
        let is_flush = request.kind == Kind::Flush;
        let flushes = match self.on_volume {
            true => &mut self.flushes_made,
            false => &mut self.flushes_passed_over,
        };
        *flushes += u64::from(is_flush);
        self.empty_passed_over += u64::from(!is_flush && request.bytes == 0);
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.devices.len() > 1 {
            remarks.push(format!(
                "the requests of {} devices went to the same addresses of one drive; --only-device selects one of them",
                self.devices.len()
            ));
        }
        if self.flushes_passed_over > 0 {
            remarks.push(format!(
                "{} flushes were ignored: on a drive a replay makes none",
                self.flushes_passed_over
            ));
        }
        if self.empty_passed_over > 0 {
            remarks.push(format!(
                "{} requests of length 0 were left out: a drive has nothing to do for them",
                self.empty_passed_over
            ));
        }
        remarks
    }
}

impl Replay {
    /// Replays the trace and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let place = self.place()?;
        let engine = self.engine(&place);
        let capacity_bytes = engine.capacity_bytes()?;
        let options = ReadOptions {
            format: self.format,
            lenient: !self.strict,
            vscsi_tick_ns: self.vscsi_tick.ns(),
        };
        let (mut reader, bar) = open(&self.path, options)?;
        let on_volume = matches!(engine, Engine::Volume(_));
        let played = RefCell::new(Played { on_volume, ..Played::default() });
        let only = self.only_device;
        let chosen = reader
            .by_ref()
            .filter(|item| {
                only.is_none_or(|only| !matches!(item, Ok(request) if request.device != only))
            })
            .inspect(|item| item.iter().for_each(|request| played.borrow_mut().note(request)));
        let mut trace = self.changed(chosen, capacity_bytes).map_err(TraceError::from)?;
        let progress = Progress::of_preparation();
        let (device, layout) = (&place.device.name, &place.layout_name);
        let report = measured(&self.target, device, layout, &progress, |control| {
            engine.simulate(Asked::Trace(&mut trace), control)
        })?;
        drop(trace);
        bar.finish_and_clear();
        let played = played.into_inner();
        if played.devices.is_empty() {
            return Err(self.nothing_to_replay(reader.tally()));
        }
        let report = ReplayReport {
            trace: self.path.display().to_string(),
            format: reader.format(),
            tally: reader.tally().clone(),
            played,
            report,
        };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                remarks(&report.tally).iter().for_each(|remark| output::say(remark));
                report.played.remarks().iter().for_each(|remark| output::say(remark));
                report.report.print();
                Ok(())
            }
        }
    }

    fn nothing_to_replay(&self, tally: &Tally) -> CliError {
        let (path, requests) = (self.path.display(), tally.requests);
        CliError::Failed(match self.only_device {
            Some(device) if requests > 0 => format!(
                "{path}: none of its {requests} requests is for device {device}; `softflash trace summary` lists the devices"
            ),
            _ => format!("{path}: it has no requests"),
        })
    }

    fn place(&self) -> Result<Place, LabError> {
        let device = presets::device(&self.target.device)?;
        let layout = self.target.layout.as_ref().unwrap_or(&device.default_layout);
        let (layout_name, layout) = presets::layout(layout)?;
        Ok(Place { device, layout_name, layout })
    }

    fn engine<'a>(&self, place: &'a Place) -> Engine<'a> {
        let limits = Limits { requests: None, duration_ns: None, warm_up_ns: 0, samples: SAMPLES };
        let (precondition, seed) = (self.target.precondition, self.target.seed);
        let device = &place.device;
        match &place.layout.kind {
            LayoutKind::PageMapped(layout) => Engine::Drive(drive::Setting {
                device,
                layout,
                sets: place.layout.sets,
                op_percent: self.target.op.unwrap_or(layout.op_percent),
                precondition,
                limits,
                seed,
            }),
            LayoutKind::Units(layout) => Engine::Volume(volumes::Setting {
                device,
                layout,
                sets: place.layout.sets,
                op_percent: self.target.op.or(layout.op_percent),
                precondition,
                limits,
                seed,
            }),
        }
    }

    /// The trace with the requested changes, on a drive of this size.
    fn changed<'a>(
        &self,
        trace: impl Iterator<Item = Item> + 'a,
        capacity_bytes: u64,
    ) -> Result<Box<dyn Iterator<Item = Item> + 'a>, AdaptError> {
        let trace = trace.speed(self.speed)?.copies(self.copies, self.copy_offset.unwrap_or(0))?;
        Ok(match self.wrap {
            true => Box::new(trace.wrap(capacity_bytes)?),
            false => Box::new(trace.within(capacity_bytes)),
        })
    }
}
