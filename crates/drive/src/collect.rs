//! The commands of garbage collection: they move the valid pages of a block to their write
//! frontier, then erase the block.
//!
//! Pages move in chunks: the map changes for a chunk at once, then the die moves the pages.
//! Copyback of single pages takes one command of the die for a chunk; reads cut it short, and the
//! host's writes wait for it.

use crate::dies::Dies;
use crate::mapping::Mapping;
use crate::space::{Collected, Space};
use softflash_mapping::NONE;
use softflash_nand::timeline::WorkKinds;
use softflash_nand::{Work, WorkKind};

/// Starts the next step of the collection of a write frontier: moves the next row, or erases.
/// Returns the kinds of work that the die still accepts.
#[inline(never)]
pub(crate) fn step<M: Mapping>(
    space: &mut Space<M>,
    dies: &mut Dies,
    die: u32,
    frontier: u32,
    accepts: WorkKinds,
) -> Option<WorkKinds> {
    if !accepts.has(WorkKind::Move) {
        return None;
    }
    if let Collected::Erase(victim) = space.next_collected(frontier) {
        return Some(erase(space, dies, die, victim));
    }
    Some(if dies.copies_back() {
        let to_program = space.frontier(frontier).to_program(space.shape());
        dies.copy_back(die, frontier, to_program)
    } else {
        let block = space.frontier(frontier).open_block();
        dies.begin_on(die, block, program_moved(space, frontier))
    })
}

/// Starts the erase of a block. Returns the kinds of work that the die still accepts.
#[inline(always)]
pub(crate) fn erase<M: Mapping>(
    space: &mut Space<M>,
    dies: &mut Dies,
    die: u32,
    block: u32,
) -> WorkKinds {
    space.count_erase();
    let work = Work { tag: block, page: 0, pages: 1, kind: WorkKind::Erase };
    dies.begin_on(die, block, work)
}

/// The program of the next row of pages that have moved in the map.
#[inline]
fn program_moved<M: Mapping>(space: &mut Space<M>, frontier: u32) -> Work {
    let row = space.take_moved_row(frontier);
    let from_slc = if row.read.from_slc { Work::FROM_SLC } else { 0 };
    match row.data {
        0 => {
            let pages = space.shape().flash_page_of(row.parity) as u8;
            Work { tag: NONE, page: row.row, pages, kind: WorkKind::Program }
        }
        _ if space.shape().is_packed() => {
            let tag = from_slc | Work::packed(row.read.pages, row.read.flash_pages);
            let pages = space.shape().flash_page_of(row.data + row.parity) as u8;
            Work { tag, page: row.row, pages, kind: WorkKind::Pack }
        }
        data => Work { tag: from_slc, page: row.row, pages: data as u8, kind: WorkKind::Move },
    }
}

/// A command of collection has completed.
#[inline(never)]
pub(crate) fn completed<M: Mapping>(space: &mut Space<M>, dies: &mut Dies, die: u32, work: Work) {
    match work.kind {
        WorkKind::Erase => {
            dies.end_oldest(die);
            match M::BANDED {
                true => space.erased_in_band(work.tag),
                false => space.erased(work.tag),
            }
        }
        WorkKind::CopyBack => {
            dies.end_copy_back(die);
            space.moved(work.tag, work.pages.into());
        }
        _ => dies.end_oldest(die),
    }
}
