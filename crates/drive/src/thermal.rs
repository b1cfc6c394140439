//! The heat of a device, as a leaky bucket of bytes.

use crate::spec::ThermalSpec;

const SECOND_NS: u128 = 1_000_000_000;

/// The heat of a device.
#[derive(Debug)]
pub(crate) struct Heat {
    spec: ThermalSpec,
    /// When the device is cool if nothing more crosses its link, in nanoseconds.
    cool_at: u64,
    /// The time in which a device at its limit cools.
    most_ns: u64,
}

impl Heat {
    /// A cool device; `None` if it has no limit.
    pub(crate) fn new(spec: Option<ThermalSpec>) -> Option<Heat> {
        let spec = spec.filter(|spec| spec.sustained_bytes_per_second > 0)?;
        let mut heat = Heat { spec, cool_at: 0, most_ns: 0 };
        heat.most_ns = heat.cooling_ns(spec.burst_bytes);
        Some(heat)
    }

    /// The time in which the heat of so many bytes leaves.
    fn cooling_ns(&self, bytes: u64) -> u64 {
        let rate = u128::from(self.spec.sustained_bytes_per_second);
        let ns = (u128::from(bytes) * SECOND_NS).div_ceil(rate);
        u64::try_from(ns).unwrap_or(u64::MAX / 2)
    }

    /// So many bytes are to cross the link from this time on; returns the end of the time for which
    /// the device has to slow them down to.
    pub(crate) fn add(&mut self, from: u64, bytes: u64) -> u64 {
        self.cool_at = self.cool_at.max(from).saturating_add(self.cooling_ns(bytes));
        self.cool_at.saturating_sub(self.most_ns).max(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_is_sustained() {
        let spec = ThermalSpec { sustained_bytes_per_second: 1_000_000_000, burst_bytes: 10_000 };
        let mut heat = Heat::new(Some(spec)).unwrap();
        // Ten transfers at once are the burst; each further one waits until one has cooled.
        let ends: Vec<u64> = (0..12).map(|_| heat.add(0, 1000)).collect();
        assert_eq!(ends[..10], [0; 10]);
        assert_eq!(ends[10..], [1000, 2000]);
        // After a pause it is cool again.
        assert_eq!(heat.add(1_000_000, 10_000), 1_000_000);
        assert_eq!(heat.add(1_000_000, 500), 1_000_500);
    }

    #[test]
    fn without_a_limit_there_is_no_heat() {
        assert!(Heat::new(None).is_none());
    }
}
