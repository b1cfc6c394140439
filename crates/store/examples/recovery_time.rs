//! The time to open a store after a clean stop and after a power cut, by fill level: on the
//! channels of SDF with fewer superblocks, in virtual time and in CPU time, both also per TB (10^12
//! bytes) of flash.
//!
//!     cargo run --profile dist -p softflash-store --example recovery_time -- [VALUE_BYTES] [SUPERBLOCKS]

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a benchmark ends at the first error"
)]

use bytes::Bytes;
use softflash_base::Time;
use softflash_device::{Contents, Device, ModelConfig, ModelDevice};
use softflash_runtime::VirtualExecutor;
use softflash_store::{Durability, Entry, Store, StoreError, StoreLayout, StoreOptions, open_all};
use std::sync::Arc;
use std::time::Duration;

const SHARDS: u16 = 4;

struct Bench {
    device: Arc<ModelDevice>,
    layout: StoreLayout,
    options: StoreOptions,
    value: Bytes,
    keys: u64,
}

/// The times of an open.
struct Opening {
    virtual_s: f64,
    cpu_s: f64,
}

impl Bench {
    fn new(value_bytes: usize, superblocks: u32) -> Bench {
        let mut config = ModelConfig::sdf();
        config.array.geometry.blocks_per_plane = superblocks;
        // A torn page can damage an older page of its word line.
        config.faults.paired_page_loss = 0.5;
        let device = Arc::new(ModelDevice::in_memory_keeping(config, Contents::Packed).unwrap());
        let units = device.info().units;
        Bench {
            device,
            layout: StoreLayout::new(SHARDS, SHARDS, units),
            options: StoreOptions {
                memory_bytes: 1 << 30,
                durability: Durability::Interval(Duration::from_secs(1)),
                ..StoreOptions::default()
            },
            value: Bytes::from(vec![7; value_bytes]),
            keys: 0,
        }
    }

    fn capacity(&self) -> u64 {
        let info = self.device.info();
        info.geometry.unit_bytes() * u64::from(info.units)
    }

    /// Opens the store, writes values up to a total of `bytes`, and closes it or cuts the power
    /// during a write.
    fn session(&mut self, bytes: u64, cut: bool) -> Opening {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let device = Arc::clone(&self.device) as Arc<dyn Device>;
        let (layout, options) = (self.layout.clone(), self.options.clone());
        let cpu = cpu_seconds();
        let opening = executor.block_on(async {
            let stores = open_all(device, &layout, &options, &runtime).await.unwrap();
            let opened = runtime.now();
            let opening = Opening {
                virtual_s: opened.since_ns(Time::ZERO) as f64 / 1e9,
                cpu_s: cpu_seconds() - cpu,
            };
            while self.keys * (self.value.len() as u64) < bytes {
                match put(&stores, self.keys, self.value.clone()).await {
                    Ok(()) => self.keys += 1,
                    Err(StoreError::OutOfSpace) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            if cut {
                // With full memtables, as in a busy store.
                for number in 0..(64 << 20) / self.value.len() as u64 {
                    put(&stores, number * 7919 % self.keys.max(1), self.value.clone())
                        .await
                        .unwrap();
                }
            } else {
                for store in &stores {
                    store.close().await.unwrap();
                }
            }
            opening
        });
        let now = runtime.now();
        if cut {
            self.device.power_cut(now, 1).unwrap();
        }
        opening
    }
}

async fn put(stores: &[Store], number: u64, value: Bytes) -> Result<(), StoreError> {
    let key = Bytes::from(format!("key:{number:012}"));
    let mut transaction = stores[0].begin();
    transaction.put(key, Entry::new(value))?;
    stores[0].commit(transaction).await.map(drop)
}

/// User and system time of the process.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Clock ticks, 100 a second on Linux.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let value_bytes = arguments.next().unwrap_or(16 << 10) as usize;
    let superblocks = arguments.next().unwrap_or(24) as u32;
    let mut bench = Bench::new(value_bytes, superblocks);
    let tb = bench.capacity() as f64 / 1e12;
    println!("{:.1} GB of flash, values of {value_bytes} bytes", tb * 1000.0);
    println!("full %  keys      after   virtual s  s per TB   CPU s  s per TB");
    for percent in [0, 20, 40, 60, 75] {
        let bytes = bench.capacity() / 100 * percent;
        bench.session(bytes, false);
        let clean = bench.session(bytes, true);
        let cut = bench.session(bytes, false);
        for (what, opening) in [("stop", clean), ("cut", cut)] {
            println!(
                "{percent:6}  {:<8}  {what:5}  {:10.3} {:9.2} {:7.2} {:9.2}",
                bench.keys,
                opening.virtual_s,
                opening.virtual_s / tb,
                opening.cpu_s,
                opening.cpu_s / tb
            );
        }
    }
}
