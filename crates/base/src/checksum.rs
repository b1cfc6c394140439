//! The checksum of everything on flash: XXH3-64, bound to the address and generation of the data,
//! so that intact bytes at a wrong address or of an older generation fail as well.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// 64-bit checksum of `bytes`, bound to `identity` (see [`identity`]).
pub fn checksum64(identity: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, identity)
}

/// Folds the parts of an identity (device, address, generation, offset ...) into one seed.
pub fn identity(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(0x9e37_79b9_7f4a_7c15, |seed, part| xxh3_64_with_seed(&part.to_le_bytes(), seed))
}

/// A hash for placement and filters, not bound to an identity.
pub fn hash64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}
