//! The free block with the fewest erases; of equals, the one that was erased first.
//!
//! Dynamic wear levelling, as in Gal and Toledo, *Algorithms and data structures for flash
//! memories*, ACM Computing Surveys 37(2), 2005, section 2.3. It levels the blocks whose data
//! change, and leaves those with cold data behind.

use super::view::FreeView;
use softflash_base::cast::index;

pub(super) fn choose(view: &FreeView<'_>) -> Option<usize> {
    let free = view.free.iter().enumerate();
    free.min_by_key(|&(_, &block)| view.erases[index(block)]).map(|(place, _)| place)
}
