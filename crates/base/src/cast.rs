//! Conversions between integers, for code where `as` between them is denied. A name without
//! `saturating` or `low` loses nothing.

const _: () = assert!(usize::BITS == 64, "lengths and indexes are 64 bits wide");

/// A 32-bit length or number as an index.
#[inline]
pub const fn index(value: u32) -> usize {
    value as usize
}

/// A length or an index as a 64-bit number.
#[inline]
pub const fn wide(value: usize) -> u64 {
    value as u64
}

/// A length or a count in 16 bits; the greatest value where it does not fit.
#[inline]
pub const fn saturating_u16(value: usize) -> u16 {
    if value > u16::MAX as usize { u16::MAX } else { value as u16 }
}

/// A length or a count in 32 bits; the greatest value where it does not fit.
#[inline]
pub const fn saturating_u32(value: usize) -> u32 {
    if value > u32::MAX as usize { u32::MAX } else { value as u32 }
}

/// The lowest 8 bits.
#[inline]
pub const fn low_u8(value: u64) -> u8 {
    value as u8
}

/// The lowest 16 bits.
#[inline]
pub const fn low_u16(value: u64) -> u16 {
    value as u16
}

/// The lowest 32 bits.
#[inline]
pub const fn low_u32(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_are_kept_and_others_saturate_or_lose_their_upper_bits() {
        assert_eq!((index(u32::MAX), wide(usize::MAX)), (0xffff_ffff, u64::MAX));
        assert_eq!((saturating_u16(65_535), saturating_u16(65_536)), (u16::MAX, u16::MAX));
        assert_eq!((saturating_u16(7), saturating_u32(7)), (7, 7));
        assert_eq!(saturating_u32(1 << 32), u32::MAX);
        let value = 0x0123_4567_89ab_cdef;
        assert_eq!((low_u8(value), low_u16(value), low_u32(value)), (0xef, 0xcdef, 0x89ab_cdef));
    }
}
