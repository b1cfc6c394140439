//! Busy times and activities of a model device, observed while its queue pairs are in use.

use super::device::ModelDevice;
use super::group::Group;
use super::queue_pair::lock;
use softflash_base::Time;
use softflash_nand::{ChannelIndex, DieIndex, Recorded};
use std::sync::PoisonError;

/// Busy times of the parts of a device since their queue pairs were opened, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyTimes {
    /// Each channel's bus.
    pub channels_ns: Vec<u64>,
    /// Each die's cell array.
    pub dies_ns: Vec<u64>,
}

impl ModelDevice {
    /// Memory of the arrays of open queue pairs, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.each_group(|group| bytes += group.array.memory_bytes());
        bytes
    }

    /// Busy times so far; 0 for channels and dies without an open queue pair. Those of a unit that
    /// one queue pair gave up and another one opened are the sums of both.
    pub fn busy_times(&self) -> BusyTimes {
        let whole = &self.config().array.geometry;
        let mut busy = BusyTimes {
            channels_ns: vec![0; usize::from(whole.channels)],
            dies_ns: vec![0; whole.dies() as usize],
        };
        self.each_group(|group| {
            let (array, channels) = (&group.array, group.channels());
            for (channel, in_device) in (0..).zip(channels.in_device()) {
                busy.channels_ns[*in_device as usize] +=
                    array.channel_busy_ns(ChannelIndex(channel));
            }
            for die in (0..array.geometry().dies()).map(DieIndex) {
                busy.dies_ns[channels.die(die).index()] += array.die_busy_ns(die);
            }
        });
        busy
    }

    /// Records the activities of open queue pairs that begin from `from` on and before `until`, the
    /// first `most` of each queue pair.
    pub fn record(&self, from: Time, until: Time, most: usize) {
        self.each_group(|group| group.array.record(from, until, most));
    }

    /// The recorded activities, in the order of their begins, with dies numbered through the
    /// device.
    pub fn recorded(&self) -> Vec<Recorded> {
        let mut all = Vec::new();
        self.each_group(|group| {
            let channels = group.channels();
            all.extend(
                group
                    .array
                    .recorded()
                    .iter()
                    .map(|recorded| Recorded { die: channels.die(recorded.die), ..*recorded }),
            );
        });
        all.sort_by_key(|recorded| (recorded.begin, recorded.die));
        all
    }

    /// Calls `look` with the array of every open queue pair.
    pub(super) fn each_group(&self, mut look: impl FnMut(&mut Group)) {
        let groups = self.shared().groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().for_each(|group| look(&mut lock(group)));
    }
}
