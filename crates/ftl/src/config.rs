//! What a user of the FTL can choose.

/// Settings of an [`Ftl`](crate::Ftl). The default suits most devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FtlConfig {
    /// Superblocks per unit kept erased ahead of need.
    pub prepared_target: u32,
    /// The largest command in bytes, on devices that take many rows of pages in one command. Above 1 MiB
    /// the throughput of common drives does not rise any more and a read behind it waits longer.
    pub max_command_bytes: u32,
    /// The most commands given to one die at a time; the device's own limit applies as well.
    pub max_die_depth: u16,
    /// How long a unit must have been idle before one of its superblocks is erased ahead of need, in
    /// nanoseconds.
    pub idle_before_erase_ns: u64,
    /// How long a unit that is never idle may lack prepared superblocks before one is erased between
    /// other requests, in nanoseconds.
    pub shortage_patience_ns: u64,
    /// Whether a die serves reads before programs before erases, by priority; else all come in the order of their
    /// arrival.
    pub reads_first: bool,
    /// When the least worn superblock that holds data lags behind the most worn by more erases than
    /// this, [`Ftl::worth_moving`](crate::Ftl::worth_moving) names it.
    pub wear_spread: u32,
}

impl Default for FtlConfig {
    fn default() -> FtlConfig {
        FtlConfig {
            prepared_target: 2,
            max_command_bytes: 1 << 20,
            max_die_depth: u16::MAX,
            idle_before_erase_ns: 500_000,
            shortage_patience_ns: 20_000_000,
            reads_first: true,
            wear_spread: 64,
        }
    }
}
