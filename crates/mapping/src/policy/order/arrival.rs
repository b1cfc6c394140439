//! In the order of arrival: a read goes first if it is older than every write that waits.

/// Whether a read is older than all writes; numbers of arrivals wrap.
#[inline(always)]
pub fn read_is_first(read: u32, mut writes: impl Iterator<Item = u32>) -> bool {
    !writes.any(|write| (write.wrapping_sub(read) as i32) < 0)
}
