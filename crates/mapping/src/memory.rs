//! Large tables with random lookups: in huge pages, if the system provides them, and with
//! prefetches, as lookups are known well ahead.

#![expect(unsafe_code, reason = "neither madvise nor the prefetch instruction has a safe form")]

/// Tables smaller than this gain nothing from huge pages.
const WORTH_BYTES: usize = 8 << 20;

/// The size of a huge page on most machines; only whole ones are requested.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A table of `len` copies of `value`.
pub(crate) fn table<T: Copy>(value: T, len: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(len);
    let spare = table.spare_capacity_mut();
    ask_for_huge_pages(spare.as_mut_ptr().cast(), size_of_val(spare));
    table.resize(len, value);
    table
}

/// Extends a table to `len` entries with copies of `value`. It grows by at least an eighth when it
/// must move, so that many small steps cost no more than a few large ones, and little of it is
/// unused.
pub fn grow<T: Copy>(table: &mut Vec<T>, value: T, len: usize) {
    if len > table.capacity() {
        let capacity = len.max(table.capacity() + table.capacity() / 8);
        table.reserve_exact(capacity - table.len());
        let spare = table.spare_capacity_mut();
        ask_for_huge_pages(spare.as_mut_ptr().cast(), size_of_val(spare));
    }
    table.resize(len, value);
}

fn ask_for_huge_pages(start: *mut u8, bytes: usize) {
    if bytes < WORTH_BYTES {
        return;
    }
    let skipped = start.align_offset(HUGE_PAGE_BYTES);
    let whole = bytes.saturating_sub(skipped) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    #[cfg(target_os = "linux")]
    // SAFETY: the range lies inside one allocation, and the advice changes the mapping of memory,
    // not its contents. A refusal (no huge pages) costs time only.
    let _ = unsafe {
        rustix::mm::madvise(
            start.wrapping_add(skipped).cast(),
            whole,
            rustix::mm::Advice::LinuxHugepage,
        )
    };
}

/// Prefetches the cache line of `entries[index]`. Does nothing beyond the end, or on processors
/// without such an instruction.
#[inline]
pub fn prefetch<T>(entries: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = entries.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect on memory or registers, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (entries, index);
    }
}
