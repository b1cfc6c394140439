//! Locks of parts of a volume, for writes that are not of whole mapping units.
//!
//! Such a write reads the units at its edges, changes them and writes them back. A write of another
//! client to one of these units in between would be undone, so it waits. Writes of whole units do
//! not wait for each other.

use softflash_runtime::Notify;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// The locks of a volume.
#[derive(Default)]
pub(super) struct RangeLocks {
    state: RefCell<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Held and waited for, in the order of their tickets.
    locks: Vec<Lock>,
}

#[derive(Debug, Clone)]
struct Lock {
    ticket: u64,
    bytes: Range<u64>,
    exclusive: bool,
}

impl Lock {
    fn excludes(&self, other: &Lock) -> bool {
        (self.exclusive || other.exclusive)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// A lock; given back on drop.
pub(super) struct RangeLock {
    locks: Rc<RangeLocks>,
    ticket: u64,
}

impl RangeLocks {
    /// Waits until no earlier lock of a part of these bytes is exclusive, or, for an exclusive one,
    /// until there is none. Locks are granted in their order, so no task waits forever.
    pub async fn lock(self: &Rc<Self>, bytes: Range<u64>, exclusive: bool) -> RangeLock {
        let mine = {
            let mut state = self.state.borrow_mut();
            let ticket = state.next;
            state.next += 1;
            let mine = Lock { ticket, bytes, exclusive };
            state.locks.push(mine.clone());
            mine
        };
        // From here on a caller that stops waiting gives its ticket back.
        let lock = RangeLock { locks: Rc::clone(self), ticket: mine.ticket };
        while self.is_excluded(&mine) {
            self.changed.notified().await;
        }
        lock
    }

    fn is_excluded(&self, mine: &Lock) -> bool {
        let state = self.state.borrow();
        let mut earlier = state.locks.iter().take_while(|lock| lock.ticket < mine.ticket);
        earlier.any(|lock| lock.excludes(mine))
    }
}

impl Drop for RangeLock {
    fn drop(&mut self) {
        self.locks.state.borrow_mut().locks.retain(|lock| lock.ticket != self.ticket);
        self.locks.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn whole_units_wait_for_edges_and_not_for_each_other() {
        let locks = Rc::new(RangeLocks::default());
        let take = |bytes, exclusive| locks.lock(bytes, exclusive).now_or_never();
        let (first, second) = (take(0..8192, false), take(4096..8192, false));
        assert!(first.is_some() && second.is_some());
        assert!(take(4096..8192, true).is_none(), "an edge waits for writes of its unit");
        assert!(take(8192..12_288, true).is_some());
        drop((first, second));
        let edge = take(4096..8192, true);
        assert!(edge.is_some());
        assert!(take(0..8192, false).is_none(), "and they wait for the edge");
        drop(edge);
        assert!(take(0..8192, false).is_some());
        assert!(locks.state.borrow().locks.is_empty(), "who stops waiting leaves nothing");
    }

    #[test]
    fn later_locks_do_not_overtake_a_waiting_one() {
        let locks = Rc::new(RangeLocks::default());
        let held = locks.lock(0..4096, false).now_or_never();
        let mut edge = Box::pin(locks.lock(0..4096, true));
        assert!((&mut edge).now_or_never().is_none());
        let mut later = Box::pin(locks.lock(0..4096, false));
        assert!((&mut later).now_or_never().is_none());
        drop(held);
        assert!((&mut later).now_or_never().is_none());
        let edge = edge.now_or_never();
        assert!(edge.is_some());
        drop(edge);
        assert!(later.now_or_never().is_some());
    }
}
