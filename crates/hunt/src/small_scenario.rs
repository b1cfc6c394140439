//! The scenario of the exhaustive sweep: two shards with one unit each, two keys, one client.

use futures_util::future::{Either, select};
use softflash_base::{SliceId, Time};
use softflash_device::{Device, ModelConfig, ModelDevice, UnitsImage};
use softflash_nand::Recorded;
use softflash_nand::faults::{CutErases, CutPages};
use softflash_runtime::{RuntimeHandle, VirtualExecutor, yield_now};
use softflash_store::check::{Progress, check};
use softflash_store::{Entry, Store, StoreError, StoreLayout, StoreOptions, open_all};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// An operation of a workload. Each write has a different value, so a second write is an overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Writes the key of the first shard.
    PutA,
    /// Writes the key of the second shard.
    PutB,
    /// Deletes the key of the first shard.
    DeleteA,
    /// Writes both keys in one transaction over both shards.
    Batch,
    /// Writes a value of several pages to the first shard.
    BigA,
    /// Removes all keys: a transaction over both shards that drops memtables and patches.
    Clear,
}

const STEPS: [(Step, &str); 6] = [
    (Step::PutA, "put-a"),
    (Step::PutB, "put-b"),
    (Step::DeleteA, "delete-a"),
    (Step::Batch, "batch"),
    (Step::BigA, "big-a"),
    (Step::Clear, "clear"),
];

/// The contents found: each key's value.
pub type Found = BTreeMap<bytes::Bytes, bytes::Bytes>;

/// Idle time after the last operation; the log confirms its last frames within this time.
const REST: Duration = Duration::from_millis(1500);

/// Bytes of a value of several pages.
const BIG_BYTES: usize = 10_000;

impl Step {
    /// All workloads of up to `longest` operations.
    pub fn workloads(longest: usize) -> Vec<Vec<Step>> {
        let mut all: Vec<Vec<Step>> = vec![Vec::new()];
        let mut begin = 0;
        for _ in 0..longest {
            let end = all.len();
            for place in begin..end {
                for (step, _) in STEPS {
                    let longer = [&all[place][..], &[step]].concat();
                    all.push(longer);
                }
            }
            begin = end;
        }
        all
    }

    /// A workload as text.
    pub fn names(workload: &[Step]) -> String {
        let name = |step: &Step| {
            STEPS.iter().find(|(other, _)| other == step).map_or("", |(_, name)| name)
        };
        workload.iter().map(name).collect::<Vec<_>>().join(",")
    }

    /// Parses a workload.
    ///
    /// # Errors
    /// A word that names no operation.
    pub fn parse(text: &str) -> Result<Vec<Step>, String> {
        let step = |word: &str| {
            let known = STEPS.iter().find(|(_, name)| *name == word).map(|(step, _)| *step);
            let names: Vec<&str> = STEPS.iter().map(|(_, name)| *name).collect();
            known.ok_or_else(|| {
                format!("`{word}` is not an operation; write some of {}", names.join(","))
            })
        };
        text.split(',').filter(|word| !word.is_empty()).map(step).collect()
    }

    fn apply(self, number: usize, found: &mut Found) {
        let [a, b] = keys();
        let small = small(number);
        match self {
            Step::PutA => drop(found.insert(a, small)),
            Step::PutB => drop(found.insert(b, small)),
            Step::DeleteA => drop(found.remove(&a)),
            Step::Batch => found.extend([(a, small.clone()), (b, small)]),
            Step::BigA => drop(found.insert(a, big(number))),
            Step::Clear => found.clear(),
        }
    }
}

/// The contents after each prefix of a workload.
pub fn histories(workload: &[Step]) -> Vec<Found> {
    let mut found = Found::new();
    let mut histories = vec![found.clone()];
    for (number, step) in workload.iter().enumerate() {
        step.apply(number, &mut found);
        histories.push(found.clone());
    }
    histories
}

fn small(number: usize) -> bytes::Bytes {
    format!("value of operation {number}").into()
}

fn big(number: usize) -> bytes::Bytes {
    vec![b'0' + number as u8; BIG_BYTES].into()
}

/// A key in each shard.
fn keys() -> [bytes::Bytes; 2] {
    let layout = layout();
    [0, 1].map(|shard| {
        let mut names = (0..).map(|number| bytes::Bytes::from(format!("key {number}")));
        names.find(|key| layout.shard_of(key).0 == shard).unwrap_or_default()
    })
}

/// The contents as text for a message.
pub fn shown(found: &Found) -> String {
    let shown = |(key, value): (&bytes::Bytes, &bytes::Bytes)| {
        let begin = &value[..value.len().min(24)];
        format!("`{}`: {} bytes `{}`", key.escape_ascii(), value.len(), begin.escape_ascii())
    };
    let entries: Vec<String> = found.iter().map(shown).collect();
    format!("{{{}}}", entries.join(", "))
}

fn layout() -> StoreLayout {
    StoreLayout::new(2, 2, 2)
}

/// A device on which a store was created and closed.
pub struct SmallScenario {
    device: Arc<ModelDevice>,
}

/// The result of a session.
pub struct SmallSession {
    /// The contents after recovery, if the store opened.
    pub found: Option<Found>,
    /// Number of operations that were acknowledged.
    pub done: usize,
    /// Number of operations that were started.
    pub begun: usize,
    /// The commands that the flash ran.
    pub recorded: Vec<Recorded>,
    /// When the session ended.
    pub ended_at: Time,
}

impl SmallScenario {
    /// A new device with a new store.
    ///
    /// # Errors
    /// Errors of the device or the store, which are not expected.
    pub fn new(cut_pages: CutPages, cut_erases: CutErases) -> Result<SmallScenario, String> {
        let mut config = ModelConfig::model();
        let geometry = &mut config.array.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.planes_per_die) = (2, 1, 1);
        (geometry.blocks_per_plane, geometry.pages_per_block) = (32, 16);
        config.faults.cut_pages = cut_pages;
        config.faults.cut_erases = cut_erases;
        let device = ModelDevice::in_memory(config).map_err(|error| error.to_string())?;
        let scenario = SmallScenario { device: Arc::new(device) };
        scenario.session(&[], None)?;
        Ok(scenario)
    }

    /// An image of the device.
    ///
    /// # Errors
    /// Errors of the device, which are not expected.
    pub fn image(&self) -> Result<UnitsImage, String> {
        self.device.image(0..2).map_err(|error| error.to_string())
    }

    /// Restores the device from an image.
    ///
    /// # Errors
    /// Errors of the device, which are not expected.
    pub fn restore(&self, image: &UnitsImage) -> Result<(), String> {
        self.device.restore(image).map_err(|error| error.to_string())
    }

    /// Opens the store, reads all contents, and runs the operations of a workload until the power
    /// is cut at the given time with the given seed. Without a cut, closes the store.
    ///
    /// # Errors
    /// Errors of the store, and a deadlock.
    pub fn session(
        &self,
        workload: &[Step],
        cut: Option<(Time, u64)>,
    ) -> Result<SmallSession, String> {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let (found, done, begun) = (RefCell::new(None), Cell::new(0), Cell::new(0));
        self.record(&runtime);
        let recorded = RefCell::new(Vec::new());
        let work = async {
            let device = Arc::clone(&self.device) as Arc<dyn Device>;
            let options = StoreOptions { memory_bytes: 512 << 10, ..StoreOptions::default() };
            let stores = open_all(device, &layout(), &options, &runtime).await?;
            *found.borrow_mut() = Some(look(&stores[0]).await?);
            for (number, step) in workload.iter().enumerate() {
                begun.set(number + 1);
                step.run(number, &stores[0]).await?;
                done.set(number + 1);
            }
            runtime.sleep_until(runtime.now() + REST).await;
            for store in &stores {
                store.close().await?;
            }
            *recorded.borrow_mut() = self.device.recorded();
            Ok::<(), StoreError>(())
        };
        let whole = async {
            let Some((cut, _)) = cut else { return work.await };
            match select(pin!(work), runtime.sleep_until(cut)).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(_) => Ok(()),
            }
        };
        let outcome = executor.try_block_on(whole).map_err(|deadlock| deadlock.to_string())?;
        outcome.map_err(|error| format!("the store returns an error: {error}"))?;
        let ended_at = executor.now();
        if let Some((_, seed)) = cut {
            // Before any task is dropped: a dropped task withdraws its commands.
            self.device.power_cut(ended_at, seed).map_err(|error| error.to_string())?;
        }
        drop(executor);
        let (done, begun) = (done.get(), begun.get());
        let (found, recorded) = (found.into_inner(), recorded.into_inner());
        Ok(SmallSession { found, done, begun, recorded, ended_at })
    }

    fn record(&self, runtime: &RuntimeHandle) {
        let device = Arc::clone(&self.device);
        runtime.spawn(Box::pin(async move {
            // All queue pairs are opened before the first task waits.
            yield_now().await;
            device.record(Time::ZERO, Time(u64::MAX), usize::MAX);
        }));
    }

    /// Checks the device offline.
    ///
    /// # Errors
    /// The first error of the check.
    pub fn check(&self) -> Result<(), String> {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        let device = Arc::clone(&self.device) as Arc<dyn Device>;
        let (layout, progress) = (layout(), Progress::default());
        let report = executor
            .try_block_on(check(device, &layout, &runtime, &progress))
            .map_err(|deadlock| deadlock.to_string())?;
        match report.findings.iter().find(|finding| finding.is_error) {
            None => Ok(()),
            Some(finding) => Err(format!("check: {}: {}", finding.place, finding.problem)),
        }
    }
}

impl Step {
    async fn run(self, number: usize, store: &Store) -> Result<(), StoreError> {
        let [a, b] = keys();
        let small = || Entry::new(small(number));
        let both = || [&a, &b].map(|key| store.shard_of(key)).to_vec();
        let exclusive = match self {
            Step::Batch | Step::Clear => Some(store.exclusive(both()).await?),
            _ => None,
        };
        let mut transaction =
            exclusive.as_ref().map_or_else(|| store.begin(), |exclusive| exclusive.begin());
        match self {
            Step::PutA => transaction.put(a.clone(), small())?,
            Step::PutB => transaction.put(b.clone(), small())?,
            Step::DeleteA => transaction.delete(a.clone())?,
            Step::Batch => {
                transaction.put(a.clone(), small())?;
                transaction.put(b.clone(), small())?;
            }
            Step::BigA => transaction.put(a.clone(), Entry::new(big(number)))?,
            Step::Clear => transaction.clear(),
        }
        let token = store.commit(transaction).await?;
        store.durable(&token).await
    }
}

/// All contents, read by scan and by lookup.
async fn look(store: &Store) -> Result<Found, StoreError> {
    let mut found = Found::new();
    for slice in 0..layout().slices {
        let page = store.scan(SliceId(slice), None, 10).await?;
        found.extend(page.items.into_iter().map(|(key, entry)| (key, entry.value.to_bytes())));
    }
    for key in keys() {
        let value = store.begin().get(&key).await?.map(|entry| entry.value.to_bytes());
        if value.as_ref() != found.get(&key) {
            let key = key.escape_ascii();
            return Err(StoreError::Unusable(format!("`{key}`: a lookup and a scan differ")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_all_there_once() {
        let workloads = Step::workloads(3);
        assert_eq!(workloads.len(), 1 + 6 + 36 + 216);
        for workload in &workloads {
            assert_eq!(Step::parse(&Step::names(workload)).as_ref(), Ok(workload));
        }
        assert!(Step::parse("put-c").unwrap_err().contains("put-a"));
    }

    #[test]
    fn each_operation_has_its_effect() {
        let steps = [Step::PutA, Step::Batch, Step::DeleteA, Step::BigA, Step::Clear, Step::PutB];
        let sizes: Vec<usize> = histories(&steps).iter().map(Found::len).collect();
        assert_eq!(sizes, [0, 1, 2, 1, 2, 0, 1]);
    }
}
