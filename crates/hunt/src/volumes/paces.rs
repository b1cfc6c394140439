//! Whether the writes of volumes keep to their limits of rate.

use super::reference::Name;
use softflash_base::Time;
use softflash_volume::VolumeSettings;
use std::collections::BTreeMap;

/// The time whose tokens a rest may save, as the documents promise.
const BURST_SECONDS: f64 = 0.1;

/// The writes of each volume since its limits were set, or since the mount.
pub struct Paces {
    mounted: Time,
    of: BTreeMap<Name, Pace>,
}

struct Pace {
    since: Time,
    requests: u64,
    bytes: u64,
    /// The bytes of the largest write.
    largest: u64,
}

impl Paces {
    /// Nothing was written before the mount.
    pub fn from(mounted: Time) -> Paces {
        Paces { mounted, of: BTreeMap::new() }
    }

    /// The limits of a volume have changed: their buckets are full.
    pub fn restart(&mut self, name: &Name, now: Time) {
        self.of.insert(name.clone(), Pace { since: now, requests: 0, bytes: 0, largest: 0 });
    }

    /// A volume has another name, and its limits stay.
    pub fn renamed(&mut self, from: &Name, to: Name) {
        if let Some(pace) = self.of.remove(from) {
            self.of.insert(to, pace);
        }
    }

    /// A write of a volume has ended. One request, of those that were made at once any of them, may
    /// exceed what the time allows.
    pub fn wrote(
        &mut self,
        name: &Name,
        bytes: u64,
        now: Time,
        settings: &VolumeSettings,
    ) -> Result<(), String> {
        let start = Pace { since: self.mounted, requests: 0, bytes: 0, largest: 0 };
        let pace = self.of.entry(name.clone()).or_insert(start);
        let seconds = now.since_ns(pace.since) as f64 / 1e9 + BURST_SECONDS;
        pace.requests += 1;
        pace.bytes += bytes;
        pace.largest = pace.largest.max(bytes);
        let limits = [
            (settings.iops.map(f64::from), pace.requests - 1),
            (
                settings.bandwidth_bytes_per_second.map(|rate| rate as f64),
                pace.bytes - pace.largest,
            ),
        ];
        for (rate, before) in limits {
            if let Some(rate) = rate.filter(|rate| before as f64 > rate * seconds + 1.0) {
                return Err(format!("{name:?}: {before} in {seconds} s, with a limit of {rate}/s"));
            }
        }
        Ok(())
    }
}
