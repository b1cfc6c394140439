//! Fails every command to the device, one at a time, once or from that command on: acknowledged
//! writes are found when the device works, a failed request returns an error, and every request
//! ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failure prints the seed to replay"
)]

use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_base::random::Rng;
use softflash_device::{Command, Device, DeviceError, ModelConfig, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Entry, Store, StoreError, StoreLayout, StoreOptions, open_all};
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use softflash_testing::model::{key, value};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any request may take in virtual time, including waits for a full device.
const PATIENCE: Duration = Duration::from_secs(600);
const KEYS: u64 = 40;
const STEPS: u64 = 70;

/// The possible values of each key: the last acknowledged one, and those written since.
type Known = BTreeMap<Bytes, Vec<Option<Bytes>>>;

struct Bench {
    device: Arc<ModelDevice>,
    layout: StoreLayout,
    options: StoreOptions,
}

impl Bench {
    fn new() -> Bench {
        let mut config = ModelConfig::model();
        let geometry = &mut config.array.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.planes_per_die) = (2, 1, 1);
        (geometry.blocks_per_plane, geometry.pages_per_block) = (60, 32);
        let device = Arc::new(ModelDevice::in_memory(config).unwrap());
        let units = device.info().units;
        Bench {
            device,
            layout: StoreLayout::new(2, 2, units),
            // Most values are separated, some of them in fragments.
            options: StoreOptions {
                memory_bytes: 1 << 20,
                value_threshold: Some(2000),
                fragment_bytes: 4000,
                ..StoreOptions::default()
            },
        }
    }

    /// Opens the store with these faults, works, and closes it. A request may fail, but must end.
    fn session(&self, faults: &Faults, known: &mut Known, seed: u64) -> Result<(), StoreError> {
        let inner = Arc::clone(&self.device) as Arc<dyn Device>;
        let device = Arc::new(FaultyDevice::new(inner, faults.clone()));
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        executor.block_on(async {
            let opening = open_all(device, &self.layout, &self.options, &runtime);
            let stores = in_time(&runtime, "opening", opening).await?;
            let mut random = Rng::seeded(seed);
            let mut outcome = Ok(());
            for number in 0..STEPS {
                let step = step(&stores[number as usize % 2], known, &mut random);
                outcome = in_time(&runtime, "a command", step).await.and(outcome);
                if number == STEPS / 2 {
                    for store in &stores {
                        // The value blocks of the session before.
                        let collect = store.collect_values();
                        outcome = in_time(&runtime, "the collector", collect).await.and(outcome);
                    }
                }
            }
            for store in &stores {
                outcome = in_time(&runtime, "closing", store.close()).await.and(outcome);
            }
            outcome
        })
    }

    /// On a working device every acknowledged write is found.
    fn compare(&self, known: &Known, what: &str) {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        executor.block_on(async {
            let device = Arc::clone(&self.device) as Arc<dyn Device>;
            let opened = open_all(device, &self.layout, &self.options, &runtime).await;
            let stores = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            for (key, possible) in known {
                let found = stores[0].begin().get(key).await;
                let found = found.unwrap_or_else(|error| panic!("{what}: {key:?}: {error}"));
                let found = found.map(|entry| entry.value.to_bytes());
                assert!(possible.contains(&found), "{what}: {key:?} is wrong");
            }
            for store in &stores {
                store.close().await.unwrap();
            }
        });
    }
}

async fn in_time<T>(
    runtime: &RuntimeHandle,
    what: &str,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let patience = runtime.sleep_until(runtime.now() + PATIENCE);
    match select(pin!(work), patience).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => panic!("{what} takes longer than {PATIENCE:?}"),
    }
}

/// A write, a transaction of three keys on one or both shards, or a lookup.
async fn step(store: &Store, known: &mut Known, random: &mut Rng) -> Result<(), StoreError> {
    if random.chance(0.2) {
        let key = key(random.below(KEYS));
        let found = store.begin().get(&key).await?.map(|entry| entry.value.to_bytes());
        let possible = known.get(&key).map_or(&[None][..], Vec::as_slice);
        assert!(possible.contains(&found), "{key:?} is read wrongly");
        return Ok(());
    }
    let count = if random.chance(0.2) { 3 } else { 1 };
    let mut writes = BTreeMap::new();
    for _ in 0..count {
        let written = (!random.chance(0.2)).then(|| value(random, 9000));
        writes.insert(key(random.below(KEYS)), written);
    }
    let shards = writes.keys().map(|key| store.shard_of(key)).collect();
    let exclusive = store.exclusive(shards).await?;
    let mut transaction = exclusive.begin();
    for (key, written) in &writes {
        match written {
            Some(value) => transaction.put(key.clone(), Entry::new(value.clone()))?,
            None => transaction.delete(key.clone())?,
        }
        known.entry(key.clone()).or_insert_with(|| vec![None]).push(written.clone());
    }
    let token = store.commit(transaction).await;
    drop(exclusive);
    store.durable(&token?).await?;
    for (key, written) in writes {
        known.insert(key, vec![written]);
    }
    Ok(())
}

/// An error of a command of this kind.
fn errors_of(command: &Command) -> DeviceError {
    match OperationKind::of(&command.operation) {
        OperationKind::Read => DeviceError::Uncorrectable,
        OperationKind::Program => DeviceError::ProgramFailed,
        OperationKind::Erase => DeviceError::EraseFailed,
        OperationKind::Flush | OperationKind::MarkBad => DeviceError::Io { errno: 5 },
    }
}

/// Fails command number `k`, or all commands from it on, in the second of three sessions.
fn fail(k: u64, sticky: bool, as_flash: bool) -> (u64, bool) {
    let what = format!("command {k}, sticky {sticky}, as flash {as_flash}");
    let (bench, mut known) = (Bench::new(), Known::new());
    let nothing = Faults::default();
    bench.session(&nothing, &mut known, 1).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (faults, mut count) = (Faults::default(), 0);
    faults.fail_if(move |command| {
        count += 1;
        let fails = count == k || sticky && count > k;
        let error = if as_flash { errors_of(command) } else { DeviceError::Io { errno: 5 } };
        fails.then_some(error)
    });
    let outcome = bench.session(&faults, &mut known, 2);
    assert!(k == u64::MAX || faults.commands_seen() >= k, "{what}: fewer commands were sent");
    bench.compare(&known, &what);
    (faults.commands_seen(), outcome.is_err())
}

/// Fails every command with `SOFTFLASH_THOROUGH=1` in the environment, otherwise every eighth, from
/// an offset that is printed.
fn sweep(sticky: bool, as_flash: bool) {
    let (commands, failed) = fail(u64::MAX, sticky, as_flash);
    assert!(commands > 150 && !failed, "{commands} commands");
    let thorough = std::env::var_os("SOFTFLASH_THOROUGH").is_some();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as usize;
    let (first, step) = if thorough { (1, 1) } else { (1 + now % 8, 8) };
    println!("of {commands} commands every {step}. from {first} on");
    let failing = (first as u64..=commands).step_by(step);
    let noticed = failing.filter(|&k| fail(k, sticky, as_flash).1).count();
    // A single fault of the flash is survived except by a few reads, of which an eighth of all
    // commands may have none. Most of them are among the last commands.
    let is_noticed = || (1..=commands).rev().any(|k| fail(k, sticky, as_flash).1);
    assert!(noticed > 0 || is_noticed(), "no fault has an effect");
}

#[test]
fn each_command_fails_once_with_an_io_error() {
    sweep(false, false);
}

#[test]
fn each_command_fails_once_with_a_flash_error() {
    sweep(false, true);
}

#[test]
fn from_each_command_on_all_fail_with_an_io_error() {
    sweep(true, false);
}

#[test]
fn from_each_command_on_all_fail_with_a_flash_error() {
    sweep(true, true);
}
