//! The numbers of frames, and the frames under way.

use crate::error::VolumeError;
use softflash_runtime::{Event, Notify};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Numbers frames in the order in which they change the map.
pub(crate) struct Frames {
    next: Cell<u64>,
    under_way: RefCell<BTreeSet<u64>>,
    /// All frames below are durable.
    durable_below: Cell<u64>,
    /// Whether a root or copies have replaced what a power cut destroyed of earlier frames. Before,
    /// the next recovery must check those frames as this one did.
    settled: Cell<bool>,
    /// All frames below are durable once recovery is complete.
    durable_when_settled: Cell<u64>,
    /// The first frame whose data could not be written anywhere: the next recovery must check it.
    failed_at: Cell<Option<u64>>,
    /// The first frame of a root that is being written.
    root_at: Cell<Option<u64>>,
    ended: Notify,
}

impl Frames {
    /// Frames that start with the number `next`; all below `durable_below` are durable.
    pub fn from(next: u64, durable_below: u64) -> Frames {
        Frames {
            next: Cell::new(next),
            under_way: RefCell::default(),
            durable_below: Cell::new(durable_below),
            settled: Cell::new(false),
            durable_when_settled: Cell::new(0),
            failed_at: Cell::new(None),
            root_at: Cell::new(None),
            ended: Notify::new(),
        }
    }

    /// The number of the next frame.
    pub fn next(&self) -> u64 {
        self.next.get()
    }

    pub fn durable_below(&self) -> u64 {
        self.durable_below.get()
    }

    /// All frames below are durable.
    ///
    /// # Panics
    /// If one of them is being programmed, or was not appended.
    pub fn set_durable_below(&self, sequence: u64) {
        let first = self.under_way.borrow().first().copied();
        assert!(first.is_none_or(|first| first >= sequence), "frame {first:?} is not programmed");
        assert!(sequence <= self.next.get(), "frame {sequence} was not appended");
        if !self.settled.get() {
            self.durable_when_settled.set(sequence);
            return;
        }
        let bounds = [self.failed_at.get(), self.root_at.get()];
        let durable = bounds.into_iter().flatten().fold(sequence, u64::min);
        self.durable_below.set(self.durable_below.get().max(durable));
    }

    /// The data of a frame that ends could not be written anywhere.
    pub fn fail(&self, number: u64) {
        self.failed_at.set(Some(self.failed_at.get().map_or(number, |at| at.min(number))));
    }

    /// A root holds the state at this frame: recovery does not read earlier ones.
    pub fn forgive_below(&self, sequence: u64) {
        self.failed_at.set(self.failed_at.get().filter(|&at| at >= sequence));
    }

    /// The copies of a root are the next frames. Until the result is dropped, no frame counts as
    /// durable from the first of them on: a head between them that says so would stay when the
    /// second copy is lost, and let the first one count as a root that was durable.
    ///
    /// # Panics
    /// If another root is being written.
    pub fn begin_root(&self) -> RootUnderWay<'_> {
        assert_eq!(self.root_at.get(), None, "two roots are written at once");
        self.root_at.set(Some(self.next.get()));
        RootUnderWay(self)
    }

    /// Recovery is complete.
    pub fn settle(&self) {
        self.settled.set(true);
        self.set_durable_below(self.durable_when_settled.get());
    }

    /// A new frame.
    pub fn begin(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.under_way.borrow_mut().insert(number);
        number
    }

    /// The data of a frame are programmed, there or elsewhere.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn end(&self, number: u64) {
        let was_under_way = self.under_way.borrow_mut().remove(&number);
        assert!(was_under_way, "frame {number} ends twice");
        self.ended.notify_all();
    }

    /// Waits until all frames below `number` have ended.
    pub async fn ended_below(&self, number: u64) {
        while self.under_way.borrow().first().is_some_and(|&first| first < number) {
            self.ended.notified().await;
        }
    }
}

/// A root that is being written.
pub(crate) struct RootUnderWay<'a>(&'a Frames);

impl Drop for RootUnderWay<'_> {
    fn drop(&mut self) {
        self.0.root_at.set(None);
    }
}

/// The end of a frame or of a flush, for the tasks that wait for it.
#[derive(Clone, Default)]
pub(crate) struct Completion {
    ended: Event,
    result: Rc<RefCell<Option<VolumeError>>>,
}

impl Completion {
    pub fn end(&self, result: Result<(), VolumeError>) {
        *self.result.borrow_mut() = result.err();
        self.ended.set();
    }

    pub async fn wait(&self) -> Result<(), VolumeError> {
        self.ended.wait().await;
        self.result.borrow().clone().map_or(Ok(()), Err)
    }

    /// Whether this is the other completion.
    pub fn is(&self, other: &Completion) -> bool {
        Rc::ptr_eq(&self.result, &other.result)
    }
}
