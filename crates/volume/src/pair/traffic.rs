//! The changes of volumes that are under way in a pair: those of overlapping ranges follow each
//! other, so that both members have them in the same order.

use crate::image::ImageId;
use softflash_base::planted::{self, Bug};
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Changes under way, and the gate before them.
#[derive(Default)]
pub(super) struct Traffic {
    under_way: RefCell<Vec<(ImageId, Range<u32>)>>,
    closed: Cell<bool>,
    stopped: Cell<bool>,
    changed: Notify,
}

/// A change under way, until this is dropped.
pub(super) struct Passage<'a> {
    traffic: &'a Traffic,
    image: ImageId,
    range: Range<u32>,
}

impl Traffic {
    /// Waits until a change of a range may begin.
    pub async fn enter(&self, image: ImageId, range: Range<u32>) -> Passage<'_> {
        while !self.stopped.get() && (self.closed.get() || self.is_taken(image, &range)) {
            self.changed.notified().await;
        }
        self.under_way.borrow_mut().push((image, range.clone()));
        Passage { traffic: self, image, range }
    }

    fn is_taken(&self, image: ImageId, range: &Range<u32>) -> bool {
        if planted::bug(Bug::OverlapsTogether) {
            return false;
        }
        let under_way = self.under_way.borrow();
        under_way.iter().any(|(other, taken)| {
            *other == image && taken.start < range.end && range.start < taken.end
        })
    }

    /// Lets no change begin until it [opens](Traffic::open).
    ///
    /// # Panics
    /// If it is closed.
    pub fn close(&self) {
        assert!(!self.closed.replace(true), "two tasks close the gate of a pair");
    }

    /// Waits until no change is under way.
    pub async fn ended(&self) {
        while !self.under_way.borrow().is_empty() {
            self.changed.notified().await;
        }
    }

    /// Whether a change is under way.
    pub fn is_busy(&self) -> bool {
        !self.under_way.borrow().is_empty()
    }

    /// Changes begin again.
    ///
    /// # Panics
    /// If it is open.
    pub fn open(&self) {
        assert!(self.closed.replace(false), "the gate of a pair opens twice");
        self.changed.notify_all();
    }

    /// Nothing waits any more: the pair ends.
    pub fn open_for_ever(&self) {
        self.stopped.set(true);
        self.changed.notify_all();
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        let Passage { traffic, image, range } = self;
        let mut under_way = traffic.under_way.borrow_mut();
        let place = under_way.iter().position(|(other, taken)| other == image && taken == range);
        assert!(place.is_some(), "a change of a pair ends that was not under way");
        place.map(|place| under_way.swap_remove(place));
        drop(under_way);
        traffic.changed.notify_all();
    }
}
