//! `softflash bench sim`: any device, layout and workload, in virtual time.

use crate::flow::NamedFlow;
use crate::simulated::{Report, Target, measured};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::progress::Progress;
use softflash_lab::presets::Kind;
use softflash_lab::{Cell, FlowWorkload, Parameters, Workload, engine, presets};
use std::path::{Path, PathBuf};

/// Arguments of `bench sim`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench sim --device mqsim-default --workload random-read-8k
  softflash bench sim --device huawei-gen3 --workload mixed-8k --op 25 \\
      --precondition steady -o json
  softflash bench sim --device ./mine.toml --layout page-mapped \\
      --workload ./mix.toml
  softflash bench sim --device sdf --layout page-mapped \\
      --workload mixed-8k --log-requests log.csv
  softflash bench sim --device mqsim-default \\
      --flow reader=random-read-8k \\
      --flow writer=random-write-8k,span.share=0.5
  softflash bench sim --device mqsim-default --fio jobs.fio \\
      --section randread
  softflash bench sim --device ./small.toml --layout sdf \\
      --workload random-write-4k --precondition steady

Several flows run on one drive at the same time, each with its own figures. On a layout of units, \
workloads that write less than a superblock at a time run on a volume over all of them, with the \
code that `serve` has. By default a million requests, of all flows together; jobs of fio and flows \
with limits of their own end there. Processor time is that of the measured part; the \
preconditioning of the drive is reported separately. A run whose write amplification still drifts \
says so.")]
pub struct Sim {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    asked: Asked,
    /// Only the job of this name of a job file of fio, with the global options; once for each of
    /// several
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Number of requests in the measured part, of all flows together; by default a million, or
    /// until every flow has reached limits of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The workload: one of these. It is checked below, as the group would be a long line of usage.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Asked {
    /// Workload: a preset of `softflash lab list`, or the path of a TOML file, or of a job file of
    /// fio (`.fio`)
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// One of several flows at once: its name, its workload, and changed keys of the workload;
    /// once for each flow
    #[arg(long, value_name = "NAME=WORKLOAD[,KEY=VALUE]...")]
    flow: Vec<NamedFlow>,
    /// A job file of fio, of which each job is a flow
    #[arg(long, value_name = "FILE")]
    fio: Option<PathBuf>,
}

/// Requests of a run without limits of its own.
const REQUESTS: u64 = 1_000_000;

#[derive(Serialize)]
struct SimReport {
    workload: String,
    /// What was ignored of a job file of fio, and what differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(flatten)]
    report: Report,
}

impl Sim {
    /// Simulates and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let (cell, remarks) = self.cell()?;
        let progress = Progress::of_run();
        let (device, layout) = (&cell.device.name, &cell.layout_name);
        let report = measured(&self.target, device, layout, &progress, |control| {
            engine::run(&cell, control)
        })?;
        let report = SimReport { workload: cell.workload_name, remarks, report };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                report.remarks.iter().for_each(|remark| output::say(remark));
                report.report.print();
                Ok(())
            }
        }
    }

    /// The run, and the remarks on the workload.
    fn cell(&self) -> Result<(Cell, Vec<String>), CliError> {
        let target = &self.target;
        let device = presets::device(&target.device)?;
        let layout = target.layout.as_ref().unwrap_or(&device.default_layout);
        let (layout_name, layout) = presets::layout(layout)?;
        let (workload_name, workload, remarks) = self.workload()?;
        let ends = matches!(workload, Workload::Flows(_)) && workload.limits() != (None, None);
        let cell = Cell {
            key: "bench".to_owned(),
            layout_name,
            workload_name,
            device,
            layout,
            workload,
            parameters: Parameters {
                op_percent: target.op,
                precondition: target.precondition,
                requests: self.requests.or((!ends).then_some(REQUESTS)),
                ..Parameters::default()
            },
            seed: target.seed,
        };
        Ok((cell, remarks))
    }

    /// The workload, its name, and what was ignored of it.
    fn workload(&self) -> Result<(String, Workload, Vec<String>), CliError> {
        let Asked { workload, flow, fio } = &self.asked;
        let of_fio = |name: &&String| Path::new(name).extension().is_some_and(|it| it == "fio");
        let jobs = fio.as_deref().or(workload.as_ref().filter(of_fio).map(Path::new));
        if let (false, None) = (self.section.is_empty(), jobs) {
            let remedy = "--section chooses a job of a job file of fio: give one with --fio FILE";
            return Err(CliError::Usage(remedy.to_owned()));
        }
        let document = match (workload, jobs) {
            (Some(name), None) => Kind::Workload.find(name)?,
            (_, Some(path)) => presets::jobs_of_fio(path, &self.section)?,
            (None, None) if flow.is_empty() => {
                let missing = "what is to run is missing: give --workload NAME, --flow NAME=WORKLOAD or --fio FILE";
                return Err(CliError::Usage(missing.to_owned()));
            }
            (None, None) => {
                let flows = flow.iter().map(NamedFlow::flow).collect::<Result<_, CliError>>()?;
                let workload = Workload::Flows(FlowWorkload::new("flows", flows));
                workload.validate().map_err(|error| CliError::Usage(error.to_string()))?;
                return Ok(("flows".to_owned(), workload, Vec::new()));
            }
        };
        let workload = document.workload()?;
        Ok((document.name, workload, document.remarks))
    }
}
