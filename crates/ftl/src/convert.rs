//! Conversions that the geometry of a unit makes lossless.

/// A number that the geometry of a unit limits to 8 bits: a die, a plane, or a number of planes.
pub(crate) fn to_u8(number: u32) -> u8 {
    match u8::try_from(number) {
        Ok(number) => number,
        Err(_) => unreachable!("{number} dies or planes"),
    }
}
