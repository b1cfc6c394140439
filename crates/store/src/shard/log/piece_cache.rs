//! A cache of log pages: recovery reads the last segments several times.

use super::piece::Piece;
use softflash_blocks::BlockId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A range of pages of a block: the first page, and the count.
pub(super) type Pages = (BlockId, u32, u32);

/// The first pieces that were read, up to a capacity. Recovery reads the end of the log first, and
/// reads it again.
#[derive(Default)]
pub(super) struct PieceCache {
    pieces: RefCell<BTreeMap<Pages, Rc<Piece>>>,
    capacity_pages: u32,
}

impl PieceCache {
    /// A cache with a capacity of `capacity_pages`.
    pub(super) fn of_pages(capacity_pages: u32) -> PieceCache {
        PieceCache { pieces: RefCell::default(), capacity_pages }
    }

    pub(super) fn get(&self, pages: Pages) -> Option<Rc<Piece>> {
        self.pieces.borrow().get(&pages).cloned()
    }

    pub(super) fn insert(&self, pages: Pages, piece: &Rc<Piece>) {
        let mut pieces = self.pieces.borrow_mut();
        let cached: u32 = pieces.keys().map(|(.., count)| count).sum();
        if cached + pages.2 <= self.capacity_pages {
            pieces.insert(pages, Rc::clone(piece));
        }
    }

    /// Drops all pages, so that the next read goes to the flash.
    pub(super) fn clear(&self) {
        self.pieces.borrow_mut().clear();
    }
}
