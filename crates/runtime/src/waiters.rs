//! FIFO queues of waiting tasks of one thread.

use std::collections::VecDeque;
use std::task::Waker;

/// Identifies a wait in a [`WaitList`].
pub(crate) type WaitId = u64;

struct Waiting {
    wait_id: WaitId,
    waker: Waker,
}

/// Waiting tasks in order of arrival.
#[derive(Default)]
pub(crate) struct WaitList {
    line: VecDeque<Waiting>,
    last_id: WaitId,
}

impl WaitList {
    /// Joins the queue; a wait that is still in it only changes its waker.
    pub fn wait(&mut self, wait_id: &mut Option<WaitId>, waker: &Waker) {
        let place = wait_id.and_then(|wait_id| self.place(wait_id));
        if let Some(waiting) = place.and_then(|place| self.line.get_mut(place)) {
            waiting.waker.clone_from(waker);
            return;
        }
        self.last_id += 1;
        *wait_id = Some(self.last_id);
        self.line.push_back(Waiting { wait_id: self.last_id, waker: waker.clone() });
    }

    /// Removes the task that has waited longest.
    pub fn pop(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|waiting| waiting.waker)
    }

    /// Whether the wait is still in the queue.
    pub fn contains(&self, wait_id: WaitId) -> bool {
        self.place(wait_id).is_some()
    }

    /// Leaves the queue; false if the wait was removed by `pop`.
    pub fn leave(&mut self, wait_id: WaitId) -> bool {
        let place = self.place(wait_id);
        if let Some(place) = place {
            self.line.remove(place);
        }
        place.is_some()
    }

    /// Number of waiting tasks.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Ids increase along the queue, so binary search finds an entry.
    fn place(&self, wait_id: WaitId) -> Option<usize> {
        self.line.binary_search_by_key(&wait_id, |waiting| waiting.wait_id).ok()
    }
}
