//! Configuration of the FTL.

use softflash_policy::{Schedule, WearPolicy};

/// The default lead of the most worn block of a unit, in erases, from which on cold data are moved.
const WEAR_LEAD: u32 = 64;

/// Settings of an [`Ftl`](crate::Ftl). The default suits most devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FtlConfig {
    /// Superblocks per unit that are kept erased ahead of need.
    pub erased_target: u32,
    /// The largest command in bytes, on devices that accept several rows of pages in one command.
    /// Above 1 MiB the throughput of common drives does not rise, and a read behind the command
    /// waits longer.
    pub max_command_bytes: u32,
    /// Maximum number of commands in flight per die. The limit of the device also applies.
    pub max_die_depth: u16,
    /// Time in nanoseconds for which a unit must be idle before a superblock is erased ahead of
    /// need.
    pub idle_before_erase_ns: u64,
    /// Time in nanoseconds for which a unit that is never idle may lack erased superblocks. Then a
    /// superblock is erased between other requests.
    pub shortage_patience_ns: u64,
    /// The order of the commands that wait for a die. It has
    /// [allowances](Schedule::allowances).
    pub order: Schedule,
    /// How erases are levelled over the superblocks of a unit: which free one is used next, and
    /// which one with cold data [`Ftl::worth_moving`](crate::Ftl::worth_moving) returns.
    pub wear: WearPolicy,
}

impl Default for FtlConfig {
    fn default() -> FtlConfig {
        FtlConfig {
            erased_target: 2,
            max_command_bytes: 1 << 20,
            max_die_depth: u16::MAX,
            idle_before_erase_ns: 500_000,
            shortage_patience_ns: 20_000_000,
            order: Schedule::READS_FIRST,
            wear: WearPolicy::level_by(WEAR_LEAD),
        }
    }
}
