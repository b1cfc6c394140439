//! Tasks that wait in line for something that another task of the same thread does.

use std::collections::VecDeque;
use std::task::Waker;

/// Names a wait in a [`WaitList`].
pub(crate) type WaitId = u64;

struct Waiting {
    wait_id: WaitId,
    waker: Waker,
}

/// Who waits, in the order of arrival.
#[derive(Default)]
pub(crate) struct WaitList {
    line: VecDeque<Waiting>,
    last_id: WaitId,
}

impl WaitList {
    /// Joins the line, or, with a wait_id that still stands in it, changes whom to wake.
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

    /// Takes whoever waits longest out of the line.
    pub fn pop(&mut self) -> Option<Waker> {
        self.line.pop_front().map(|waiting| waiting.waker)
    }

    /// Whether the wait_id still stands in the line.
    pub fn contains(&self, wait_id: WaitId) -> bool {
        self.place(wait_id).is_some()
    }

    /// Leaves the line; false where it was called before.
    pub fn leave(&mut self, wait_id: WaitId) -> bool {
        let place = self.place(wait_id);
        if let Some(place) = place {
            self.line.remove(place);
        }
        place.is_some()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Tickets rise along the line, so a place is found by halving.
    fn place(&self, wait_id: WaitId) -> Option<usize> {
        self.line.binary_search_by_key(&wait_id, |waiting| waiting.wait_id).ok()
    }
}
