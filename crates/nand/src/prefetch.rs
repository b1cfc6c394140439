//! Memory prefetch. The state of a randomly read block is rarely in the processor's cache. If it is
//! prefetched at the submission of a read, it is in the cache at the end of the sense, many events
//! later.

#![expect(unsafe_code, reason = "the prefetch instruction has no safe form")]

/// Prefetches the memory of `value` into the cache. Does nothing on other targets than x86-64.
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
