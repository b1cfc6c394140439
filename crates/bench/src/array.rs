//! `softflash-bench array`: the model of a flash array, in virtual time.

use clap::{Args, ValueEnum};
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::measure::Stopwatch;
use softflash_console::output::{self, Form};
use softflash_nand::{ArrayConfig, BenchmarkMix, array_benchmark, presets};

/// Arguments of `softflash-bench array`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash-bench array
  softflash-bench array --preset tlc --mix read --operations 50000000 -o json")]
pub struct ArrayBench {
    /// Array preset
    #[arg(long, value_enum, default_value_t)]
    preset: Preset,
    /// Mix of operations
    #[arg(long, value_enum, default_value_t)]
    mix: Mix,
    /// Number of page operations
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    operations: u64,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Preset {
    /// Baidu's SDF: 44 channels, 704 GB
    #[default]
    Sdf,
    /// A modern TLC drive
    Tlc,
    /// A very small array
    Small,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Mix {
    /// Random reads
    Read,
    /// Sequential programs, with the erases that they need
    Program,
    /// 70 % reads, 29 % programs, 1 % erases
    #[default]
    Mixed,
}

#[derive(Serialize)]
struct Report {
    preset: Preset,
    mix: Mix,
    seed: u64,
    page_operations: u64,
    commands: u64,
    events: u64,
    simulated_seconds: f64,
    seconds: f64,
    cpu_seconds: f64,
    page_ops_per_cpu_second: f64,
    pages: u64,
    memory_bytes: u64,
    bytes_per_page: f64,
}

impl ArrayBench {
    /// Runs the benchmark and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let mix = match self.mix {
            Mix::Read => BenchmarkMix::READ,
            Mix::Program => BenchmarkMix::PROGRAM,
            Mix::Mixed => BenchmarkMix::MIXED,
        };
        let watch = Stopwatch::start();
        let result = array_benchmark(&self.config(), mix, self.operations, self.seed)
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let cost = watch.stop();
        let report = Report {
            preset: self.preset,
            mix: self.mix,
            seed: self.seed,
            page_operations: result.operations,
            commands: result.commands,
            events: result.events,
            simulated_seconds: result.simulated_ns as f64 / 1e9,
            seconds: cost.seconds,
            cpu_seconds: cost.cpu_seconds,
            page_ops_per_cpu_second: result.operations as f64 / cost.cpu_seconds,
            pages: result.pages,
            memory_bytes: result.memory_bytes,
            bytes_per_page: result.memory_bytes as f64 / result.pages.max(1) as f64,
        };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                output::pairs(report.lines());
                Ok(())
            }
        }
    }

    fn config(&self) -> ArrayConfig {
        match self.preset {
            Preset::Sdf => presets::sdf(),
            Preset::Tlc => presets::tlc(),
            Preset::Small => presets::small(),
        }
    }
}

impl Report {
    fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("page operations", self.page_operations.to_string()),
            ("commands", self.commands.to_string()),
            ("events", self.events.to_string()),
            ("simulated", format!("{:.3} s", self.simulated_seconds)),
            ("took", format!("{:.3} s", self.seconds)),
            ("processor time", format!("{:.3} s", self.cpu_seconds)),
            (
                "page operations per CPU second",
                format!("{:.2} M", self.page_ops_per_cpu_second / 1e6),
            ),
            ("pages", self.pages.to_string()),
            ("memory per page", format!("{:.2} bytes", self.bytes_per_page)),
        ]
    }
}
