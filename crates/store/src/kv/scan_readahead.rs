//! What scans have read ahead and not used yet, kept for the next page of the same scan.
//!
//! A scan is asked for page by page, each time from a key on, and nothing of it lives in between.
//! So what a cursor holds when it is dropped is left here, and a cursor that starts where that ends
//! takes it up: a scan reads each page of a patch once, however small its pages are.

use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
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
    /// Memory that `bytes` hold: all that was read with them.
    pub memory_bytes: usize,
    /// The first page of the data section behind it.
    pub next_page: u32,
    /// Pages that the scan reads at a time by now.
    pub step: u32,
}

/// ScanReadahead that are kept at most, however small: each is looked at when a scan begins.
const MOST_WINDOWS: usize = 1024;

/// The windows of a shard.
pub struct ScanReadahead {
    kept: RefCell<Kept>,
    limit_bytes: usize,
}

/// ScanReadahead, the latest last, and the memory that they hold together.
#[derive(Default)]
struct Kept {
    windows: VecDeque<Window>,
    memory_bytes: usize,
}

impl ScanReadahead {
    /// Room for windows that hold `limit_bytes` of memory.
    pub fn new(limit_bytes: usize) -> ScanReadahead {
        ScanReadahead { kept: RefCell::default(), limit_bytes }
    }

    /// Leaves a window; the oldest ones give way.
    pub fn leave(&self, window: Window) {
        let mut kept = self.kept.borrow_mut();
        kept.memory_bytes += window.memory_bytes;
        kept.windows.push_back(window);
        while kept.memory_bytes > self.limit_bytes || kept.windows.len() > MOST_WINDOWS {
            let Some(oldest) = kept.windows.pop_front() else { break };
            kept.memory_bytes -= oldest.memory_bytes;
        }
    }

    /// Takes up the window of a patch that holds or adjoins what starts at `start` of its data
    /// section.
    pub fn take_up(&self, patch: BlockId, start: u32) -> Option<Window> {
        let fits = |window: &Window| {
            let end = window.start + window.bytes.len() as u32;
            let here = window.patch == patch || planted::bug(Bug::WindowOfAnotherPatch);
            here && (window.start..=end).contains(&start)
        };
        let mut kept = self.kept.borrow_mut();
        let place = kept.windows.iter().rposition(fits)?;
        let window = kept.windows.remove(place)?;
        kept.memory_bytes -= window.memory_bytes;
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(patch: u64, start: u32, len: usize) -> Window {
        let bytes = Bytes::from(vec![0; len]);
        let patch = BlockId(patch);
        Window { patch, block: 0, start, bytes, memory_bytes: len, next_page: 0, step: 1 }
    }

    #[test]
    fn a_window_is_taken_up_once_and_only_where_it_fits() {
        let windows = ScanReadahead::new(1000);
        windows.leave(window(1, 100, 50));
        assert!(windows.take_up(BlockId(2), 100).is_none());
        assert!(windows.take_up(BlockId(1), 99).is_none());
        assert!(windows.take_up(BlockId(1), 151).is_none());
        assert!(windows.take_up(BlockId(1), 150).is_some());
        assert!(windows.take_up(BlockId(1), 150).is_none());
    }

    #[test]
    fn the_oldest_give_way_for_memory() {
        let windows = ScanReadahead::new(20);
        (1..=3).for_each(|patch| windows.leave(window(patch, 0, 10)));
        assert!(windows.take_up(BlockId(1), 0).is_none());
        assert!(windows.take_up(BlockId(3), 0).is_some());
        // What was taken up holds nothing here any more; a large one needs the room of several.
        windows.leave(window(4, 0, 10));
        windows.leave(window(5, 0, 20));
        assert!(windows.take_up(BlockId(2), 0).is_none());
        assert!(windows.take_up(BlockId(4), 0).is_none());
        assert!(windows.take_up(BlockId(5), 0).is_some());
        windows.leave(window(6, 0, 21));
        assert!(windows.take_up(BlockId(6), 0).is_none());
    }

    #[test]
    fn memory_that_few_bytes_hold_counts_whole() {
        let windows = ScanReadahead::new(20);
        windows.leave(Window { memory_bytes: 15, ..window(1, 0, 1) });
        windows.leave(Window { memory_bytes: 15, ..window(2, 0, 1) });
        assert!(windows.take_up(BlockId(1), 0).is_none());
        assert!(windows.take_up(BlockId(2), 0).is_some());
    }

    #[test]
    fn small_ones_are_kept_in_bounded_number() {
        let windows = ScanReadahead::new(1 << 20);
        (0..=MOST_WINDOWS as u64).for_each(|patch| windows.leave(window(patch, 0, 1)));
        assert!(windows.take_up(BlockId(0), 0).is_none());
        assert!(windows.take_up(BlockId(1), 0).is_some());
    }
}
