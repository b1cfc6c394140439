//! The changes of volumes that are under way in a pair: those of overlapping ranges follow each
//! other, so that both members have them in the same order. A gate holds them while the pair itself
//! changes; those that it has held pass before it closes again, so that windows that are shorter
//! than a turn takes let clients write, too.

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
    /// Changes that the gate has held and that have not passed yet.
    held: Cell<u32>,
    stopped: Cell<bool>,
    changed: Notify,
}

/// A change that the gate holds, until this is dropped.
struct Held<'a>(&'a Traffic);

/// A change under way, until this is dropped.
pub(super) struct Passage<'a> {
    traffic: &'a Traffic,
    image: ImageId,
    range: Range<u32>,
}

impl Traffic {
    /// Waits until a change of a range may begin.
    pub async fn enter(&self, image: ImageId, range: Range<u32>) -> Passage<'_> {
        let mut held = None;
        while !self.stopped.get() && (self.closed.get() || self.is_taken(image, &range)) {
            if self.closed.get() && held.is_none() {
                held = Some(self.hold());
            }
            self.changed.notified().await;
        }
        self.under_way.borrow_mut().push((image, range.clone()));
        Passage { traffic: self, image, range }
    }

    fn hold(&self) -> Held<'_> {
        self.held.set(self.held.get() + 1);
        Held(self)
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

    /// Lets no change begin until it [opens](Traffic::open), once those have begun that it held
    /// before.
    ///
    /// # Panics
    /// If it is closed.
    pub async fn close(&self) {
        while !self.stopped.get() && self.held.get() > 0 {
            self.changed.notified().await;
        }
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

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Held(traffic) = self;
        traffic.held.set(traffic.held.get() - 1);
        traffic.changed.notify_all();
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::pin::pin;

    #[test]
    fn changes_that_the_gate_has_held_pass_before_it_closes_again() {
        let traffic = Traffic::default();
        assert!(traffic.close().now_or_never().is_some(), "nothing was held before");
        let mut first = pin!(traffic.enter(ImageId(1), 0..4));
        let mut second = pin!(traffic.enter(ImageId(1), 2..6));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        traffic.open();
        let mut closes = pin!(traffic.close());
        assert!((&mut closes).now_or_never().is_none());
        let passage = (&mut first).now_or_never();
        assert!(passage.is_some());
        assert!((&mut closes).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(passage);
        assert!((&mut second).now_or_never().is_some(), "the range is free");
        assert!((&mut closes).now_or_never().is_some());
        assert!(traffic.enter(ImageId(2), 0..1).now_or_never().is_none(), "it is closed");
    }

    #[test]
    fn a_held_change_that_is_given_up_holds_nobody_up() {
        let traffic = Traffic::default();
        assert!(traffic.close().now_or_never().is_some());
        assert!(traffic.enter(ImageId(1), 0..4).now_or_never().is_none());
        traffic.open();
        assert!(traffic.close().now_or_never().is_some());
    }
}
