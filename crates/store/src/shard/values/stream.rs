//! Streams of values: values of a stream share blocks. Values that die at about the same time
//! belong together, so that a block is nearly empty when it is collected.
//!
//! Fresh values are separated by the lifetime of the version that they replace, collected values by
//! their age (SepBIT, FAST '22), and values with expiry by their time to live.

use softflash_ftl::LifetimeClass;
use softflash_policy::lifetime::{AGE_FACTOR, class_of};

/// A stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueStream {
    /// Written by clients; the version that they replace lived short.
    Short,
    /// Written by clients; the version that they replace lived long, or there was none.
    Long,
    /// Written by clients, with expiry. Of each two neighbouring numbers the values of the second
    /// live at least `TTL_FACTOR` times as long.
    Expiring(u8),
    /// Moved by the collector, the oldest values last.
    Moved(u8),
}

impl ValueStream {
    /// The lifetime of its values.
    pub fn lifetime(self) -> LifetimeClass {
        match self {
            ValueStream::Short => LifetimeClass::SHORT,
            ValueStream::Long => LifetimeClass::MEDIUM,
            ValueStream::Expiring(number) => LifetimeClass::SHORT.longer_by(2 * number),
            ValueStream::Moved(age) => LifetimeClass::LONG.longer_by(age),
        }
    }
}

/// The ratio of the times to live of neighbouring streams.
const TTL_FACTOR: u64 = 16;
/// The longest time to live in the first stream of values with expiry, in milliseconds.
const FIRST_TTL_MS: u64 = 10_000;

/// The number of streams; small devices have no room for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamCounts {
    /// Whether fresh values are grouped by the lifetime of the versions that they replace.
    by_lifetime: bool,
    expiring: u8,
    moved: u8,
}

impl StreamCounts {
    /// The streams of a shard with this number of blocks: open blocks are a small part of them.
    /// With 128 blocks, 70 % full under Zipf 0.99, a simulation writes 1.65 times with all streams
    /// and 1.84 times with two.
    pub fn on(blocks: u32) -> StreamCounts {
        match blocks {
            0..64 => StreamCounts { by_lifetime: false, expiring: 0, moved: 1 },
            64..128 => StreamCounts { by_lifetime: false, expiring: 1, moved: 1 },
            _ => StreamCounts { by_lifetime: true, expiring: 2, moved: 3 },
        }
    }

    /// The number of streams of moved values.
    pub fn moved_streams(self) -> u32 {
        self.moved.into()
    }

    /// The stream of a fresh value. `ttl_ms` is its time to live; `replaced_age` the age of the
    /// version that it replaces, and `short` the lifetime below which a version is short-lived, in
    /// bytes of values written meanwhile.
    pub fn fresh(self, ttl_ms: Option<u64>, replaced_age: Option<u64>, short: u64) -> ValueStream {
        if let Some(ttl_ms) = ttl_ms.filter(|_| self.expiring > 0) {
            let stream = class_of(ttl_ms, FIRST_TTL_MS, TTL_FACTOR, self.expiring);
            return ValueStream::Expiring(stream);
        }
        match replaced_age {
            Some(age) if self.by_lifetime && age < short => ValueStream::Short,
            _ => ValueStream::Long,
        }
    }

    /// The stream of a collected value of this age, in the same unit.
    pub fn moved(self, age: u64, short: u64) -> ValueStream {
        let first = short.saturating_mul(AGE_FACTOR).max(1);
        ValueStream::Moved(class_of(age, first, AGE_FACTOR, self.moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_devices_have_two_streams_and_large_ones_separate_by_lifetime_and_time_to_live() {
        let small = StreamCounts::on(32);
        assert_eq!(small.fresh(Some(5), Some(1), 100), ValueStream::Long);
        assert_eq!(small.moved(u64::MAX, 1), ValueStream::Moved(0));
        let large = StreamCounts::on(1024);
        assert_eq!(large.fresh(None, Some(99), 100), ValueStream::Short);
        assert_eq!(large.fresh(None, Some(100), 100), ValueStream::Long);
        assert_eq!(large.fresh(None, None, 100), ValueStream::Long);
        assert_eq!(large.fresh(Some(2_000), None, 0), ValueStream::Expiring(0));
        assert_eq!(large.fresh(Some(3_600_000), None, 0), ValueStream::Expiring(1));
        assert_eq!(large.moved(399, 100), ValueStream::Moved(0));
        assert_eq!(large.moved(400, 100), ValueStream::Moved(1));
        assert_eq!(large.moved(1_600, 100), ValueStream::Moved(2));
    }
}
