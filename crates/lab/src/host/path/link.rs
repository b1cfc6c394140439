//! The link: each direction carries one transfer at a time, first come, first served.

use super::HostPathConfig;
use softflash_base::Time;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the device.
    ToHost = 0,
    /// To the device.
    ToDevice = 1,
}

/// When each direction will be free.
#[derive(Debug)]
pub(super) struct Link {
    bytes_per_second: [u64; 2],
    half_duplex: bool,
    free_at: [Time; 2],
}

impl Link {
    pub(super) fn new(config: &HostPathConfig) -> Link {
        Link {
            bytes_per_second: [config.read_bytes_per_second, config.write_bytes_per_second],
            half_duplex: config.half_duplex,
            free_at: [Time::ZERO; 2],
        }
    }

    /// Sends `bytes`, which are ready at `ready`, after the earlier transfers; returns their
    /// arrival and the duration of the transfer.
    pub(super) fn send(&mut self, direction: Direction, ready: Time, bytes: u64) -> (Time, u64) {
        let rate = self.bytes_per_second[direction as usize];
        let takes_ns = match rate {
            0 => 0,
            rate => (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)) as u64,
        };
        let medium = if self.half_duplex { 0 } else { direction as usize };
        let arrives = ready.max(self.free_at[medium]) + takes_ns;
        self.free_at[medium] = arrives;
        (arrives, takes_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{ToDevice, ToHost};
    use super::*;

    fn link(half_duplex: bool) -> Link {
        Link::new(&HostPathConfig {
            read_bytes_per_second: 1_000_000_000,
            write_bytes_per_second: 500_000_000,
            half_duplex,
            ..HostPathConfig::default()
        })
    }

    #[test]
    fn each_direction_is_a_queue_of_its_own_unless_they_share_the_medium() {
        let mut full = link(false);
        assert_eq!(full.send(ToHost, Time(100), 50), (Time(150), 50));
        assert_eq!(full.send(ToHost, Time(100), 50), (Time(200), 50));
        assert_eq!(full.send(ToDevice, Time(100), 50), (Time(200), 100));
        assert_eq!(full.send(ToHost, Time(900), 50), (Time(950), 50));
        let mut half = link(true);
        assert_eq!(half.send(ToHost, Time(100), 50), (Time(150), 50));
        assert_eq!(half.send(ToDevice, Time(100), 50), (Time(250), 100));
    }

    #[test]
    fn no_limit_takes_no_time() {
        let mut link = Link::new(&HostPathConfig::default());
        assert_eq!(link.send(ToHost, Time(7), 1 << 30), (Time(7), 0));
    }
}
