//! The number of live keys, and of those that expire.

use crate::kv::memtable::{Memtable, Presence};
use crate::kv::slice::{Frozen, Slice};
use crate::shard::slices::Slices;
use crate::stats::KeyCount;
use std::rc::Rc;

/// The number of keys. It is exact for keys in memtables that were read before they were written,
/// and else as accurate as the filters.
pub(in crate::shard) fn key_estimate(slices: &Slices) -> KeyCount {
    KeyCount::sum(slices.iter().map(count_keys))
}

/// What the memtables change in the count of the tree.
#[derive(Default)]
struct Delta {
    keys: i64,
    expiring: i64,
    /// Keys of the tree with a newer version in memory.
    replaced: i64,
}

/// Live keys of a slice: the count of the tree, corrected by the memtables. The tree does not know
/// which of its keys expire: it has the share of its values that do.
fn count_keys(slice: &Slice) -> KeyCount {
    let on_flash = slice.live_keys.get() as i64;
    let mut delta = Delta::default();
    let frozen: Vec<_> = slice.frozen.borrow().iter().map(Rc::clone).collect();
    for (age, table) in frozen.iter().enumerate() {
        let older = frozen.get(..age).unwrap_or_default();
        delta.add(slice, &mut table.table.borrow_mut(), older);
    }
    delta.add(slice, &mut slice.active().borrow_mut(), &frozen);
    let keys = (on_flash + delta.keys).max(0) as u64;
    let untouched = (on_flash - delta.replaced).max(0) as f64;
    let expiring = (untouched * expiring_share(slice)).round() as i64 + delta.expiring;
    KeyCount { keys, expiring: (expiring.max(0) as u64).min(keys) }
}

/// The share of the tree's values that expire.
fn expiring_share(slice: &Slice) -> f64 {
    let tree = slice.tree();
    let headers = tree.patches().filter_map(|(.., patch)| Some(*patch.index().ok()?.header()));
    let (values, expiring) = headers.fold((0, 0), |(values, expiring), header| {
        (values + u64::from(header.puts), expiring + u64::from(header.expiring))
    });
    if values == 0 { 0.0 } else { expiring as f64 / values as f64 }
}

impl Delta {
    /// Adds the changes by a memtable, given the older memtables.
    fn add(&mut self, slice: &Slice, table: &mut Memtable, older: &[Rc<Frozen>]) {
        let mut learned = Vec::new();
        for (key, version, presence) in table.newest_after(None) {
            let before = older.iter().rev().find_map(|frozen| {
                let table = frozen.table.borrow();
                let version = table.get(key, u64::MAX)?;
                Some((version.is_put(), version.content().expires_at_ms() != 0))
            });
            let existed = match (before, presence) {
                (Some((existed, _)), _) => existed,
                (None, Presence::New) => false,
                (None, Presence::Replaces) => true,
                (None, Presence::Unknown) => {
                    let existed = slice.probably_on_flash(key);
                    learned.push((key.clone(), existed));
                    existed
                }
            };
            let expired_before = before.is_some_and(|(_, expires)| expires);
            let expires = version.content().expires_at_ms() != 0;
            self.keys += i64::from(version.is_put()) - i64::from(existed);
            self.expiring += i64::from(expires) - i64::from(expired_before);
            self.replaced += i64::from(before.is_none() && existed);
        }
        for (key, existed) in learned {
            let presence = if existed { Presence::Replaces } else { Presence::New };
            table.set_presence(&key, presence);
        }
    }
}
