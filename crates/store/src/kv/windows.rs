//! What scans have read ahead and not used yet, kept for the next page of the same scan.
//!
//! A scan is asked for page by page, each time from a key on, and nothing of it lives in between. So what a cursor
//! holds when it is dropped is left here, and a cursor that starts where that ends takes it up: a scan reads each
//! page of a patch once, however small its pages are.

use crate::block_layer::BlockId;
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use std::cell::RefCell;
use std::collections::VecDeque;

/// A piece of a patch's data section.
#[derive(Debug, Clone)]
pub struct Window {
    /// The patch.
    pub patch: BlockId,
    /// The block that `bytes` start with.
    pub block: usize,
    /// Where that block starts in the data section.
    pub start: u32,
    /// What was read.
    pub bytes: Bytes,
    /// The first page of the data section behind it.
    pub next_page: u32,
    /// Pages that the scan reads at a time by now.
    pub step: u32,
}

/// The windows of a shard, the latest last.
pub struct Windows {
    kept: RefCell<VecDeque<Window>>,
    limit: usize,
}

impl Windows {
    /// Room for `limit` windows.
    pub fn new(limit: usize) -> Windows {
        Windows { kept: RefCell::default(), limit }
    }

    /// Leaves a window; the oldest one gives way.
    pub fn leave(&self, window: Window) {
        let mut kept = self.kept.borrow_mut();
        kept.push_back(window);
        if kept.len() > self.limit {
            kept.pop_front();
        }
    }

    /// Takes up the window of a patch that holds or adjoins what starts at `start` of its data section.
    pub fn take_up(&self, patch: BlockId, start: u32) -> Option<Window> {
        let fits = |window: &Window| {
            let end = window.start + window.bytes.len() as u32;
            let here = window.patch == patch || planted::bug(Bug::WindowOfAnotherPatch);
            here && (window.start..=end).contains(&start)
        };
        let mut kept = self.kept.borrow_mut();
        let place = kept.iter().rposition(fits)?;
        kept.remove(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(patch: u64, start: u32, len: usize) -> Window {
        let bytes = Bytes::from(vec![0; len]);
        Window { patch: BlockId(patch), block: 0, start, bytes, next_page: 0, step: 1 }
    }

    #[test]
    fn a_window_is_taken_up_once_and_only_where_it_fits() {
        let windows = Windows::new(8);
        windows.leave(window(1, 100, 50));
        assert!(windows.take_up(BlockId(2), 100).is_none());
        assert!(windows.take_up(BlockId(1), 99).is_none());
        assert!(windows.take_up(BlockId(1), 151).is_none());
        assert!(windows.take_up(BlockId(1), 150).is_some());
        assert!(windows.take_up(BlockId(1), 150).is_none());
    }

    #[test]
    fn the_oldest_gives_way() {
        let windows = Windows::new(2);
        (1..=3).for_each(|patch| windows.leave(window(patch, 0, 10)));
        assert!(windows.take_up(BlockId(1), 0).is_none());
        assert!(windows.take_up(BlockId(3), 0).is_some());
        assert!(windows.take_up(BlockId(2), 0).is_some());
    }
}
