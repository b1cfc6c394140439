//! `softflash bench kv`

mod load;
mod worker;

use super::measure::{Cost, Latencies, LatencySummary, Stopwatch};
use crate::cleanup::Cleanup;
use crate::cmd::serve::parse_durability;
use crate::embedded::OpenDir;
use crate::error::CliError;
use crate::formatting::{Compressions, NewDevice, Plan, human_bytes, parse_size};
use crate::output::{self, Form};
use clap::{Args, ValueEnum};
use load::Load;
use serde::Serialize;
use softflash_device::file::Discard;
use softflash_store::{Durability, StoreOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::{Fleet, Phase};

/// Arguments of `bench kv`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench kv --workload fill --keys 1000000 --value-size 1KiB
  softflash bench kv --workload get --depth 64 --operations 1000000
  softflash bench kv --workload overwrite --durability 1s --threads 2 -o json

Creates a store in --directory and removes it at the end. All workloads but `fill` fill it first, which
is not measured. Each thread has a shard, and accesses keys of that shard.")]
pub struct Kv {
    /// Workload
    #[arg(long, value_enum, default_value_t)]
    workload: Workload,
    /// Number of different keys
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    keys: u32,
    /// Bytes per value
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_size)]
    value_size: u64,
    /// Number of operations; by default one per key
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Number of threads and shards
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u16,
    /// Concurrent operations per thread
    #[arg(long, value_name = "N", default_value_t = 16)]
    depth: u32,
    /// When a write is acknowledged: `flash`, once it survives a power cut; or immediately, to
    /// survive one after a time such as `1s`
    #[arg(long, value_name = "flash|TIME", default_value = "flash", value_parser = parse_durability)]
    durability: Durability,
    /// Memory for memtables and read cache
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: u64,
    /// Where to create the store
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Size of the device; by default four times the data, at least 2 GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Seed of keys and values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// Workload of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Write every key once, in random order
    #[default]
    Fill,
    /// Overwrite random keys
    Overwrite,
    /// Read random keys
    Get,
    /// Read all keys in order; an operation is a page of 100 keys
    Scan,
}

#[derive(Serialize)]
struct Report {
    workload: Workload,
    keys: u32,
    value_bytes: u64,
    threads: u16,
    depth: u32,
    durability: String,
    device: String,
    operations: u64,
    seconds: f64,
    operations_per_second: f64,
    bytes_per_second: f64,
    cpu_us_per_operation: f64,
    latency: LatencySummary,
    /// Bytes programmed per byte written; none without writes.
    write_amplification: Option<f64>,
    flash_reads_per_operation: f64,
}

impl Kv {
    /// Creates a store, measures, prints, and removes the store.
    pub fn run(self) -> Result<(), CliError> {
        let path = self.directory.join(format!("softflash-bench-{}", std::process::id()));
        let temporary = Temporary::make(&path)?;
        self.plan(&path).carry_out()?;
        let cleanup = Cleanup::on_signal(softflash_server::data_dir::contents(&path))?;
        let directory = OpenDir::open(&path, "wait for it")?;
        let report = self.measure(&directory)?;
        drop(directory);
        cleanup.finish(|| drop(temporary));
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                output::pairs(report.lines());
                Ok(())
            }
        }
    }

    fn plan(&self, path: &Path) -> Plan {
        let data = u64::from(self.keys) * (self.value_size + 64);
        let size_bytes = self.size.unwrap_or((data * 4).max(2 << 30));
        Plan {
            path: path.to_owned(),
            device: NewDevice::File { size_bytes, discard: Discard::None, block_device: None },
            units: 16.max(self.threads),
            shards: Some(self.threads),
            slices: None,
            compression: Compressions::default(),
            copies: 1,
            parity: 0,
            force: true,
        }
    }

    fn measure(&self, directory: &OpenDir) -> Result<Report, CliError> {
        let options = StoreOptions {
            memory_bytes: self.memory,
            durability: self.durability,
            ..StoreOptions::default()
        };
        let load = Load::new(
            usize::try_from(self.value_size).unwrap_or(usize::MAX),
            self.keys,
            self.depth.max(1),
            self.seed,
        );
        let fleet = Fleet::start(directory, &options, Arc::new(load))?;
        let operations = self.operations.unwrap_or(u64::from(self.keys));
        if self.workload != Workload::Fill {
            fleet.run(Phase { workload: Workload::Fill, operations: u64::from(self.keys) })?;
        }
        let before = fleet.stats()?;
        let watch = Stopwatch::start();
        let outcome = fleet.run(Phase { workload: self.workload, operations })?;
        let cost = watch.stop();
        let after = fleet.stats()?;
        fleet.close()?;
        let flash = after.flash_bytes_written - before.flash_bytes_written;
        let host = after.host_bytes_written - before.host_bytes_written;
        let reads = after.device_reads - before.device_reads;
        let write_amplification = (host > 0).then(|| flash as f64 / host as f64);
        Ok(self.report(directory, outcome, cost, write_amplification, reads))
    }

    fn report(
        &self,
        directory: &OpenDir,
        (operations, bytes, latencies): (u64, u64, Latencies),
        cost: Cost,
        write_amplification: Option<f64>,
        flash_reads: u64,
    ) -> Report {
        let each = operations.max(1) as f64;
        Report {
            workload: self.workload,
            keys: self.keys,
            value_bytes: self.value_size,
            threads: self.threads,
            depth: self.depth,
            durability: match self.durability {
                Durability::Flash => "flash".to_owned(),
                Durability::Interval(interval) => format!("{interval:?}"),
            },
            device: directory.device.info().detail.clone(),
            operations,
            seconds: cost.seconds,
            operations_per_second: operations as f64 / cost.seconds,
            bytes_per_second: bytes as f64 / cost.seconds,
            cpu_us_per_operation: cost.cpu_seconds * 1e6 / each,
            latency: latencies.summary(),
            write_amplification,
            flash_reads_per_operation: flash_reads as f64 / each,
        }
    }
}

impl Report {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("operations", self.operations.to_string()),
            ("took", format!("{:.2} s", self.seconds)),
            ("operations per second", format!("{:.0}", self.operations_per_second)),
            ("keys and values", format!("{}/s", human_bytes(self.bytes_per_second as u64))),
            ("processor time per operation", format!("{:.2} us", self.cpu_us_per_operation)),
        ];
        lines.extend(self.latency.lines());
        if let Some(waf) = self.write_amplification {
            lines.push(("write amplification", format!("{waf:.2}")));
        }
        lines.push(("flash reads per operation", format!("{:.3}", self.flash_reads_per_operation)));
        lines.push(("device", self.device.clone()));
        lines
    }
}

/// A directory that is removed on drop.
struct Temporary<'a>(&'a Path);

impl Temporary<'_> {
    fn make(path: &Path) -> Result<Temporary<'_>, CliError> {
        std::fs::create_dir(path).map_err(CliError::file(path))?;
        Ok(Temporary(path))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(self.0) {
            tracing::warn!(path = %self.0.display(), %error, "not removed");
        }
    }
}
