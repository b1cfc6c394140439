//! The frames of clients: those that are being filled, one of each class, and those under way.

use crate::format::entry::Entry;
use crate::frames::Completion;
use crate::open_frame::OpenFrame;
use crate::tenant::Growth;
use softflash_ftl::Hint;
use std::cell::{Cell, RefCell};

/// The frames of clients.
pub(crate) struct HostFrames {
    /// By class.
    filling: RefCell<Vec<Option<OpenFrame>>>,
    under_way: Cell<u32>,
}

impl HostFrames {
    pub fn new(classes: u8) -> HostFrames {
        let filling = RefCell::new((0..classes).map(|_| None).collect());
        HostFrames { filling, under_way: Cell::new(0) }
    }

    /// Adds a mapping unit to the frame of a class that is being filled, if there is one; returns
    /// its completion, and whether it is full. The hint of the frame is that of all of
    /// them, with the lifetime of its write frontier.
    pub fn add(
        &self,
        class: u8,
        hint: Hint,
        entry: Entry,
        data: &[u8],
        growth: &mut Option<Growth>,
    ) -> Option<(Completion, bool)> {
        let frames = &mut self.filling.borrow_mut();
        let open_frame = frames[usize::from(class)].as_mut()?;
        let of_frontier = open_frame.hint.lifetime;
        open_frame.hint = open_frame.hint.join(hint.lasting(of_frontier));
        open_frame.add(entry, data);
        open_frame.growths.extend(growth.take());
        Some((open_frame.completion(), open_frame.is_full()))
    }

    /// Begins a frame of a class, unless another task has begun one.
    pub fn begin(&self, class: u8, begin: impl FnOnce() -> Option<OpenFrame>) {
        let frame = &mut self.filling.borrow_mut()[usize::from(class)];
        if frame.is_none() {
            *frame = begin();
        }
    }

    /// Takes the frame of a class that is being filled: it is under way until it has
    /// [ended](HostFrames::end).
    pub fn take(&self, class: u8) -> Option<OpenFrame> {
        let open_frame = self.filling.borrow_mut()[usize::from(class)].take()?;
        self.under_way.set(self.under_way.get() + 1);
        Some(open_frame)
    }

    /// A frame has ended.
    pub fn end(&self) {
        let under_way = self.under_way.get();
        assert!(under_way > 0, "a frame of clients ended that was not under way");
        self.under_way.set(under_way - 1);
    }

    /// Frames under way.
    pub fn under_way(&self) -> u32 {
        self.under_way.get()
    }
}
