//! The allocator: mimalloc, but for the largest pieces, which come from the kernel and go back to it.
//!
//! Values of many MiB come and go with requests. An allocator that keeps their memory for later makes
//! the process larger than what `--memory` allows by what it keeps.

#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use libmimalloc_sys::{_mi_option_last, mi_collect, mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::ptr::null_mut;

/// Pieces from this size on are mapped each by itself.
const LARGE_BYTES: usize = 4 << 20;

/// The kernel's mappings begin at multiples of this.
const MAP_ALIGNMENT: usize = 4096;

/// After this long mimalloc gives free memory back, in milliseconds. At its own second, values of 1 to 4 MiB leave it tens
/// of MiB more than are in use; a tenth of that costs them nothing that could be measured.
const PURGE_DELAY_MS: c_long = 100;

/// `mi_option_purge_delay`, which the bindings do not name, of mimalloc 3 as they know it.
const PURGE_DELAY: mi_option_t = 15;
const _: () = assert!(_mi_option_last == 47, "look the number of mi_option_purge_delay up again");

/// See the module.
pub struct Allocator;

/// What mimalloc is told at the start; `MIMALLOC_PURGE_DELAY` in the environment counts before it.
pub fn set_up() {
    // SAFETY: called before there are other threads, with an option that is there.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
}

/// Gives back what this thread has freed, so that it is not done while something is measured.
pub fn tidy_up() {
    // SAFETY: it touches only what is free.
    unsafe { mi_collect(true) };
}

/// Whether a piece is mapped. It must be decided from the layout alone, since that is all that comes
/// back with a piece.
fn is_large(layout: &Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= MAP_ALIGNMENT
}

fn map(size: usize) -> *mut u8 {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping of the kernel's choice overlaps nothing.
    match unsafe { mmap_anonymous(null_mut(), size, protection, flags) } {
        Ok(start) => {
            // SAFETY: the mapping is ours. That the advice is not taken does no harm.
            let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
            start.cast()
        }
        Err(_) => null_mut(),
    }
}

// SAFETY: every piece is given back to whoever handed it out: `is_large` answers the same for the layout that
// a piece was allocated with, here and there. Both sources keep to the contract of `GlobalAlloc`:
// MiMalloc says so, and mappings are page-aligned, zeroed and as long as asked for.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_large(&layout) {
            true => map(layout.size()),
            // SAFETY: the caller's promises are passed on.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_large(&layout) {
            true => map(layout.size()),
            // SAFETY: the caller's promises are passed on.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match is_large(&layout) {
            // SAFETY: the piece is a mapping of this length, and the caller has no use for it any more.
            true => match unsafe { munmap(piece.cast(), layout.size()) } {
                Ok(()) => {}
                // Too many mappings to split one; it stays.
                Err(error) => debug_assert_eq!(error, rustix::io::Errno::NOMEM),
            },
            // SAFETY: the caller's promises are passed on.
            false => unsafe { MiMalloc.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(&layout), is_large(&wanted)) {
            // SAFETY: the caller's promises are passed on.
            (false, false) => unsafe { MiMalloc.realloc(piece, layout, size) },
            (true, true) => {
                // SAFETY: the piece is a mapping of this length, and only the caller uses it.
                let moved =
                    unsafe { mremap(piece.cast(), layout.size(), size, MremapFlags::MAYMOVE) };
                moved.map_or(null_mut(), |start| start.cast())
            }
            _ => {
                // SAFETY: the layout is valid, as above.
                let new = unsafe { self.alloc(wanted) };
                if !new.is_null() {
                    // SAFETY: both are at least this long and do not overlap; the old piece is given back
                    // once, to its source.
                    unsafe {
                        new.copy_from_nonoverlapping(piece, layout.size().min(size));
                        self.dealloc(piece, layout);
                    }
                }
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn pieces_keep_their_contents_across_the_border() {
        let mut bytes: Vec<u8> = Vec::new();
        for size in [1 << 10, 3 << 20, 5 << 20, 70 << 20] {
            let from = bytes.len();
            bytes.extend((from..size).map(|index| (index % 251) as u8));
            bytes.shrink_to_fit();
        }
        for size in [30 << 20, 4 << 20, (4 << 20) - 1, 100] {
            bytes.truncate(size);
            bytes.shrink_to_fit();
            assert!(bytes.iter().enumerate().all(|(index, byte)| *byte == (index % 251) as u8));
        }
        assert!(vec![0_u8; 20 << 20].iter().all(|byte| *byte == 0));
    }
}
