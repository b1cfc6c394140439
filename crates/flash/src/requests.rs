//! Requests under way, and the tasks that wait for them.

use softflash_ftl::{Done, RequestId};
use std::task::Waker;

/// A request under way: its waiting task, or its completion.
enum Pending {
    Free,
    /// Submitted; no task has polled it yet.
    Submitted,
    /// The task that submitted it was dropped.
    Abandoned,
    Awaited(Waker),
    Finished(Done),
}

/// Requests under way. A slot is kept until its waiter has the completion, which may be after the
/// FTL has used the request's place for another.
#[derive(Default)]
pub(crate) struct Requests {
    slots: Vec<Pending>,
    free: Vec<usize>,
    /// The request at each of the FTL's places, with its slot.
    by_place: Vec<Option<(RequestId, usize)>>,
}

impl Requests {
    pub(crate) fn add(&mut self, request: RequestId) -> usize {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Pending::Free);
        }
        self.set(slot, Pending::Submitted);
        if self.by_place.len() <= request.place() {
            self.by_place.resize(request.place() + 1, None);
        }
        if let Some(place) = self.by_place.get_mut(request.place()) {
            *place = Some((request, slot));
        }
        slot
    }

    fn set(&mut self, slot: usize, pending: Pending) -> Pending {
        match self.slots.get_mut(slot) {
            Some(place) => std::mem::replace(place, pending),
            None => Pending::Free,
        }
    }

    fn free(&mut self, slot: usize) {
        self.set(slot, Pending::Free);
        self.free.push(slot);
    }

    pub(crate) fn poll(&mut self, slot: usize, waker: &Waker) -> Option<Done> {
        match self.set(slot, Pending::Awaited(waker.clone())) {
            Pending::Finished(done) => {
                self.free(slot);
                Some(done)
            }
            _ => None,
        }
    }

    /// The waiting task was dropped.
    pub(crate) fn abandon(&mut self, slot: usize) {
        if let Pending::Finished(_) = self.set(slot, Pending::Abandoned) {
            self.free(slot);
        }
    }

    /// Takes a completion; returns the waker of the task that waits for it.
    ///
    /// # Panics
    /// If the FTL has given the place of the request to another one before.
    pub(crate) fn finish(&mut self, done: Done) -> Option<Waker> {
        let (request, slot) = self.by_place.get_mut(done.request.place())?.take()?;
        assert_eq!(request, done.request, "a completion for another request");
        match self.set(slot, Pending::Finished(done)) {
            Pending::Awaited(waker) => Some(waker),
            // Its buffer returns to the pool.
            Pending::Abandoned => {
                self.free(slot);
                None
            }
            _ => None,
        }
    }
}
