//! The number of live keys.

use super::slices::Slices;
use crate::kv::memtable::{Memtable, Presence};
use crate::kv::slice::{Frozen, Slice};
use std::rc::Rc;

/// The number of keys. It is exact for keys in memtables that were read before they were written,
/// and else as accurate as the filters.
pub(super) fn key_estimate(slices: &Slices) -> u64 {
    slices.iter().map(count_keys).sum()
}

/// Live keys of a slice: the count of the tree, corrected by the memtables.
fn count_keys(slice: &Slice) -> u64 {
    let mut live = slice.live_keys.get() as i64;
    let frozen: Vec<_> = slice.frozen.borrow().iter().map(Rc::clone).collect();
    for (age, table) in frozen.iter().enumerate() {
        let older = frozen.get(..age).unwrap_or_default();
        live += delta(slice, &mut table.table.borrow_mut(), older);
    }
    live += delta(slice, &mut slice.active().borrow_mut(), &frozen);
    live.max(0) as u64
}

/// The change of the key count by a memtable, given the older memtables.
fn delta(slice: &Slice, table: &mut Memtable, older: &[Rc<Frozen>]) -> i64 {
    let mut delta = 0;
    let mut learned = Vec::new();
    for (key, version, presence) in table.newest_after(None) {
        let before = older.iter().rev().find_map(|frozen| {
            frozen.table.borrow().get(key, u64::MAX).map(|version| version.is_put())
        });
        let existed = match (before, presence) {
            (Some(existed), _) => existed,
            (None, Presence::New) => false,
            (None, Presence::Replaces) => true,
            (None, Presence::Unknown) => {
                let existed = slice.probably_on_flash(key);
                learned.push((key.clone(), existed));
                existed
            }
        };
        delta += i64::from(version.is_put()) - i64::from(existed);
    }
    for (key, existed) in learned {
        let presence = if existed { Presence::Replaces } else { Presence::New };
        table.set_presence(&key, presence);
    }
    delta
}
