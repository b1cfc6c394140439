//! Snapshots: sequence numbers at which scans read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The snapshots in use. A clone is the same set.
#[derive(Clone, Default)]
pub struct Snapshots {
    readers: Rc<RefCell<BTreeMap<u64, usize>>>,
}

impl Snapshots {
    /// Keeps the state as of `seq` readable until the snapshot is dropped.
    pub fn take(&self, seq: u64) -> Snapshot {
        *self.readers.borrow_mut().entry(seq).or_default() += 1;
        Snapshot { seq, snapshots: self.clone() }
    }

    /// The oldest snapshot in use.
    pub fn oldest(&self) -> Option<u64> {
        self.readers.borrow().keys().next().copied()
    }

    /// The newest snapshot in use.
    pub fn newest(&self) -> Option<u64> {
        self.readers.borrow().keys().next_back().copied()
    }

    /// All snapshots in use, in ascending order.
    pub fn all(&self) -> Vec<u64> {
        self.readers.borrow().keys().copied().collect()
    }
}

/// The state at a sequence number, readable until this is dropped.
pub struct Snapshot {
    seq: u64,
    snapshots: Snapshots,
}

impl Snapshot {
    /// The sequence number of the last write in the snapshot.
    pub fn seq(&self) -> u64 {
        self.seq
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut readers = self.snapshots.readers.borrow_mut();
        if let Some(count) = readers.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.seq);
            }
        }
    }
}
