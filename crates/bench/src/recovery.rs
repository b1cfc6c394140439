//! `softflash-bench recovery`: start-up of a store after a clean stop and after a power cut.

use bytes::Bytes;
use clap::Args;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_console::CliError;
use softflash_console::allocator;
use softflash_console::measure::Stopwatch;
use softflash_console::output::{self, Form};
use softflash_console::sizes::{human_bytes, parse_size};
use softflash_device::{Contents, Device, ModelConfig, ModelDevice};
use softflash_runtime::VirtualExecutor;
use softflash_store::{Entry, Store, StoreError, StoreLayout, StoreOptions, open_all};
use std::cell::Cell;
use std::sync::Arc;

/// Wall clock of the simulation. No key expires.
const WALL_MS: u64 = 1_000_000_000_000;
/// Concurrent writes.
const DEPTH: usize = 64;
/// Number of keys looked up after each recovery.
const LOOKED_UP: u64 = 200;

/// Arguments of `softflash-bench recovery`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash-bench recovery
  softflash-bench recovery --array tlc --capacity 64GiB \\
      --fullness 25,50,75 -o json
  softflash-bench recovery --value-size 4KiB --capacity 8GiB

Fills a store on a model of flash in virtual time. At each fullness level the store is closed and \
opened; then as many keys as memory holds are rewritten, the power is cut, and the store is opened \
again. Reports the time until every shard serves: on the model's clock, and as processor time of \
this machine with all shards on one core; and both per terabyte of capacity. Some keys are looked \
up after each start; a missing key is an error.")]
pub struct Recovery {
    /// Preset of the array: model, small, sdf or tlc
    #[arg(long, value_name = "NAME", default_value = "sdf")]
    array: String,
    /// Size of the array, reduced by leaving out blocks; channels and dies stay
    #[arg(long, value_name = "SIZE", default_value = "32GiB", value_parser = parse_size)]
    capacity: u64,
    /// Fullness levels for the measurements: values as a share of the capacity, in percent
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [10, 25, 50, 70], value_parser = clap::value_parser!(u64).range(1..=95))]
    fullness: Vec<u64>,
    /// Bytes per value
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = parse_size)]
    value_size: u64,
    /// Memory for memtables and read cache
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: u64,
    /// Number of shards
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,
    /// Seed of the rewritten keys, and of the outcome of the power cut
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Report {
    array: String,
    capacity_bytes: u64,
    superblocks: u64,
    value_bytes: u64,
    memory_bytes: u64,
    shards: u16,
    seed: u64,
    rows: Vec<Row>,
}

/// Results at one fullness level.
#[derive(Serialize)]
struct Row {
    fullness_percent: u64,
    keys: u64,
    after_close: Start,
    after_cut: Start,
}

/// Results of one start.
#[derive(Serialize)]
struct Start {
    virtual_seconds: f64,
    cpu_seconds: f64,
    virtual_seconds_per_tb: f64,
    cpu_seconds_per_tb: f64,
}

impl Recovery {
    /// Runs the benchmark and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let testbed = Testbed::new(&self)?;
        let steps = self.fullness.iter().max().copied().unwrap_or(0);
        let bar = output::steps(steps);
        let (mut rows, mut keys) = (Vec::new(), 0);
        let mut fullness = self.fullness.clone();
        fullness.sort_unstable();
        for percent in fullness {
            bar.set_message(format!("filling to {percent} %"));
            let until = testbed.capacity / 100 * percent / self.value_size;
            testbed.session(percent, Ending::Close, async |stores| {
                testbed.write(stores, keys..until).await
            })?;
            keys = until;
            bar.set_message(format!("starting at {percent} %"));
            let after_close = testbed.session(percent, Ending::Cut, async |stores| {
                testbed.look_up(stores, keys).await?;
                testbed.rewrite(stores, keys).await
            })?;
            let after_cut = testbed.session(percent, Ending::Close, async |stores| {
                testbed.look_up(stores, keys).await
            })?;
            rows.push(Row { fullness_percent: percent, keys, after_close, after_cut });
            bar.set_position(percent);
        }
        bar.finish_and_clear();
        let report = Report {
            array: self.array,
            capacity_bytes: testbed.capacity,
            superblocks: testbed.superblocks,
            value_bytes: self.value_size,
            memory_bytes: self.memory,
            shards: self.shards,
            seed: self.seed,
            rows,
        };
        match self.output {
            Form::Json => output::json(&report),
            Form::Table => {
                report.print();
                Ok(())
            }
        }
    }
}

/// How a session ends.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Close,
    Cut,
}

/// A device with its store.
struct Testbed {
    device: Arc<ModelDevice>,
    layout: StoreLayout,
    options: StoreOptions,
    capacity: u64,
    superblocks: u64,
    value: Bytes,
    seed: u64,
    cuts: Cell<u64>,
}

impl Testbed {
    fn new(arguments: &Recovery) -> Result<Testbed, CliError> {
        if arguments.value_size == 0 {
            return Err(CliError::Usage("--value-size: must be at least 1".into()));
        }
        let mut config = ModelConfig::preset(&arguments.array).ok_or_else(|| {
            let name = &arguments.array;
            CliError::Usage(format!(
                "--array: unknown array `{name}`; use model, small, sdf or tlc"
            ))
        })?;
        let geometry = &mut config.array.geometry;
        let whole = geometry.bytes();
        let of_one = whole / u64::from(geometry.blocks_per_plane);
        let blocks = (arguments.capacity / of_one).max(8);
        geometry.blocks_per_plane = u32::try_from(blocks).unwrap_or(u32::MAX);
        let layout = StoreLayout::new(arguments.shards, arguments.shards, geometry.channels);
        if let Some(problem) = layout.problem() {
            return Err(CliError::Usage(format!("--shards: {problem}")));
        }
        let superblocks = blocks * u64::from(geometry.channels);
        let mut value = vec![0; arguments.value_size as usize];
        // Different values would not fit into memory; the store does not detect that all are slices
        // of the same bytes.
        Rng::seeded(arguments.seed).fork("value").fill(value.get_mut(..64).unwrap_or_default());
        Ok(Testbed {
            device: Arc::new(ModelDevice::in_memory_keeping(config, Contents::Packed)?),
            layout,
            options: StoreOptions { memory_bytes: arguments.memory, ..StoreOptions::default() },
            capacity: blocks * of_one,
            superblocks,
            value: Bytes::from(value),
            seed: arguments.seed,
            cuts: Cell::new(0),
        })
    }

    /// Opens the store, runs the session, and ends it.
    fn session(
        &self,
        percent: u64,
        ending: Ending,
        work: impl AsyncFnOnce(&[Store]) -> Result<(), StoreError>,
    ) -> Result<Start, CliError> {
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        // Memory of the previous session: a start in a new process has none to free.
        allocator::tidy_up();
        let session = async {
            let watch = Stopwatch::start();
            let device = Arc::clone(&self.device) as Arc<dyn Device>;
            let stores = open_all(device, &self.layout, &self.options, &runtime).await?;
            let start = self.start(runtime.now().0, watch.stop().cpu_seconds);
            work(&stores).await?;
            if ending == Ending::Close {
                try_join_all(stores.iter().map(Store::close)).await?;
            }
            Ok::<_, StoreError>(start)
        };
        let outcome = executor.try_block_on(session);
        if ending == Ending::Cut {
            let number = self.cuts.get();
            self.cuts.set(number + 1);
            let cut = self.device.power_cut(executor.now(), self.seed.wrapping_add(number));
            cut.map_err(|error| CliError::Failed(format!("the power cut: {error}")))?;
        }
        match outcome {
            Ok(Ok(start)) => Ok(start),
            Ok(Err(StoreError::OutOfSpace)) => Err(CliError::Failed(format!(
                "at {percent} % the flash is full, because compactions need space as well; lower --fullness or --memory, or raise --capacity"
            ))),
            Ok(Err(error)) => Err(CliError::Failed(format!("at {percent} %: {error}"))),
            Err(deadlock) => Err(CliError::Failed(deadlock.to_string())),
        }
    }

    fn start(&self, virtual_ns: u64, cpu_seconds: f64) -> Start {
        let (virtual_seconds, per_tb) = (virtual_ns as f64 / 1e9, 1e12 / self.capacity as f64);
        Start {
            virtual_seconds,
            cpu_seconds,
            virtual_seconds_per_tb: virtual_seconds * per_tb,
            cpu_seconds_per_tb: cpu_seconds * per_tb,
        }
    }

    /// Rewrites random keys, as many as the memtables hold; data flushed meanwhile were in the log
    /// as well.
    async fn rewrite(&self, stores: &[Store], keys: u64) -> Result<(), StoreError> {
        let mut rng = Rng::seeded(self.seed).fork("anew").fork(self.cuts.get().to_le_bytes());
        let writes = self.options.memory_bytes / self.value.len() as u64;
        self.write(stores, (0..writes).map(|_| rng.below(keys.max(1)))).await
    }

    async fn write(
        &self,
        stores: &[Store],
        keys: impl Iterator<Item = u64>,
    ) -> Result<(), StoreError> {
        let store = first(stores)?;
        let writes = keys.map(|key| async move {
            let mut transaction = store.begin();
            transaction.put(name(key), Entry::new(self.value.clone()))?;
            let token = store.commit(transaction).await?;
            store.durable(&token).await
        });
        stream::iter(writes).buffer_unordered(DEPTH).try_collect().await
    }

    async fn look_up(&self, stores: &[Store], keys: u64) -> Result<(), StoreError> {
        let mut rng = Rng::seeded(self.seed).fork("look up");
        let store = first(stores)?;
        for _ in 0..LOOKED_UP.min(keys) {
            let key = name(rng.below(keys));
            let found = store.begin().get(&key).await?;
            if found.is_none_or(|entry| entry.value.to_bytes() != self.value) {
                let key = key.escape_ascii();
                return Err(StoreError::DataLoss(format!(
                    "key `{key}` does not have the value that was written"
                )));
            }
        }
        Ok(())
    }
}

fn first(stores: &[Store]) -> Result<&Store, StoreError> {
    stores.first().ok_or(StoreError::Closed)
}

fn name(key: u64) -> Bytes {
    Bytes::from(format!("key-{key:012}"))
}

impl Report {
    fn print(&self) {
        let Report { array, capacity_bytes, superblocks, shards, .. } = self;
        output::pairs([
            ("array", array.clone()),
            ("capacity", human_bytes(*capacity_bytes)),
            ("superblocks", superblocks.to_string()),
            ("shards", shards.to_string()),
            ("memory", human_bytes(self.memory_bytes)),
            ("values", human_bytes(self.value_bytes)),
        ]);
        let header =
            ["full", "keys", "start after", "virtual", "CPU", "virtual per TB", "CPU per TB"];
        let rows = self.rows.iter().flat_map(|row| {
            [("a close", &row.after_close), ("a cut", &row.after_cut)].map(|(after, start)| {
                let seconds = |seconds: f64| format!("{seconds:.3} s");
                vec![
                    format!("{} %", row.fullness_percent),
                    row.keys.to_string(),
                    after.to_owned(),
                    seconds(start.virtual_seconds),
                    seconds(start.cpu_seconds),
                    seconds(start.virtual_seconds_per_tb),
                    seconds(start.cpu_seconds_per_tb),
                ]
            })
        });
        output::rows(&header, rows);
    }
}
