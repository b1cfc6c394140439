//! What was read of a log, kept for a while: recovery looks at the last segments several times.

use super::piece::Piece;
use softflash_blocks::BlockId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Some pages of a block: the first, and how many.
pub(super) type Pages = (BlockId, u32, u32);

/// The first pieces that were read, as many as there is room for. Those of the log's end are the first to be asked for, and those
/// that are asked for again.
#[derive(Default)]
pub(super) struct KeptPieces {
    pieces: RefCell<BTreeMap<Pages, Rc<Piece>>>,
    capacity_pages: u32,
}

impl KeptPieces {
    /// Room for so many pages.
    pub(super) fn of_pages(capacity_pages: u32) -> KeptPieces {
        KeptPieces { pieces: RefCell::default(), capacity_pages }
    }

    pub(super) fn get(&self, pages: Pages) -> Option<Rc<Piece>> {
        self.pieces.borrow().get(&pages).cloned()
    }

    pub(super) fn keep(&self, pages: Pages, piece: &Rc<Piece>) {
        let mut pieces = self.pieces.borrow_mut();
        let kept: u32 = pieces.keys().map(|(.., count)| count).sum();
        if kept + pages.2 <= self.capacity_pages {
            pieces.insert(pages, Rc::clone(piece));
        }
    }

    /// Drops everything: what is asked for next is read anew.
    pub(super) fn forget(&self) {
        self.pieces.borrow_mut().clear();
    }
}
