//! Power cuts during a repair: the next repair completes it without a further loss.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

use crate::repair_support::History;
use bytes::Bytes;
use futures_util::future::select;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_device::{Device, DeviceError, ModelDevice};
use softflash_ftl::Superblock;
use softflash_runtime::VirtualExecutor;
use softflash_store::check::{Progress, check};
use softflash_store::open_all;
use softflash_store::repair::{self, OnLogLoss, RepairReport};
use softflash_testing::VirtualTestbed;
use softflash_testing::faulty::{Faults, OperationKind};
use softflash_testing::model::{key, value};
use std::pin::pin;
use std::sync::Arc;

/// The number of times at which the power is cut.
const CUTS: u64 = 40;
/// The row of unreadable pages.
const LOST_ROW: u32 = 12;
const WALL_MS: u64 = 1_000_000;

/// The device, with a row of a superblock that is unreadable until its erase.
fn damaged(device: &Arc<ModelDevice>, place: Superblock) -> Arc<dyn Device> {
    let (faults, mut is_erased) = (Faults::default(), false);
    faults.fail_if(move |command| {
        let target = &command.target;
        let here = target.unit == place.unit && target.blocks[0] == place.index;
        let kind = OperationKind::of(&command.operation);
        is_erased |= here && kind == OperationKind::Erase;
        let rows = target.page..target.page + target.rows;
        let lost = here && !is_erased && kind == OperationKind::Read && rows.contains(&LOST_ROW);
        lost.then_some(DeviceError::Uncorrectable)
    });
    Arc::new(softflash_testing::faulty::FaultyDevice::new(Arc::clone(device) as _, faults))
}

/// Writes two runs of patches; returns the superblocks of all blocks of the store.
fn prepare(testbed: &VirtualTestbed, history: &mut History) -> Vec<Superblock> {
    let mut random = Rng::seeded(3);
    let (places, _) = testbed.session(async |stores, _| {
        for step in [1, 2] {
            for number in (0..300).step_by(step) {
                let value = Some(value(&mut random, 3000));
                history.write(&stores[0], key(number), value).await;
            }
            for store in stores {
                store.flush().await.unwrap();
            }
        }
        history.write(&stores[0], key(999), Some(Bytes::from_static(b"in the log"))).await;
        let places = |store: &softflash_store::Store| {
            let blocks = store.blocks().clone();
            blocks.ids().into_iter().flat_map(move |id| blocks.superblocks(id))
        };
        let places: Vec<_> = stores.iter().flat_map(places).collect();
        for store in stores {
            store.close().await.unwrap();
        }
        places
    });
    places
}

/// Repairs until the end or a power cut; returns the report and the time of the end.
fn repair_until(
    testbed: &VirtualTestbed,
    device: &Arc<dyn Device>,
    cut: Option<u64>,
) -> (Option<RepairReport>, Time) {
    let executor = VirtualExecutor::new(WALL_MS);
    let runtime = executor.handle();
    let plan =
        executor.block_on(repair::plan(device, &testbed.layout, &runtime, OnLogLoss::Refuse));
    drop((executor, runtime));
    let executor = VirtualExecutor::new(WALL_MS);
    let runtime = executor.handle();
    let report = executor.block_on(async {
        let repair = pin!(repair::carry_out(&plan, device, &testbed.layout, &runtime));
        let Some(cut) = cut else { return Some(repair.await) };
        drop(select(repair, runtime.sleep_until(Time::ZERO + cut)).await);
        None
    });
    (report, executor.now())
}

#[test]
fn an_interrupted_repair_can_be_repeated() {
    let (testbed, mut history) = (VirtualTestbed::new(2, 40), History::default());
    let places = prepare(&testbed, &mut history);
    let image = testbed.device.image(testbed.device.info().all_units()).unwrap();
    let fresh = || {
        let device = ModelDevice::in_memory(testbed.device.config().clone()).unwrap();
        device.restore(&image).unwrap();
        Arc::new(device)
    };
    // A superblock whose damage loses records.
    let whole = places.into_iter().find_map(|place| {
        let device = damaged(&fresh(), place);
        let (report, took) = repair_until(&testbed, &device, None);
        let report = report.unwrap();
        (report.failures.is_empty() && report.has_loss()).then_some((place, report, took))
    });
    let (place, report, took) = whole.expect("some patch has the row");
    println!("{place}: the repair takes {took}, cut at {CUTS} instants");
    let mut unfinished = 0;
    for number in 0..CUTS {
        let model = fresh();
        let device = damaged(&model, place);
        let (_, ended) =
            repair_until(&testbed, &device, Some(took.since_ns(Time::ZERO) * number / CUTS));
        model.power_cut(ended, number).unwrap();
        let (again, _) = repair_until(&testbed, &device, None);
        let again = again.unwrap();
        assert!(again.failures.is_empty(), "cut {number}: {again:#?}");
        unfinished += u64::from(!again.is_clean());
        if !again.is_clean() {
            assert_eq!(again.patches.len(), report.patches.len(), "cut {number}: {again:#?}");
        }
        assert!(repair_until(&testbed, &device, None).0.unwrap().is_clean(), "cut {number}");
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        let progress = Progress::default();
        let checked =
            executor.block_on(check(Arc::clone(&device), &testbed.layout, &runtime, &progress));
        assert!(checked.ok, "cut {number}: {checked:#?}");
        drop((executor, runtime));
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        executor.block_on(async {
            let stores = open_all(Arc::clone(&device), &testbed.layout, &testbed.options, &runtime)
                .await
                .unwrap();
            assert!(history.compare(&stores[0], &testbed.layout, &report).await > 0);
        });
    }
    assert!((1..CUTS).contains(&unfinished), "{unfinished} of {CUTS} repairs were cut off");
}
