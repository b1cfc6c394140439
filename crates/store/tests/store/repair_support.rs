//! Damages patches in the file of a testbed's device, and compares the store with its history after
//! a repair.

#![expect(clippy::unwrap_used, reason = "tests end at the first error")]
#![allow(dead_code, reason = "each test uses a part")]

use bytes::Bytes;
use softflash_device::Device;
use softflash_runtime::{RealExecutor, RuntimeHandle};
use softflash_store::on_flash::{HEADER_BYTES, PatchHeader};
use softflash_store::repair::{self, Bound, KeyText, OnLogLoss, Plan, RepairReport, RepairedPatch};
use softflash_store::{Entry, Store, StoreLayout};
use softflash_testing::Testbed;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const PAGE: u64 = 4096;
const LABEL_BYTES: u64 = 1 << 20;

/// The size of superblocks in these tests.
pub const SUPERBLOCK: u64 = 256 << 10;

/// A patch in the file.
#[derive(Debug, Clone)]
pub struct FoundPatch {
    pub block: u64,
    /// The offset of its superblock: the erase header, then the opening header in the next page,
    /// then the patch.
    pub at: u64,
    pub header: PatchHeader,
}

impl FoundPatch {
    /// The offset of the patch in the file.
    pub fn payload(&self) -> u64 {
        self.at + 2 * PAGE
    }

    /// The offset of its data section in the file.
    pub fn data(&self) -> u64 {
        self.payload() + u64::from(self.header.metadata_len)
    }

    /// The offset of its filter in the file.
    pub fn filter(&self) -> u64 {
        let header = &self.header;
        let before =
            header.first_key_len + header.last_key_len + header.fences_len + header.tombstones_len;
        self.payload() + HEADER_BYTES as u64 + u64::from(before)
    }
}

/// Opens the device's file for damage.
pub fn file(testbed: &Testbed) -> File {
    OpenOptions::new().read(true).write(true).open(testbed.path()).unwrap()
}

/// Flips a bit.
pub fn flip(testbed: &Testbed, at: u64) {
    let (file, mut byte) = (file(testbed), [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();
}

/// Overwrites with zeros.
pub fn zero(testbed: &Testbed, at: u64, bytes: u64) {
    file(testbed).write_all_at(&vec![0; bytes as usize], at).unwrap();
}

/// The patches with these ids, by id.
pub fn patches(testbed: &Testbed, ids: &[u64], superblock: u64) -> Vec<FoundPatch> {
    let (uuid, file) = (testbed.device().info().uuid, file(testbed));
    let stride = superblock + 2 * PAGE;
    let end = file.metadata().unwrap().len();
    let mut found = Vec::new();
    let mut at = LABEL_BYTES;
    while at + stride <= end {
        let mut pages = vec![0; 2 * PAGE as usize];
        file.read_exact_at(&mut pages, at + PAGE).unwrap();
        let (opening, first) = pages.split_at(PAGE as usize);
        let block = u64::from_le_bytes(opening[64..72].try_into().unwrap());
        if opening.starts_with(b"SFopen") && opening[61] == 2 && ids.contains(&block) {
            let parts = [uuid as u64, (uuid >> 64) as u64, block];
            let identity = softflash_base::checksum::identity(&parts);
            let header = PatchHeader::decode(first, identity).unwrap();
            found.push(FoundPatch { block, at, header });
        }
        at += stride;
    }
    found.sort_by_key(|patch| patch.block);
    found
}

/// All values of each key in order, `None` for a deletion.
#[derive(Default, Clone)]
pub struct History {
    pub versions: BTreeMap<Bytes, Vec<Option<Bytes>>>,
}

impl History {
    /// Writes or deletes in the store and in the history.
    pub async fn write(&mut self, store: &Store, key: Bytes, value: Option<Bytes>) {
        let mut transaction = store.begin();
        match &value {
            Some(value) => transaction.put(key.clone(), Entry::new(value.clone())).unwrap(),
            None => transaction.delete(key.clone()).unwrap(),
        }
        let token = store.commit(transaction).await.unwrap();
        store.durable(&token).await.unwrap();
        self.versions.entry(key).or_default().push(value);
    }

    /// Compares every key: it must be correct unless the report names it as lost. Returns the
    /// number of keys that lost their value.
    pub async fn compare(&self, store: &Store, layout: &StoreLayout, report: &RepairReport) -> u64 {
        let mut lost = 0;
        for (key, versions) in &self.versions {
            let found = store.begin().get(key).await.unwrap().map(|e| e.value.to_bytes());
            if versions.last() == Some(&found) {
                continue;
            }
            lost += 1;
            let text = KeyText::from(&key[..]);
            if report.values.iter().any(|lost| lost.key == text) {
                assert!(found.is_none(), "{key:?} is deleted");
                continue;
            }
            let slice = layout.slice_of(key).0;
            let repaired = || report.patches.iter().filter(|m| m.slice == slice && reports(m, key));
            assert!(repaired().next().is_some(), "{key:?} is lost and not reported: {report:#?}");
            let may_be_old = repaired().any(|repaired| repaired.older_values_may_return);
            assert!(
                found.is_none() || may_be_old && versions.contains(&found),
                "{key:?} has a wrong value"
            );
        }
        lost
    }
}

/// Whether the report names a key as lost.
fn reports(repaired: &RepairedPatch, key: &Bytes) -> bool {
    let key = key.escape_ascii().to_string();
    let in_range = repaired.ranges.iter().any(|range| {
        let above = match &range.from {
            Bound::Inclusive(from) => from.0 <= key,
            Bound::Exclusive(from) => from.0 < key,
            Bound::Open => true,
        };
        let below = match &range.to {
            Bound::Inclusive(to) => key <= to.0,
            Bound::Exclusive(to) => key < to.0,
            Bound::Open => true,
        };
        above && below
    });
    in_range || repaired.torn_keys.iter().any(|torn| torn.0 == key)
}

/// Runs `work` on a device of the testbed.
pub fn on_device<R>(
    testbed: &Testbed,
    work: impl AsyncFnOnce(&Arc<dyn Device>, &StoreLayout, &RuntimeHandle) -> R,
) -> R {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(work(&testbed.device(), &testbed.layout, &runtime))
}

/// The report of an examination.
pub fn plan(testbed: &Testbed) -> RepairReport {
    plan_of(testbed, OnLogLoss::Refuse).report
}

fn plan_of(testbed: &Testbed, on_log_loss: OnLogLoss) -> Plan {
    on_device(testbed, async |device, layout, runtime| {
        repair::plan(device, layout, runtime, on_log_loss).await
    })
}

/// Repairs the store.
pub fn repair(testbed: &Testbed, on_log_loss: OnLogLoss) -> RepairReport {
    let plan = plan_of(testbed, on_log_loss);
    on_device(testbed, async |device, layout, runtime| {
        repair::carry_out(&plan, device, layout, runtime).await
    })
}

/// Repairs the store. The examination before must report the same, and one afterwards must report a
/// whole store. Also returns the number of keys that lost their value.
pub fn repair_and_compare(testbed: &Testbed, history: &History) -> (RepairReport, u64) {
    let plan = plan(testbed);
    let report = repair(testbed, OnLogLoss::Refuse);
    assert!(report.failures.is_empty(), "{report:#?}");
    assert_eq!(plan.patches.len(), report.patches.len(), "{plan:#?} {report:#?}");
    assert_eq!(plan.has_loss(), report.has_loss());
    let checked = testbed.check();
    assert!(checked.ok, "{checked:#?} {report:#?}");
    let again = repair(testbed, OnLogLoss::Refuse);
    assert!(again.is_clean(), "{again:#?}");
    let lost = testbed
        .crash(async |stores, _| history.compare(&stores[0], &testbed.layout, &report).await);
    (report, lost)
}
