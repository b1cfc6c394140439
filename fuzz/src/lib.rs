//! Shared code of all fuzzers: an allocator that aborts the program at an excessive allocation.
//!
//! Decoders may allocate a small multiple of their input, or a size that a verified checksum
//! protects. Fuzzers give kilobytes, and the largest object of any format has a few megabytes.

use std::alloc::{GlobalAlloc, Layout, System};

/// Maximum bytes of one allocation.
const MOST_BYTES: usize = 64 << 20;

struct Bounded;

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        check(bytes);
        unsafe { System.realloc(old, layout, bytes) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

fn check(bytes: usize) {
    if bytes > MOST_BYTES {
        // Not a panic: unwinding out of an allocator is not allowed.
        eprintln!("one allocation of {bytes} bytes");
        std::process::abort();
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;
