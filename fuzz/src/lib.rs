//! What all fuzzers share: an allocator that ends a program which is made to ask for too much at once.
//!
//! Decoders may allocate a small multiple of what they were given, or what a verified checksum vouches for; fuzzers give
//! kilobytes, and the longest thing that any format has is a few megabytes.

use std::alloc::{GlobalAlloc, Layout, System};

/// The most bytes of one allocation.
const MOST_BYTES: usize = 64 << 20;

struct Bounded;

// SAFETY: everything is passed on to the system's allocator.
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
        // Not a panic: nobody may unwind out of an allocator.
        eprintln!("one allocation of {bytes} bytes");
        std::process::abort();
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;
