//! The allocator: mimalloc, except for the largest allocations, which are mapped and unmapped
//! directly.
//!
//! Requests allocate and free values of many MiB. An allocator that caches this memory would make
//! the process larger than `--memory` allows.

#![expect(unsafe_code, reason = "an allocator returns raw memory")]

use libmimalloc_sys::{_mi_option_last, mi_collect, mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::ptr::null_mut;
use std::time::Duration;

/// Allocations of at least this size are mapped individually.
const LARGE_BYTES: usize = 4 << 20;

/// Alignment of the kernel's mappings.
const MAP_ALIGNMENT: usize = 4096;

/// Delay in milliseconds after which mimalloc returns free memory. With its default of a second,
/// values of 1 to 4 MiB leave tens of MiB of unused memory; a tenth of that delay has no measurable
/// cost.
const PURGE_DELAY_MS: c_long = 100;

/// Time between two looks for free memory of an idle process.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// `mi_option_purge_delay`, which the bindings do not export; the number is that of mimalloc 3.
const PURGE_DELAY: mi_option_t = 15;
const _: () = assert!(_mi_option_last == 47, "check the number of mi_option_purge_delay");

/// See the module.
pub struct Allocator;

/// Sets mimalloc's options at the start; `MIMALLOC_PURGE_DELAY` in the environment has priority.
pub fn set_up() {
    // SAFETY: called before there are other threads, with a valid option.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
}

/// Has free memory returned to the system although nobody allocates: mimalloc looks for it only
/// when it is called, so that an idle server would keep what its last clients have left.
///
/// # Errors
/// The thread cannot be started.
#[expect(clippy::disallowed_methods, reason = "the allocator has no runtime to sleep on")]
pub fn return_free_memory() -> std::io::Result<()> {
    let look = || loop {
        std::thread::sleep(LOOK_AGAIN);
        // SAFETY: affects free memory only.
        unsafe { mi_collect(false) };
    };
    std::thread::Builder::new().name("free-memory".to_owned()).spawn(look).map(drop)
}

/// Returns this thread's free memory, so that this does not happen during a measurement.
pub fn tidy_up() {
    // SAFETY: affects free memory only.
    unsafe { mi_collect(true) };
}

/// Whether an allocation is mapped. Depends on the layout only, because that is all that is known
/// when it is freed.
fn is_large(layout: &Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= MAP_ALIGNMENT
}

fn map(size: usize) -> *mut u8 {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address chosen by the kernel overlaps nothing.
    match unsafe { mmap_anonymous(null_mut(), size, protection, flags) } {
        Ok(start) => {
            // SAFETY: the mapping is ours. If the advice is ignored, nothing is wrong.
            let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
            start.cast()
        }
        Err(_) => null_mut(),
    }
}

// SAFETY: every allocation is freed by the allocator that made it: `is_large` gives the same answer
// for the same layout. Both follow the contract of `GlobalAlloc`: MiMalloc claims so, and mappings
// are page-aligned, zeroed and as long as requested.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_large(&layout) {
            true => map(layout.size()),
            // SAFETY: the caller's guarantees are passed on.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_large(&layout) {
            true => map(layout.size()),
            // SAFETY: the caller's guarantees are passed on.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match is_large(&layout) {
            // SAFETY: the allocation is a mapping of this length, and the caller does not use it
            // any more.
            true => match unsafe { munmap(piece.cast(), layout.size()) } {
                Ok(()) => {}
                // The kernel allows no more mappings, so this one cannot be split; it stays mapped.
                Err(error) => debug_assert_eq!(error, rustix::io::Errno::NOMEM),
            },
            // SAFETY: the caller's guarantees are passed on.
            false => unsafe { MiMalloc.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size is valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(&layout), is_large(&wanted)) {
            // SAFETY: the caller's guarantees are passed on.
            (false, false) => unsafe { MiMalloc.realloc(piece, layout, size) },
            (true, true) => {
                // SAFETY: the allocation is a mapping of this length, and only the caller uses it.
                let moved =
                    unsafe { mremap(piece.cast(), layout.size(), size, MremapFlags::MAYMOVE) };
                moved.map_or(null_mut(), |start| start.cast())
            }
            _ => {
                // SAFETY: the layout is valid, as above.
                let new = unsafe { self.alloc(wanted) };
                if !new.is_null() {
                    // SAFETY: both are at least this long and do not overlap; the old allocation is
                    // freed once, by its allocator.
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
