//! `softflash bench device`: the device through the flash translation layer.

use clap::{Args, ValueEnum};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_base::{ShardId, UnitSet};
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Redundancy};
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::measure::{Latencies, LatencySummary, Stopwatch};
use softflash_console::output::{self, Form};
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_datadir::{DataDirError, block_on};
use softflash_device::{DeviceInfo, FileFormat, format_file};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint};
use softflash_runtime::RuntimeHandle;
use softflash_store::StoreError;
use std::path::{Path, PathBuf};

/// Arguments of `bench device`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench device --pattern write
  softflash bench device --pattern read --size 4KiB --depth 32 -o json

Creates a file device in --directory, uses it through the flash translation layer, and removes it. \
`write` puts whole 8 MiB blocks and releases the oldest when space runs short; `read` reads at \
random from blocks that were written before the measurement.")]
pub struct DeviceBench {
    /// Access pattern
    #[arg(long, value_enum, default_value_t)]
    pattern: Pattern,
    /// Bytes per read, in whole pages
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_size)]
    size: u64,
    /// Queue depth
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Number of requests: puts of blocks, or reads
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Number of units of the device
    #[arg(long, value_name = "N", default_value_t = 16)]
    units: u16,
    /// Size of the device
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size)]
    device_size: u64,
    /// Where to create the device
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Seed of the addresses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Pattern {
    /// Whole blocks, sequentially
    Write,
    /// Random pages
    #[default]
    Read,
}

#[derive(Serialize)]
struct Report {
    pattern: Pattern,
    request_bytes: u64,
    depth: usize,
    units: u16,
    device: String,
    operations: u64,
    seconds: f64,
    cpu_seconds: f64,
    operations_per_second: f64,
    megabytes_per_second: f64,
    cpu_us_per_operation: f64,
    latency: LatencySummary,
}

impl DeviceBench {
    /// Creates a device, measures, prints, and removes the device.
    pub fn run(self) -> Result<(), CliError> {
        let path = self.directory.join(format!("softflash-bench-{}.sfd", std::process::id()));
        let cleanup = softflash_console::cleanup::Cleanup::on_signal(vec![path.clone()])?;
        let measured = self.measure(&path);
        // Remove it even if it was not fully created.
        let _ = cleanup.finish(|| std::fs::remove_file(&path));
        let report = measured?;
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                output::pairs(report.lines());
                Ok(())
            }
        }
    }

    fn measure(&self, path: &Path) -> Result<Report, CliError> {
        let format = FileFormat {
            units: self.units,
            ..FileFormat::new(self.device_size, host::random_identity()?)
        };
        format_file(path, &format).map_err(DataDirError::Format)?;
        let device = softflash_device::open(path)?;
        let info = device.info().clone();
        let queue = device.open_queue_pair(&UnitSet::from(0..info.units))?;
        block_on(|runtime| async move {
            let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
            let (flash, inventory) = mounted.map_err(DataDirError::store(path))?;
            let (blocks, _) =
                BlockLayer::new(flash.clone(), ShardId(0), info.uuid, &inventory, Redundancy::None);
            let drive = Drive { blocks, runtime, bench: self };
            let report = drive.run(&info).await;
            flash.stop();
            Ok(report.map_err(DataDirError::store(path))?)
        })
    }
}

/// The device under test.
struct Drive<'a> {
    blocks: BlockLayer,
    runtime: RuntimeHandle,
    bench: &'a DeviceBench,
}

impl Drive<'_> {
    async fn run(&self, info: &DeviceInfo) -> Result<Report, StoreError> {
        let bench = self.bench;
        let depth = bench.depth.unwrap_or(match bench.pattern {
            Pattern::Write => usize::from(info.units),
            Pattern::Read => 32,
        });
        let capacity = u64::from(self.blocks.total_blocks());
        let mut latencies = Latencies::default();
        let (operations, bytes, cost) = match bench.pattern {
            Pattern::Write => {
                let operations = bench.operations.unwrap_or(2 * capacity);
                let watch = Stopwatch::start();
                self.write(operations, depth, &mut latencies).await?;
                (operations, self.blocks.capacity_bytes() as u64, watch.stop())
            }
            Pattern::Read => {
                let written = self.write(capacity / 2, depth, &mut Latencies::default()).await?;
                let operations = bench.operations.unwrap_or(200_000);
                let watch = Stopwatch::start();
                let bytes = self.read(&written, operations, depth, &mut latencies).await?;
                (operations, bytes, watch.stop())
            }
        };
        Ok(Report {
            pattern: bench.pattern,
            request_bytes: bytes,
            depth,
            units: info.units,
            device: info.detail.clone(),
            operations,
            seconds: cost.seconds,
            cpu_seconds: cost.cpu_seconds,
            operations_per_second: operations as f64 / cost.seconds,
            megabytes_per_second: (operations * bytes) as f64 / 1e6 / cost.seconds,
            cpu_us_per_operation: cost.cpu_seconds * 1e6 / operations.max(1) as f64,
            latency: latencies.summary(),
        })
    }

    /// Puts blocks; returns those that still exist.
    async fn write(
        &self,
        operations: u64,
        depth: usize,
        latencies: &mut Latencies,
    ) -> Result<Vec<BlockId>, StoreError> {
        let spare = (self.blocks.total_blocks() / 4).max(depth as u32 + 1);
        let mut live = std::collections::VecDeque::new();
        let mut under_way = FuturesUnordered::new();
        let mut begun = 0;
        loop {
            while begun < operations && under_way.len() < depth {
                while self.blocks.free_blocks() <= spare
                    && let Some(oldest) = live.pop_front()
                {
                    self.blocks.delete(oldest);
                }
                under_way.push(self.put());
                begun += 1;
            }
            let Some(ended) = under_way.next().await else { break };
            let (id, latency_ns) = ended?;
            latencies.record(latency_ns);
            live.push_back(id);
        }
        self.blocks.flash().flush(Hint::FLUSH).await?;
        Ok(live.into())
    }

    async fn put(&self) -> Result<(BlockId, u64), StoreError> {
        let began = self.runtime.now();
        let id = self.blocks.new_id();
        let bytes = self.blocks.capacity_bytes();
        let data = self.blocks.flash().buffer(bytes);
        self.blocks.put(id, BlockKind::User, vec![data], Hint::FLUSH).await?;
        Ok((id, self.runtime.now().since_ns(began)))
    }

    /// Random reads; returns the bytes per read.
    async fn read(
        &self,
        written: &[BlockId],
        operations: u64,
        depth: usize,
        latencies: &mut Latencies,
    ) -> Result<u64, StoreError> {
        let page = self.blocks.page_bytes();
        let block_pages = self.blocks.capacity_bytes() / page;
        let pages = (self.bench.size as usize).div_ceil(page).clamp(1, block_pages);
        let mut rng = Rng::seeded(self.bench.seed);
        let mut under_way = FuturesUnordered::new();
        let mut begun = 0;
        loop {
            while begun < operations && under_way.len() < depth {
                let block = written.get(rng.below(written.len() as u64) as usize).copied();
                let first = rng.below((block_pages - pages + 1) as u64) as u32;
                under_way.push(self.read_one(block.unwrap_or_default(), first, pages as u32));
                begun += 1;
            }
            let Some(latency_ns) = under_way.next().await else { break };
            latencies.record(latency_ns?);
        }
        Ok((pages * page) as u64)
    }

    async fn read_one(&self, block: BlockId, first: u32, pages: u32) -> Result<u64, StoreError> {
        let began = self.runtime.now();
        self.blocks.read(block, first, pages, Hint::FOREGROUND).await?;
        Ok(self.runtime.now().since_ns(began))
    }
}

impl Report {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("requests", format!("{} of {}", self.operations, human_bytes(self.request_bytes))),
            ("took", format!("{:.2} s", self.seconds)),
            ("throughput", format!("{:.1} MB/s", self.megabytes_per_second)),
            ("requests per second", format!("{:.0}", self.operations_per_second)),
            ("processor time per request", format!("{:.2} us", self.cpu_us_per_operation)),
        ];
        lines.extend(self.latency.lines());
        lines.push(("device", self.device.clone()));
        lines
    }
}
