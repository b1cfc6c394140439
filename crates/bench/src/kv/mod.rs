//! `softflash bench kv`: the store in this process, without sockets.

mod distribution;
mod fullness;
mod keys;
mod load;
mod report;
mod run;
mod series;
mod shard_threads;
mod tally;
mod work;
mod workload;

use clap::Args;
use distribution::Distribution;
use fullness::{Fullness, Shape, name_size, parse_share};
use load::{KEY_BYTES, Load};
use report::Report;
pub use series::Second;
use shard_threads::{ShardThreads, State};
use softflash_console::CliError;
use softflash_console::cleanup::Cleanup;
use softflash_console::host;
use softflash_console::measure::{Cost, Stopwatch};
use softflash_console::output::{self, Form};
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_console::values::{ValueThreshold, parse_interval, parse_value_threshold};
use softflash_datadir::{DataDir, DataDirError, NewDevice, OpenDir, Plan};
use softflash_device::file::Discard;
use softflash_store::{Durability, StoreError, StoreOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally::Tally;
use work::Work;
use workload::Workload;

/// A share of the device that data may fall short of --fullness before a warning is printed.
const SHORT_OF_FULLNESS: f64 = 0.9;

/// Arguments of `bench kv`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench kv --workload fill --keys 1000000 --value-size 1KiB
  softflash bench kv --workload get --depth 64 --operations 1000000
  softflash bench kv --workload overwrite --durability 1s --threads 2 -o json
  softflash bench kv --workload overwrite --value-size 128KiB \\
      --keys 20000 --fullness 70% --series
  softflash bench kv --workload ycsb-a --distribution zipf:0.99

Creates a store in --directory and removes it at the end. All workloads but `fill` fill it first, \
which is not measured. Each thread has a shard, and accesses keys of that shard.")]
pub struct Kv {
    /// Workload
    #[arg(long, value_enum, default_value_t)]
    workload: Workload,
    /// Distribution of the keys; by default `uniform`, for YCSB `zipf:0.99`, for `scan` all keys in
    /// order. `fill` writes each key once
    #[arg(long, value_name = "uniform|zipf:THETA")]
    distribution: Option<Distribution>,
    /// Share of reads in the workload `mixed`
    #[arg(long, value_name = "PERCENT", default_value = "50%", value_parser = parse_share)]
    reads: f64,
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
    /// Number of slices of the key space; by default two to eight per shard, by the device's size
    #[arg(long, value_name = "N")]
    slices: Option<u16>,
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
    /// Values from this size on are written once, to value blocks of their own; `off`: never
    #[arg(long, value_name = "SIZE|off", default_value = "16KiB", value_parser = parse_value_threshold)]
    value_threshold: ValueThreshold,
    /// Where to create the store
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Size of the device; by default four times the data, at least 2 GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Chooses the size of the device so that keys and values take this share of its superblocks
    #[arg(long, value_name = "PERCENT", conflicts_with = "size")]
    fullness: Option<Fullness>,
    /// Seed of keys and values
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Adds operations and longest latency of each second
    #[arg(long)]
    series: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The measured part.
struct Measured {
    tally: Tally,
    cost: Cost,
    before: State,
    after: State,
}

impl Kv {
    /// Creates a store, measures, prints, and removes the store.
    pub fn run(self) -> Result<(), CliError> {
        let path = self.directory.join(format!("softflash-bench-{}", std::process::id()));
        let temporary = Temporary::make(&path)?;
        let plan = self.plan(&path)?;
        let units = plan.units;
        let cleanup = Cleanup::on_signal(softflash_datadir::contents(&path))?;
        create(plan).map_err(|error| name_size(error, units))?;
        let directory = OpenDir::open(&path)?;
        let measured = self.measure(&directory).map_err(|error| self.with_remedy(error))?;
        let report = self.report(&directory, measured);
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

    fn plan(&self, path: &Path) -> Result<Plan, CliError> {
        let (size_bytes, units) = self.shape();
        let device = NewDevice::File { size_bytes, discard: Discard::None, block_device: None };
        let (uuid, cores) = (host::random_identity()?, host::cores());
        let plan = Plan::new(path.to_owned(), device, units, uuid, cores);
        Ok(Plan { shards: Some(self.threads), slices: self.slices, force: true, ..plan })
    }

    /// Size of the device, and its number of units.
    fn shape(&self) -> (u64, u16) {
        if let Some(fullness) = self.fullness {
            let shape = Shape::filled(self.data_bytes(), fullness, self.threads);
            return (shape.size_bytes, shape.units);
        }
        let data = u64::from(self.keys) * (self.value_size + 64);
        let size_bytes = self.size.unwrap_or((data * 4).max(2 << 30));
        (size_bytes, Shape::units(self.threads))
    }

    /// Bytes of all keys and values.
    fn data_bytes(&self) -> u64 {
        u64::from(self.keys) * (KEY_BYTES + self.value_size)
    }

    fn measure(&self, directory: &OpenDir) -> Result<Measured, CliError> {
        let options = StoreOptions {
            memory_bytes: self.memory,
            durability: self.durability,
            value_threshold: self.value_threshold.0,
            ..StoreOptions::default()
        };
        let load = Load::new(
            usize::try_from(self.value_size).unwrap_or(usize::MAX),
            self.keys,
            self.depth.max(1),
            self.seed,
        );
        let threads = ShardThreads::start(directory, &options, Arc::new(load))?;
        let before = threads.state()?;
        self.warn_of_emptiness(&before);
        let before = match self.workload {
            Workload::Fill => before,
            _ => {
                threads.run(self.work(Workload::Fill), "keys filled")?;
                threads.state()?
            }
        };
        let watch = Stopwatch::start();
        let tally = threads.run(self.work(self.workload), "operations")?;
        let cost = watch.stop();
        let after = threads.state()?;
        threads.close()?;
        Ok(Measured { tally, cost, before, after })
    }

    /// The store says that it is full to users who can delete keys; here the device is too small.
    fn with_remedy(&self, error: CliError) -> CliError {
        let full = matches!(
            error.of_part(),
            Some(DataDirError::Store { error: StoreError::OutOfSpace, .. })
        );
        if !full {
            return error;
        }
        let (keys, values) = (self.keys, human_bytes(self.value_size));
        let remedy = match self.fullness {
            Some(Fullness(share)) => format!(
                " at --fullness {}%; use a lower one, or more --keys, of which the store's reserves \
                 are a smaller share",
                share * 100.0
            ),
            None => "; use a larger --size, or fewer --keys".to_owned(),
        };
        CliError::Failed(format!(
            "the store is full with {keys} keys and values of {values}{remedy}"
        ))
    }

    /// A phase with this workload.
    fn work(&self, workload: Workload) -> Work {
        let keys = u64::from(self.keys);
        let operations = match workload {
            Workload::Fill => keys,
            _ => self.operations.unwrap_or(keys),
        };
        let order = workload.order(self.distribution);
        Work::new(workload, workload.mix(self.reads), order, operations)
    }

    /// A device has a least size, of which few data are a smaller share than wanted.
    fn warn_of_emptiness(&self, state: &State) {
        let (Some(Fullness(wanted)), found) = (self.fullness, self.share_of(state)) else { return };
        if found < wanted * SHORT_OF_FULLNESS {
            output::say(&format!(
                "softflash: warning: --fullness {:.0}%: keys and values take only {:.0} % of the smallest device; use more \
                 --keys or a larger --value-size",
                wanted * 100.0,
                found * 100.0,
            ));
        }
    }

    /// The data set as a share of the payload of all superblocks.
    fn share_of(&self, state: &State) -> f64 {
        let all = state.stats.superblocks_total * state.superblock_bytes();
        self.data_bytes() as f64 / all.max(1) as f64
    }

    fn report(&self, directory: &OpenDir, measured: Measured) -> Report {
        let Measured { tally, cost, before, after } = measured;
        let each = tally.operations.max(1) as f64;
        let operations_per_second = tally.operations as f64 / cost.seconds;
        let (reads, writes) = tally.apart().unzip();
        let (earlier, later) = (&before.stats, &after.stats);
        let flash = later.flash_bytes_written - earlier.flash_bytes_written;
        let host = later.host_bytes_written - earlier.host_bytes_written;
        let live = tally.live_keys * (KEY_BYTES + self.value_size);
        let used = (later.superblocks_total - later.superblocks_free) * after.superblock_bytes();
        Report {
            workload: self.workload,
            distribution: self.workload.order(self.distribution),
            keys: self.keys,
            value_bytes: self.value_size,
            threads: self.threads,
            depth: self.depth,
            durability: match self.durability {
                Durability::Flash => "flash".to_owned(),
                Durability::Interval(interval) => format!("{interval:?}"),
            },
            device: directory.device.info().detail.clone(),
            fullness: self.share_of(&after),
            operations: tally.operations,
            seconds: cost.seconds,
            operations_per_second,
            bytes_per_second: tally.bytes as f64 / cost.seconds,
            slowest_second_ratio: tally.series.slowest_second_ratio(operations_per_second),
            cpu_us_per_operation: cost.cpu_seconds * 1e6 / each,
            latency: tally.all.summary(),
            read_latency: reads,
            write_latency: writes,
            write_amplification: ratio(flash, host),
            flash_reads_per_operation: (later.device_reads - earlier.device_reads) as f64 / each,
            space_used_ratio: ratio(used, live),
            peak_memory_bytes: host::peak_memory_bytes(),
            seconds_series: tally.series.line(),
            series: self.series.then(|| tally.series.seconds().to_vec()),
        }
    }
}

fn create(plan: Plan) -> Result<DataDir, DataDirError> {
    plan.prepare()?.create()?.finish()
}

/// Parses `flash` or a time.
fn parse_durability(text: &str) -> Result<Durability, String> {
    Ok(parse_interval(text)?.map_or(Durability::Flash, Durability::Interval))
}

/// A quotient; none if there is nothing to divide by.
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
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
