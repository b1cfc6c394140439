//! A hint to the processor. The state of a randomly read block is rarely in a cache; asked for when
//! a read is submitted, it is there when the sense ends, many events later.

#![expect(unsafe_code, reason = "the prefetch instruction has no safe form")]

/// Begins to bring the memory behind `value` into the cache. Does nothing where there is no such
/// instruction.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect on memory or registers, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = value;
    }
}
