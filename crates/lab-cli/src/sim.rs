//! `softflash bench sim`: any device, layout and workload, in virtual time.

use crate::simulated::{Report, Target, measured};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::progress::Progress;
use softflash_lab::{Cell, Parameters, engine, presets};

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
  softflash bench sim --device ./small.toml --layout sdf \\
      --workload random-write-4k --precondition steady

On a layout of units, workloads that write less than a superblock at a time run on a volume over \
all of them, with the code that `serve` has. By default a million requests. Processor time is that \
of the measured part; the preconditioning of the drive is reported separately. A run whose write \
amplification still drifts says so.")]
pub struct Sim {
    #[command(flatten)]
    target: Target,
    /// Workload: a preset of `softflash lab list`, or the path of a TOML file
    #[arg(long, value_name = "NAME")]
    workload: String,
    /// Number of requests in the measured part
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct SimReport {
    workload: String,
    #[serde(flatten)]
    report: Report,
}

impl Sim {
    /// Simulates and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let cell = self.cell()?;
        let progress = Progress::of_run();
        let (device, layout) = (&cell.device.name, &cell.layout_name);
        let report = measured(&self.target, device, layout, &progress, |control| {
            engine::run(&cell, control)
        })?;
        let report = SimReport { workload: cell.workload_name, report };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                output::pairs(report.report.lines());
                Ok(())
            }
        }
    }

    fn cell(&self) -> Result<Cell, CliError> {
        let target = &self.target;
        let device = presets::device(&target.device)?;
        let layout = target.layout.as_ref().unwrap_or(&device.default_layout);
        let (layout_name, layout) = presets::layout(layout)?;
        let (workload_name, workload) = presets::workload(&self.workload)?;
        Ok(Cell {
            key: "bench".to_owned(),
            layout_name,
            workload_name,
            device,
            layout,
            workload,
            parameters: Parameters {
                op_percent: target.op,
                precondition: target.precondition,
                requests: Some(self.requests),
                ..Parameters::default()
            },
            seed: target.seed,
        })
    }
}
