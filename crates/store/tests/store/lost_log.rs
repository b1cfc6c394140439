//! A log that the flash has lost as a whole is distinguished from one that was never begun.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]

use bytes::Bytes;
use futures_util::future::{Either, select};
use softflash_base::Time;
use softflash_device::{Command, Device, DeviceError, ModelDevice, Target};
use softflash_runtime::VirtualExecutor;
use softflash_store::check::{Progress, check};
use softflash_store::repair::{self, OnLogLoss, RepairReport};
use softflash_store::{Entry, Store, StoreError, StoreLayout, StoreOptions, open_all};
use softflash_testing::VirtualTestbed;
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use softflash_testing::model::key;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};

const WALL_MS: u64 = 1_000_000;

/// A page of the array: unit, die, plane, block and row.
type Page = (u16, u8, u8, u32, u32);

/// Pages that were programmed since their erase, and the unreadable ones among them.
#[derive(Default)]
struct Pages {
    written: BTreeSet<Page>,
    lost: BTreeSet<Page>,
}

impl Pages {
    fn take(&mut self, command: &Command) -> Option<DeviceError> {
        let Target { unit, die, plane, planes, blocks, page, rows } = command.target;
        let columns = (0..planes).map(|at| (unit.0, die, plane + at, blocks[usize::from(at)]));
        let pages = columns.clone().flat_map(|(unit, die, plane, block)| {
            (page..page + rows).map(move |row| (unit, die, plane, block, row))
        });
        match OperationKind::of(&command.operation) {
            OperationKind::Program => self.written.extend(pages),
            OperationKind::Erase => {
                let columns: Vec<_> = columns.collect();
                let stays = |(unit, die, plane, block, _): &Page| {
                    !columns.contains(&(*unit, *die, *plane, *block))
                };
                self.written.retain(stays);
                self.lost.retain(stays);
            }
            OperationKind::Read => {
                let is_lost = pages.into_iter().any(|page| self.lost.contains(&page));
                return is_lost.then_some(DeviceError::Uncorrectable);
            }
            _ => {}
        }
        None
    }
}

/// A store on flash that can lose all its contents.
struct Forgetful {
    array: Arc<ModelDevice>,
    device: Arc<dyn Device>,
    layout: StoreLayout,
    options: StoreOptions,
    pages: Arc<Mutex<Pages>>,
}

impl Forgetful {
    fn new(shards: u16) -> Forgetful {
        let VirtualTestbed { device: array, layout, mut options } = VirtualTestbed::new(shards, 24);
        options.ftl.erased_target = u32::MAX;
        let (faults, pages) = (Faults::default(), Arc::<Mutex<Pages>>::default());
        let seen = Arc::clone(&pages);
        faults.fail_if(move |command| seen.lock().unwrap().take(command));
        let device = Arc::new(FaultyDevice::new(Arc::clone(&array) as _, faults));
        Forgetful { array, device, layout, options, pages }
    }

    /// Makes all written pages unreadable.
    fn forget(&self) {
        let mut pages = self.pages.lock().unwrap();
        pages.lost = pages.written.clone();
    }

    /// Opens the store, runs `work` and drops the store; also returns the time when it was open.
    fn session<R>(&self, work: impl AsyncFnOnce(&[Store]) -> R) -> Result<(R, Time), StoreError> {
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        let device = Arc::clone(&self.device);
        executor.block_on(async {
            let stores = open_all(device, &self.layout, &self.options, &runtime).await?;
            let opened_at = runtime.now();
            Ok((work(&stores).await, opened_at))
        })
    }

    /// Cuts the power at a time after power on; returns whether the store was open.
    fn start_cut_off(&self, at: Time) -> bool {
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        let device = Arc::clone(&self.device);
        let opened = executor.block_on(async {
            let open = pin!(open_all(device, &self.layout, &self.options, &runtime));
            let cut = runtime.sleep_until(at);
            matches!(select(open, cut).await, Either::Left((opened, _)) if opened.is_ok())
        });
        self.array.power_cut(at, at.0).unwrap();
        opened
    }

    fn repair(&self, on_log_loss: OnLogLoss) -> RepairReport {
        let executor = VirtualExecutor::new(WALL_MS);
        let (runtime, device, layout) = (executor.handle(), &self.device, &self.layout);
        let plan = executor.block_on(repair::plan(device, layout, &runtime, on_log_loss));
        drop((executor, runtime));
        let executor = VirtualExecutor::new(WALL_MS);
        let runtime = executor.handle();
        executor.block_on(repair::carry_out(&plan, device, layout, &runtime))
    }
}

async fn write(stores: &[Store], number: u64) {
    let mut transaction = stores[0].begin();
    transaction.put(key(number), Entry::new(Bytes::from_static(b"value"))).unwrap();
    let token = stores[0].commit(transaction).await.unwrap();
    stores[0].durable(&token).await.unwrap();
}

#[test]
fn the_loss_of_a_whole_log_can_be_accepted() {
    let flash = Forgetful::new(2);
    let write_some = async |stores: &[Store]| {
        for number in 0..10 {
            write(stores, number).await;
        }
    };
    flash.session(write_some).unwrap();
    flash.forget();
    for _ in 0..2 {
        let refusal = flash.session(async |_| ()).unwrap_err();
        assert!(matches!(refusal, StoreError::DataLoss(_)), "{refusal}");
    }
    let refused = flash.repair(OnLogLoss::Refuse);
    assert_eq!(refused.failures.len(), 2, "{refused:#?}");
    let report = flash.repair(OnLogLoss::Accept);
    assert!(report.failures.is_empty() && report.has_loss(), "{report:#?}");
    let executor = VirtualExecutor::new(WALL_MS);
    let (runtime, device) = (executor.handle(), Arc::clone(&flash.device));
    let checked = executor.block_on(check(device, &flash.layout, &runtime, &Progress::default()));
    assert!(checked.ok, "{checked:#?}");
    drop((executor, runtime));
    let begin_anew = async |stores: &[Store]| {
        assert_eq!(stores[0].begin().get(&key(3)).await.unwrap(), None);
        write(stores, 3).await;
    };
    flash.session(begin_anew).unwrap();
    let look = async |stores: &[Store]| {
        assert!(stores[0].begin().get(&key(3)).await.unwrap().is_some());
    };
    flash.session(look).unwrap();
}

#[test]
fn a_log_that_was_never_begun_is_not_lost() {
    let (_, opened_at) = Forgetful::new(1).session(async |_| ()).unwrap();
    let steps = 80;
    for step in 1..steps {
        let flash = Forgetful::new(1);
        // Interrupts the start at each step, and makes its writes unreadable too.
        for _ in 0..3 {
            let at = Time(opened_at.0 * step / steps);
            if flash.start_cut_off(at) {
                break;
            }
            flash.forget();
        }
        let opened = flash.session(async |stores| write(stores, 1).await);
        assert!(opened.is_ok(), "step {step}: {:?}", opened.err());
    }
}
