//! An opening that fails ends all tasks that it has started: a task left behind polls the device
//! for ever, and keeps its units in use.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use crate::log_device::log_device;
use bytes::Bytes;
use softflash_base::{ShardId, UnitSet};
use softflash_device::{Device, DeviceError};
use softflash_runtime::VirtualExecutor;
use softflash_store::opening::open_all_with_log;
use softflash_store::{Entry, Store, StoreError, open_all};
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use softflash_testing::{Model, VirtualTestbed, model};
use std::future::pending;
use std::sync::Arc;

const WALL_MS: u64 = 1_000_000;
const SHARDS: u16 = 3;

/// The time after which a prepare is durable in the log and its commit is not.
const PREPARED_NS: u64 = 600_000;

/// Waits for all tasks; returns the number of those that cannot end.
fn tasks_left(executor: &VirtualExecutor) -> usize {
    executor.try_block_on(pending::<()>()).unwrap_err().tasks
}

/// Opens the store on this device.
async fn open(
    testbed: &VirtualTestbed,
    device: &Arc<dyn Device>,
    executor: &VirtualExecutor,
) -> Result<Vec<Store>, StoreError> {
    open_all(Arc::clone(device), &testbed.layout, &testbed.options, &executor.handle()).await
}

/// Writes keys to all shards.
async fn fill(stores: &[Store]) -> Model {
    let mut model = Model::default();
    for number in 0..30 {
        model.put(&stores[0], model::key(number), number.to_string().into()).await;
    }
    model
}

/// The device, where the programs on the units of a shard fail after the first ones.
fn without_programs(
    testbed: &VirtualTestbed,
    shard: ShardId,
    after: u32,
) -> (Arc<dyn Device>, Faults) {
    let (faults, units) = (Faults::default(), testbed.layout.units_of(shard));
    let mut programs = 0;
    faults.fail_if(move |command| {
        let is_program = OperationKind::of(&command.operation) == OperationKind::Program;
        let is_here = is_program && units.contains(command.target.unit.0);
        programs += u32::from(is_here);
        (is_here && programs > after).then_some(DeviceError::ProgramFailed)
    });
    let device = FaultyDevice::new(Arc::clone(&testbed.device) as _, faults.clone());
    (Arc::new(device), faults)
}

#[test]
fn the_flash_of_the_data_stops_when_the_log_device_cannot_be_mounted() {
    let testbed = VirtualTestbed::new(1, 64);
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as _;
    let refused = |log: &Arc<dyn Device>, why: &str| {
        let (executor, log) = (VirtualExecutor::new(WALL_MS), Arc::clone(log));
        let (device, runtime) = (Arc::clone(&device), executor.handle());
        let opening = open_all_with_log(device, log, &testbed.layout, &testbed.options, &runtime);
        let error = executor.block_on(opening).err().expect("refused").to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(tasks_left(&executor), 0, "{error}");
    };
    let smaller = log_device(|config| config.array.geometry.pages_per_block = 32).unwrap();
    refused(&smaller, "as large as those of the data");
    let in_use = log_device(|_| {}).unwrap();
    let _claim = in_use.open_queue_pair(&UnitSet::from(0..1)).unwrap();
    refused(&in_use, "have a queue pair");
}

#[test]
fn when_a_shard_cannot_be_mounted_all_tasks_end_and_the_store_can_be_opened_at_once() {
    let testbed = VirtualTestbed::new(SHARDS, 64);
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as _;
    let (known, _) = testbed.session(async |stores, _| fill(stores).await);
    for failing in (0..SHARDS).map(ShardId) {
        let executor = VirtualExecutor::new(WALL_MS);
        let claim = device.open_queue_pair(&testbed.layout.units_of(failing)).unwrap();
        let refused = executor.block_on(open(&testbed, &device, &executor)).err().expect("refused");
        assert!(refused.to_string().contains("have a queue pair"), "{refused}");
        assert_eq!(tasks_left(&executor), 0, "without shard {failing}");

        let refused = executor.block_on(async {
            let refused = open(&testbed, &device, &executor).await.err();
            drop(claim);
            let stores = open(&testbed, &device, &executor).await.unwrap();
            known.compare(&stores[0]).await;
            refused
        });
        assert!(refused.is_some(), "without shard {failing}");
    }
}

#[test]
fn when_a_shard_cannot_start_its_log_all_tasks_of_the_others_end() {
    let testbed = VirtualTestbed::new(SHARDS, 64);
    let (known, _) = testbed.session(async |stores, _| fill(stores).await);
    for failing in (0..SHARDS).map(ShardId) {
        let (device, faults) = without_programs(&testbed, failing, 0);
        let executor = VirtualExecutor::new(WALL_MS);
        let refused = executor.block_on(open(&testbed, &device, &executor)).err().expect("refused");
        assert_eq!(tasks_left(&executor), 0, "without shard {failing}: {refused}");
        faults.clear();
        executor.block_on(async {
            let stores = open(&testbed, &device, &executor).await.unwrap();
            known.compare(&stores[0]).await;
        });
    }
}

/// Leaves a transaction that shard 1 has prepared and that no log commits.
fn leave_undecided(testbed: &VirtualTestbed) {
    testbed.session(async |stores, runtime| {
        fill(stores).await;
        let both = stores[0].exclusive(vec![ShardId(0), ShardId(1)]).await.unwrap();
        let mut transaction = both.begin();
        for number in 0..10 {
            transaction.put(model::key(number), Entry::new(Bytes::from(vec![1; 100]))).unwrap();
        }
        stores[0].commit(transaction).await.unwrap();
        runtime.sleep_until(runtime.now() + PREPARED_NS).await;
    });
}

#[test]
fn when_a_cut_log_cannot_be_flushed_its_writer_ends() {
    let mut flushes_failed = 0;
    for programs in 0..20 {
        let testbed = VirtualTestbed::new(2, 64);
        leave_undecided(&testbed);
        let (device, _faults) = without_programs(&testbed, ShardId(1), programs);
        let executor = VirtualExecutor::new(WALL_MS);
        let opened = executor.block_on(open(&testbed, &device, &executor));
        let Err(error) = opened else { continue };
        assert_eq!(tasks_left(&executor), 0, "after {programs} programs: {error}");
        flushes_failed += u32::from(!matches!(error, StoreError::LogFailed(_)));
    }
    assert!(flushes_failed > 0, "only the log has failed");
}
