//! Timers, ordered by time and then by the order in which they were set, so that ties always
//! fire in the same order.

use softflash_base::Time;
use std::collections::BTreeMap;
use std::task::Waker;

/// Time and sequence number of a timer.
pub(crate) type TimerKey = (Time, u64);

/// Timers that have not fired. A cancelled timer is removed immediately.
#[derive(Default)]
pub(crate) struct Timers {
    waiting: BTreeMap<TimerKey, Waker>,
    set_so_far: u64,
}

impl Timers {
    /// Sets a timer.
    pub fn set(&mut self, at: Time, waker: Waker) -> TimerKey {
        let key = (at, self.set_so_far);
        self.set_so_far += 1;
        self.waiting.insert(key, waker);
        key
    }

    /// Changes the waker of a timer.
    pub fn change_waker(&mut self, key: TimerKey, waker: &Waker) {
        if let Some(current) = self.waiting.get_mut(&key) {
            current.clone_from(waker);
        }
    }

    /// Removes a timer.
    pub fn cancel(&mut self, key: TimerKey) {
        self.waiting.remove(&key);
    }

    /// Time of the next timer.
    pub fn next(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes the first timer that is due at `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<Waker> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Removes all timers and returns their wakers, so that the caller can drop them while nothing
    /// is borrowed.
    pub fn close(&mut self) -> BTreeMap<TimerKey, Waker> {
        std::mem::take(&mut self.waiting)
    }
}
