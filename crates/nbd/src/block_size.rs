//! Size constraints of an export.

use thiserror::Error;

/// Minimum of the maximum payload: reads without fragmentation must be possible up to this length.
pub const SMALLEST_MAX_PAYLOAD_BYTES: u32 = 1 << 16;
/// Payloads up to this length are never taken for an attack.
pub const PORTABLE_PAYLOAD_BYTES: u32 = 1 << 25;
/// Maximum of the maximum payload: a chunk with its offset must fit into a length of 32 bits.
pub const LARGEST_MAX_PAYLOAD_BYTES: u32 = 1 << 31;
const LARGEST_MINIMUM_BYTES: u32 = 1 << 16;
const SMALLEST_PREFERRED_BYTES: u32 = 1 << 9;

/// Valid size constraints. The default is that of the protocol: 1, 4096 and 32 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    minimum_bytes: u32,
    preferred_bytes: u32,
    max_payload_bytes: u32,
}

/// Size constraints that the protocol does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BlockSizeError {
    /// The minimum block size.
    #[error("the minimum block size is {0} bytes; it must be a power of two up to 65536")]
    Minimum(u32),
    /// The preferred block size.
    #[error(
        "the preferred block size is {0} bytes; it must be a power of two, at least 512 and at \
         least the minimum block size"
    )]
    Preferred(u32),
    /// The maximum payload.
    #[error(
        "the maximum payload is {0} bytes; it must be at least 65536, at least the preferred block \
         size, and at most 2 GiB"
    )]
    MaxPayload(u32),
}

impl BlockSizes {
    /// Constraints: the alignment of all requests, the alignment of fast requests, and the maximum
    /// length of a read or of the payload of a write.
    pub fn new(minimum: u32, preferred: u32, max_payload: u32) -> Result<Self, BlockSizeError> {
        if !minimum.is_power_of_two() || minimum > LARGEST_MINIMUM_BYTES {
            return Err(BlockSizeError::Minimum(minimum));
        }
        if !preferred.is_power_of_two() || preferred < minimum.max(SMALLEST_PREFERRED_BYTES) {
            return Err(BlockSizeError::Preferred(preferred));
        }
        let smallest = preferred.max(SMALLEST_MAX_PAYLOAD_BYTES);
        if max_payload < smallest || max_payload > LARGEST_MAX_PAYLOAD_BYTES {
            return Err(BlockSizeError::MaxPayload(max_payload));
        }
        Ok(BlockSizes {
            minimum_bytes: minimum,
            preferred_bytes: preferred,
            max_payload_bytes: max_payload,
        })
    }

    /// The alignment in bytes of every offset and length.
    pub fn minimum_bytes(&self) -> u32 {
        self.minimum_bytes
    }

    /// The alignment in bytes from which requests are fast.
    pub fn preferred_bytes(&self) -> u32 {
        self.preferred_bytes
    }

    /// The maximum length in bytes of a read or of the payload of a write.
    pub fn max_payload_bytes(&self) -> u32 {
        self.max_payload_bytes
    }
}

impl Default for BlockSizes {
    fn default() -> BlockSizes {
        BlockSizes {
            minimum_bytes: 1,
            preferred_bytes: 4096,
            max_payload_bytes: PORTABLE_PAYLOAD_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(BlockSizes::new(1, 4096, 1 << 25), Ok(BlockSizes::default()));
    }

    #[test]
    fn the_minimum_is_a_power_of_two_up_to_64_kib() {
        for wrong in [0, 3, 1 << 17] {
            assert_eq!(
                BlockSizes::new(wrong, 1 << 18, 1 << 20),
                Err(BlockSizeError::Minimum(wrong))
            );
        }
        assert!(BlockSizes::new(1 << 16, 1 << 16, 1 << 16).is_ok());
    }

    #[test]
    fn the_preferred_size_is_a_power_of_two_and_not_below_512_or_the_minimum() {
        for wrong in [0, 256, 1000, 4096] {
            assert_eq!(
                BlockSizes::new(8192, wrong, 1 << 20),
                Err(BlockSizeError::Preferred(wrong))
            );
        }
        assert_eq!(BlockSizes::new(1, 256, 1 << 20), Err(BlockSizeError::Preferred(256)));
        assert!(BlockSizes::new(1, 512, 1 << 20).is_ok());
    }

    #[test]
    fn the_maximum_payload_is_between_64_kib_or_the_preferred_size_and_2_gib() {
        assert_eq!(BlockSizes::new(1, 512, 65_535), Err(BlockSizeError::MaxPayload(65_535)));
        assert_eq!(BlockSizes::new(1, 1 << 20, 1 << 19), Err(BlockSizeError::MaxPayload(1 << 19)));
        assert!(BlockSizes::new(1, 512, 65_537).is_ok(), "not a power of two");
        assert!(BlockSizes::new(1, 512, 1 << 31).is_ok());
        assert_eq!(BlockSizes::new(1, 512, u32::MAX), Err(BlockSizeError::MaxPayload(u32::MAX)));
    }
}
