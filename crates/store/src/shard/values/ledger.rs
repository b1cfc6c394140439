//! The ledger: which values of each value block are live. A value is live from its placement until
//! its version is overwritten, deleted or moved. A value that the ledger does not list is dead; a
//! listed value may be dead, where only the tree knows (after a restart, until compaction).

use super::block::ValueBlock;
use crate::format::reference::Reference;
use crate::format::separated::Separated;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// A value block and its live values.
pub struct Tracked {
    handle: Rc<ValueBlock>,
    /// Bytes of each live value, by its offset.
    live: BTreeMap<u32, u32>,
    live_bytes: u64,
    /// It takes more values.
    is_open: bool,
    /// The ledger may not list all of its values: it is kept.
    is_kept: bool,
    /// A value cannot be read: the block is not collected, and kept as long as a value is live.
    is_unreadable: bool,
    /// When its last value expires, in milliseconds since the Unix epoch; `u64::MAX` where one does
    /// not expire.
    expires_by_ms: u64,
    /// The latest time at which a value was given up because it had expired.
    expired_ms: u64,
    /// The value clock when it was opened: the age of its values.
    born: u64,
    /// Its values were written by clients and replace short-lived versions.
    is_short: bool,
}

/// A block as the collector sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The block.
    pub block: u64,
    /// Bytes of its live values.
    pub live_bytes: u64,
    /// The number of its live values.
    pub values: usize,
    /// When its last value expires, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub expires_by_ms: u64,
    /// The value clock when it was opened.
    pub born: u64,
}

/// A block that no value keeps.
pub struct Empty {
    /// The block.
    pub handle: Rc<ValueBlock>,
    /// The expiry clock must be logged up to this time before the block is deleted.
    pub expired_ms: u64,
    /// The value clock when it was opened.
    pub born: u64,
    /// Its values were written by clients and replace short-lived versions.
    pub is_short: bool,
}

/// All value blocks of a shard.
#[derive(Default)]
pub struct Ledger {
    blocks: BTreeMap<u64, Tracked>,
    /// Blocks that were taken because they are empty, until they are deleted: scans read older
    /// versions in them.
    taken: BTreeMap<u64, Weak<ValueBlock>>,
    live_bytes: u64,
}

impl Ledger {
    /// Adds a block that takes values.
    pub fn open(&mut self, handle: ValueBlock, born: u64, is_short: bool) {
        let id = handle.id().0;
        let tracked = Tracked::new(handle, born, is_short);
        self.blocks.insert(id, tracked);
    }

    /// Adds a block that a start has found.
    pub fn found(&mut self, handle: ValueBlock) {
        self.open(handle, 0, false);
    }

    /// A block takes no more values.
    pub fn seal(&mut self, block: u64) {
        if let Some(tracked) = self.blocks.get_mut(&block) {
            tracked.is_open = false;
        }
    }

    /// A block may have values that the ledger does not list.
    pub fn keep(&mut self, block: u64) {
        if let Some(tracked) = self.blocks.get_mut(&block) {
            tracked.is_kept = true;
        }
    }

    /// A value of a block cannot be read.
    pub fn note_unreadable(&mut self, block: u64) {
        if let Some(tracked) = self.blocks.get_mut(&block) {
            tracked.is_unreadable = true;
        }
    }

    /// A value is written, and live.
    pub fn insert(&mut self, reference: &Reference, expires_at_ms: u64) {
        let Some(tracked) = self.blocks.get_mut(&reference.block()) else { return };
        if tracked.live.insert(reference.offset(), reference.len()).is_none() {
            tracked.live_bytes += u64::from(reference.len());
            self.live_bytes += u64::from(reference.len());
        }
        let expires_at_ms = if expires_at_ms == 0 { u64::MAX } else { expires_at_ms };
        tracked.expires_by_ms = tracked.expires_by_ms.max(expires_at_ms);
    }

    /// A value is dead. Does nothing if it was dead before.
    pub fn remove(&mut self, reference: &Reference) {
        let Some(tracked) = self.blocks.get_mut(&reference.block()) else { return };
        if let Some(len) = tracked.live.remove(&reference.offset()) {
            tracked.live_bytes -= u64::from(len);
            self.live_bytes -= u64::from(len);
        }
    }

    /// A value is dead because it has expired.
    pub fn remove_expired(&mut self, reference: &Reference, expires_at_ms: u64) {
        if let Some(tracked) = self.blocks.get_mut(&reference.block())
            && !planted::bug(Bug::ExpiredValueClockNotLogged)
        {
            tracked.expired_ms = tracked.expired_ms.max(expires_at_ms);
        }
        self.remove(reference);
    }

    /// The values of a superseded version are dead; those that are not written yet, once they are.
    pub fn supersede(&mut self, separated: &Separated) {
        separated.is_superseded.set(true);
        for reference in separated.references().into_iter().flatten() {
            self.remove(&reference);
        }
    }

    /// All values are dead.
    pub fn clear(&mut self) {
        for tracked in self.blocks.values_mut() {
            tracked.live.clear();
            tracked.live_bytes = 0;
        }
        self.live_bytes = 0;
    }

    /// Whether a value is live.
    pub fn is_live(&self, reference: &Reference) -> bool {
        let tracked = self.blocks.get(&reference.block());
        tracked.is_some_and(|tracked| tracked.live.contains_key(&reference.offset()))
    }

    /// The block, for a reader; also an empty one that is not deleted.
    pub fn handle(&self, block: u64) -> Option<Rc<ValueBlock>> {
        match self.blocks.get(&block) {
            Some(tracked) => Some(Rc::clone(&tracked.handle)),
            None => self.taken.get(&block).and_then(Weak::upgrade),
        }
    }

    /// The value clock when the block of a value was opened.
    pub fn born(&self, reference: &Reference) -> Option<u64> {
        self.blocks.get(&reference.block()).map(|tracked| tracked.born)
    }

    /// The live values of a block in order of their offsets: offset and length.
    pub fn live_in(&self, block: u64) -> Vec<(u32, u32)> {
        let tracked = self.blocks.get(&block);
        tracked.map_or_else(Vec::new, |tracked| {
            tracked.live.iter().map(|(offset, len)| (*offset, *len)).collect()
        })
    }

    /// Blocks that take no values and may be collected.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let collectable = |(_, tracked): &(&u64, &Tracked)| {
            !tracked.is_open && !tracked.is_kept && !tracked.is_unreadable
        };
        self.blocks.iter().filter(collectable).map(|(block, tracked)| Candidate {
            block: *block,
            live_bytes: tracked.live_bytes,
            values: tracked.live.len(),
            expires_by_ms: tracked.expires_by_ms,
            born: tracked.born,
        })
    }

    /// Takes the blocks without live values, or whose values have all expired at `now_ms`.
    pub fn take_empty(&mut self, now_ms: u64) -> Vec<Empty> {
        let is_empty = |tracked: &Tracked| {
            let has_expired = tracked.expires_by_ms <= now_ms;
            !tracked.is_open && !tracked.is_kept && (tracked.live_bytes == 0 || has_expired)
        };
        let empty = self.blocks.extract_if(.., |_, tracked| is_empty(tracked));
        let (mut taken, mut freed) = (Vec::new(), 0);
        for (_, tracked) in empty {
            freed += tracked.live_bytes;
            let has_live = tracked.live_bytes > 0;
            let expired_ms = if has_live { tracked.expires_by_ms } else { tracked.expired_ms };
            let logged = !planted::bug(Bug::ExpiredValueClockNotLogged);
            taken.push(Empty {
                handle: tracked.handle,
                expired_ms: if logged { expired_ms.max(tracked.expired_ms) } else { 0 },
                born: tracked.born,
                is_short: tracked.is_short,
            });
        }
        self.live_bytes -= freed;
        self.taken.retain(|_, handle| handle.strong_count() > 0);
        let handles = taken.iter().map(|empty| (empty.handle.id().0, Rc::downgrade(&empty.handle)));
        self.taken.extend(handles);
        taken
    }

    /// When the last value of the block that is emptied first by expiry expires.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        let expiries = self.candidates().map(|candidate| candidate.expires_by_ms);
        expiries.filter(|expires| *expires != u64::MAX).min()
    }

    /// The blocks.
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of live values.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes of memory in use, about.
    pub fn memory_bytes(&self) -> u64 {
        let values: usize = self.blocks.values().map(|tracked| tracked.live.len()).sum();
        // Two numbers, and the share of a B-tree node.
        (self.blocks.len() * size_of::<Tracked>() + values * 12) as u64
    }
}

impl Tracked {
    fn new(handle: ValueBlock, born: u64, is_short: bool) -> Tracked {
        Tracked {
            handle: Rc::new(handle),
            live: BTreeMap::new(),
            live_bytes: 0,
            is_open: true,
            is_kept: false,
            is_unreadable: false,
            expires_by_ms: 0,
            expired_ms: 0,
            born,
            is_short,
        }
    }
}
