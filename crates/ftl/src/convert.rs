//! Conversions between integer types that lose no bits.

const _: () = assert!(usize::BITS >= u32::BITS, "an index has at least 32 bits");

/// A 32-bit number as an index.
pub(crate) const fn to_usize(number: u32) -> usize {
    number as usize
}

/// A number that the geometry of a unit limits to 8 bits: a die, a plane, or a number of planes.
pub(crate) fn to_u8(number: u32) -> u8 {
    match u8::try_from(number) {
        Ok(number) => number,
        Err(_) => unreachable!("{number} dies or planes"),
    }
}
