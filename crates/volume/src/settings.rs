//! The settings of a volume: quota, limits, weight, and hints about its data.

mod text;

use softflash_ftl::LifetimeClass;
use std::fmt;
use std::ops::RangeInclusive;

/// Quotas in bytes.
pub(crate) const QUOTAS: RangeInclusive<u64> = 4096..=16 << 40;
/// Limits in requests a second.
pub(crate) const IOPS: RangeInclusive<u32> = 1..=10_000_000;
/// Limits in bytes a second.
pub(crate) const BANDWIDTHS: RangeInclusive<u64> = 4096..=1 << 40;
/// Weights.
pub(crate) const WEIGHTS: RangeInclusive<u16> = 1..=1000;
/// Numbers of streams.
pub(crate) const STREAMS: RangeInclusive<u8> = 0..=7;

/// The settings of a volume. The default has no quota and no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeSettings {
    /// The most bytes that the volume and its snapshots may hold.
    pub quota_bytes: Option<u64>,
    /// The most requests a second.
    pub iops: Option<u32>,
    /// The most bytes a second, read and written.
    pub bandwidth_bytes_per_second: Option<u64>,
    /// The share of the volume where several compete: that of 200 gets twice that of 100.
    pub weight: u16,
    /// What is known about the lifetime of its data.
    pub lifetime: Lifetime,
}

impl Default for VolumeSettings {
    fn default() -> VolumeSettings {
        VolumeSettings {
            quota_bytes: None,
            iops: None,
            bandwidth_bytes_per_second: None,
            weight: 100,
            lifetime: Lifetime::default(),
        }
    }
}

/// Hints about the lifetime of data. Data with equal hints share superblocks; others do not, as far
/// as the domain has write frontiers for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lifetime {
    /// How soon data are overwritten or discarded.
    pub temperature: Temperature,
    /// A number that keeps data of equal temperature apart.
    pub stream: u8,
}

/// How soon data are overwritten or discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Temperature {
    /// Soon.
    Hot,
    /// Not known.
    #[default]
    Warm,
    /// Late or never.
    Cold,
}

impl Temperature {
    /// The class of the device's hints.
    pub(crate) fn lifetime(self) -> LifetimeClass {
        match self {
            Temperature::Hot => LifetimeClass::SHORT,
            Temperature::Warm => LifetimeClass::UNKNOWN,
            Temperature::Cold => LifetimeClass::LONG,
        }
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Temperature::Hot => "hot",
            Temperature::Warm => "warm",
            Temperature::Cold => "cold",
        })
    }
}

/// A new value of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// [`VolumeSettings::quota_bytes`].
    Quota(Option<u64>),
    /// [`VolumeSettings::iops`].
    Iops(Option<u32>),
    /// [`VolumeSettings::bandwidth_bytes_per_second`].
    Bandwidth(Option<u64>),
    /// [`VolumeSettings::weight`].
    Weight(u16),
    /// [`Lifetime::temperature`].
    Temperature(Temperature),
    /// [`Lifetime::stream`].
    Stream(u8),
}

impl VolumeSettings {
    /// All of them, as they are changed.
    pub fn all(&self) -> [Setting; 6] {
        [
            Setting::Quota(self.quota_bytes),
            Setting::Iops(self.iops),
            Setting::Bandwidth(self.bandwidth_bytes_per_second),
            Setting::Weight(self.weight),
            Setting::Temperature(self.lifetime.temperature),
            Setting::Stream(self.lifetime.stream),
        ]
    }

    /// These settings with new values, of which the last of each setting counts.
    pub fn with(mut self, changes: &[Setting]) -> VolumeSettings {
        for change in changes {
            match *change {
                Setting::Quota(bytes) => self.quota_bytes = bytes,
                Setting::Iops(iops) => self.iops = iops,
                Setting::Bandwidth(bytes) => self.bandwidth_bytes_per_second = bytes,
                Setting::Weight(weight) => self.weight = weight,
                Setting::Temperature(temperature) => self.lifetime.temperature = temperature,
                Setting::Stream(stream) => self.lifetime.stream = stream,
            }
        }
        self
    }
}

impl Setting {
    /// Whether the value is in the range of the setting.
    fn is_possible(self) -> bool {
        match self {
            Setting::Quota(quota) => quota.is_none_or(|bytes| QUOTAS.contains(&bytes)),
            Setting::Iops(iops) => iops.is_none_or(|iops| IOPS.contains(&iops)),
            Setting::Bandwidth(limit) => limit.is_none_or(|bytes| BANDWIDTHS.contains(&bytes)),
            Setting::Weight(weight) => WEIGHTS.contains(&weight),
            Setting::Temperature(_) => true,
            Setting::Stream(stream) => STREAMS.contains(&stream),
        }
    }
}
