//! Settings of a mapped domain.

/// Settings of a [`Domain`](crate::Domain). The default suits most devices.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainConfig {
    /// The number of the domain on its device.
    pub domain: u16,
    /// Spare space for collection in percent of the usable space. Less makes collection write more.
    pub op_percent: f64,
    /// The most mapping units of a frame.
    pub frame_units: u32,
    /// Frames of clients under way for each unit, from which on further writes are gathered in the
    /// next frame.
    pub frames_per_unit: u32,
    /// Collection of a unit, which begins when writers have opened its last superblock or find no
    /// room, goes on until it has so many free superblocks.
    pub low_superblocks: u32,
    /// Entries of frames after which a checkpoint is made; 0: an eighth of the domain, at least
    /// 2^16.
    pub checkpoint_entries: u64,
    /// Seed of the policies that draw random numbers.
    pub seed: u64,
}

impl Default for DomainConfig {
    fn default() -> DomainConfig {
        DomainConfig {
            domain: 1,
            op_percent: 7.0,
            frame_units: 64,
            frames_per_unit: 2,
            low_superblocks: 8,
            checkpoint_entries: 0,
            seed: 1,
        }
    }
}
