//! Scan readahead: pieces that a scan has read and not used, kept for the scan's next page.
//!
//! A client requests a scan page by page, each from a key on, without state between the pages. When
//! a cursor is dropped, its piece is put here, and a cursor that starts at the end of a piece takes
//! it. So a scan reads each page of a patch once, also with small pages of keys.

use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// A piece of a patch's data section that was read ahead.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The patch.
    pub patch: BlockId,
    /// The first block in `bytes`.
    pub block: usize,
    /// The start of that block in the data section.
    pub start: u32,
    /// The bytes of the piece.
    pub bytes: Bytes,
    /// Memory that `bytes` keep in use: the whole buffer of the read.
    pub memory_bytes: usize,
    /// The first page of the data section behind the piece.
    pub next_page: u32,
    /// Pages of the scan's next read.
    pub step: u32,
}

/// The most pieces that are kept: a scan that begins searches all of them.
const MAX_PIECES: usize = 1024;

/// The scan readahead of a shard.
pub struct ScanReadahead {
    kept: RefCell<Kept>,
    limit_bytes: usize,
}

/// Pieces, the latest last, and their memory.
#[derive(Default)]
struct Kept {
    pieces: VecDeque<Piece>,
    memory_bytes: usize,
}

impl ScanReadahead {
    /// Readahead of at most `limit_bytes` of memory.
    pub fn new(limit_bytes: usize) -> ScanReadahead {
        ScanReadahead { kept: RefCell::default(), limit_bytes }
    }

    /// Memory of all pieces.
    pub fn memory_bytes(&self) -> usize {
        self.kept.borrow().memory_bytes
    }

    /// Adds a piece and evicts the oldest ones.
    pub fn put(&self, piece: Piece) {
        let mut kept = self.kept.borrow_mut();
        kept.memory_bytes += piece.memory_bytes;
        kept.pieces.push_back(piece);
        while kept.memory_bytes > self.limit_bytes || kept.pieces.len() > MAX_PIECES {
            let Some(oldest) = kept.pieces.pop_front() else { break };
            kept.memory_bytes -= oldest.memory_bytes;
        }
    }

    /// Removes and returns the piece of a patch that contains or ends at byte `start` of its data
    /// section.
    pub fn take(&self, patch: BlockId, start: u32) -> Option<Piece> {
        let fits = |piece: &Piece| {
            let end = piece.start + piece.bytes.len() as u32;
            let here = piece.patch == patch || planted::bug(Bug::WindowOfAnotherPatch);
            here && (piece.start..=end).contains(&start)
        };
        let mut kept = self.kept.borrow_mut();
        let place = kept.pieces.iter().rposition(fits)?;
        let piece = kept.pieces.remove(place)?;
        kept.memory_bytes -= piece.memory_bytes;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(patch: u64, start: u32, len: usize) -> Piece {
        let bytes = Bytes::from(vec![0; len]);
        let patch = BlockId(patch);
        Piece { patch, block: 0, start, bytes, memory_bytes: len, next_page: 0, step: 1 }
    }

    #[test]
    fn a_piece_is_taken_once_and_only_where_it_fits() {
        let readahead = ScanReadahead::new(1000);
        readahead.put(piece(1, 100, 50));
        assert!(readahead.take(BlockId(2), 100).is_none());
        assert!(readahead.take(BlockId(1), 99).is_none());
        assert!(readahead.take(BlockId(1), 151).is_none());
        assert!(readahead.take(BlockId(1), 150).is_some());
        assert!(readahead.take(BlockId(1), 150).is_none());
    }

    #[test]
    fn the_oldest_pieces_are_evicted_to_bound_memory() {
        let readahead = ScanReadahead::new(20);
        (1..=3).for_each(|patch| readahead.put(piece(patch, 0, 10)));
        assert!(readahead.take(BlockId(1), 0).is_none());
        assert!(readahead.take(BlockId(3), 0).is_some());
        // A taken piece uses no memory here; a large piece evicts several.
        readahead.put(piece(4, 0, 10));
        readahead.put(piece(5, 0, 20));
        assert!(readahead.take(BlockId(2), 0).is_none());
        assert!(readahead.take(BlockId(4), 0).is_none());
        assert!(readahead.take(BlockId(5), 0).is_some());
        readahead.put(piece(6, 0, 21));
        assert!(readahead.take(BlockId(6), 0).is_none());
    }

    #[test]
    fn a_small_piece_counts_the_whole_buffer_that_it_keeps() {
        let readahead = ScanReadahead::new(20);
        readahead.put(Piece { memory_bytes: 15, ..piece(1, 0, 1) });
        readahead.put(Piece { memory_bytes: 15, ..piece(2, 0, 1) });
        assert!(readahead.take(BlockId(1), 0).is_none());
        assert!(readahead.take(BlockId(2), 0).is_some());
    }

    #[test]
    fn the_number_of_small_pieces_is_bounded() {
        let readahead = ScanReadahead::new(1 << 20);
        (0..=MAX_PIECES as u64).for_each(|patch| readahead.put(piece(patch, 0, 1)));
        assert!(readahead.take(BlockId(0), 0).is_none());
        assert!(readahead.take(BlockId(1), 0).is_some());
    }
}
