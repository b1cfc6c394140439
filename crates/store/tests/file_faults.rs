//! A store on a file device whose file system fails: reads, writes and flushes with I/O errors,
//! full file systems, flushes that drop their writes, and power cuts that lose unflushed writes.
//! Acknowledged writes are found, other writes may be, and every request ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failure prints the seed to replay"
)]

use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_base::random::Rng;
use softflash_device::{Device, FileDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Entry, Store, StoreError, open_all};
use softflash_testing::model::{key, value};
use softflash_testing::{CallFaults, Testbed, VolatileFile};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any request may take in virtual time.
const PATIENCE: Duration = Duration::from_secs(600);
const KEYS: u64 = 60;
const STEPS: u64 = 120;

/// The possible values of each key: the last acknowledged one, and those written since.
type Known = BTreeMap<Bytes, Vec<Option<Bytes>>>;

/// The result of a session.
#[derive(Debug, Default)]
struct Outcome {
    acknowledged: u64,
    refused: u64,
    calls_failed: u64,
}

struct Bench {
    testbed: Testbed,
    known: Known,
}

impl Bench {
    fn new() -> Bench {
        let mut testbed = Testbed::new(2, 2, 2, 40, 256 << 10);
        testbed.options.memory_bytes = 1 << 20;
        Bench { testbed, known: Known::new() }
    }

    /// Opens the store on a file with these faults, works, and loses power.
    fn session(&mut self, faults: CallFaults, rng: &mut Rng) -> Outcome {
        let path = self.testbed.path();
        // Drawn, not forked: a fork gives each session the faults of the one before.
        let faults_rng = Rng::seeded(rng.next_u64());
        let file = Arc::new(VolatileFile::open(&path, faults_rng, faults));
        let calls = Arc::clone(&file);
        let device: Arc<dyn Device> = Arc::new(FileDevice::open_over(&path, calls).unwrap());
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let mut outcome = Outcome::default();
        let known = &mut self.known;
        executor.block_on(async {
            let opening = open_all(device, &self.testbed.layout, &self.testbed.options, &runtime);
            let Ok(stores) = in_time(&runtime, "opening", opening).await else { return };
            for number in 0..STEPS {
                let step = step(&stores[number as usize % 2], known, rng);
                match in_time(&runtime, "a request", step).await {
                    Ok(()) => outcome.acknowledged += 1,
                    Err(_) => outcome.refused += 1,
                }
            }
        });
        drop(executor);
        file.cut();
        outcome.calls_failed = file.failed();
        outcome
    }

    /// On a working file system every acknowledged write is found; the values found become the
    /// known ones.
    fn compare(&mut self, what: &str) {
        let known = &mut self.known;
        self.testbed.run(async |stores, _| {
            for (key, possible) in known {
                let found = stores[0].begin().get(key).await;
                let found = found.unwrap_or_else(|error| panic!("{what}: {key:?}: {error}"));
                let found = found.map(|entry| entry.value.to_bytes());
                assert!(possible.contains(&found), "{what}: {key:?} is wrong");
                *possible = vec![found];
            }
        });
    }
}

async fn in_time<T>(
    runtime: &RuntimeHandle,
    what: &str,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match select(pin!(work), runtime.sleep_until(runtime.now() + PATIENCE)).await {
        Either::Left((done, _)) => done,
        Either::Right(_) => panic!("{what} takes longer than {PATIENCE:?}"),
    }
}

/// A write, a transaction of three keys on one or both shards, or a lookup.
async fn step(store: &Store, known: &mut Known, rng: &mut Rng) -> Result<(), StoreError> {
    if rng.chance(0.2) {
        let key = key(rng.below(KEYS));
        let found = store.begin().get(&key).await?.map(|entry| entry.value.to_bytes());
        let possible = known.get(&key).map_or(&[None][..], Vec::as_slice);
        assert!(possible.contains(&found), "{key:?} is read wrongly");
        return Ok(());
    }
    let count = if rng.chance(0.2) { 3 } else { 1 };
    let written =
        |rng: &mut Rng| (key(rng.below(KEYS)), (!rng.chance(0.2)).then(|| value(rng, 9000)));
    let writes: BTreeMap<Bytes, Option<Bytes>> = (0..count).map(|_| written(rng)).collect();
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
    known.extend(writes.into_iter().map(|(key, written)| (key, vec![written])));
    Ok(())
}

/// Runs scenarios with these faults: each has several sessions that end in a power cut.
fn scenarios(name: &str, faults: CallFaults) {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("SOFTFLASH_SEED").unwrap_or(now);
    let count = number("SOFTFLASH_SCENARIOS").unwrap_or(6);
    let mut sum = Outcome::default();
    for seed in seed..seed + count {
        println!("{name}: replay with SOFTFLASH_SEED={seed} SOFTFLASH_SCENARIOS=1");
        let (mut bench, mut rng) = (Bench::new(), Rng::seeded(seed));
        bench.session(CallFaults::default(), &mut rng);
        for session in 0..4 {
            bench.compare(&format!("seed {seed}, before session {session}"));
            let outcome = bench.session(faults, &mut rng);
            sum.acknowledged += outcome.acknowledged;
            sum.refused += outcome.refused;
            sum.calls_failed += outcome.calls_failed;
        }
        bench.compare(&format!("seed {seed}, at the end"));
        let report = bench.testbed.check();
        assert!(report.ok, "seed {seed}: {report:?}");
    }
    println!("{name}: {sum:?} in {count} scenarios");
    assert!(sum.acknowledged > 0, "no write was acknowledged");
}

#[test]
fn unflushed_writes_are_lost_in_any_order() {
    scenarios("cuts", CallFaults::default());
}

#[test]
fn after_a_failed_flush_no_write_counts_as_durable() {
    scenarios("flushes", CallFaults { flushes: 60, ..CallFaults::default() });
}

#[test]
fn writes_fail_with_no_space_and_other_errors() {
    scenarios("writes", CallFaults { writes: 80, ..CallFaults::default() });
}

#[test]
fn reads_fail_sometimes() {
    scenarios("reads", CallFaults { reads: 400, ..CallFaults::default() });
}

#[test]
fn all_calls_fail_sometimes() {
    scenarios("all", CallFaults { reads: 200, writes: 200, flushes: 200 });
}
