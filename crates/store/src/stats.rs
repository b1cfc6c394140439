//! Counters of a store: requests of clients, and commands to the flash.

use serde::Serialize;
pub use softflash_ftl::UnitTelemetry;

/// The number of live keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyCount {
    /// All keys.
    pub keys: u64,
    /// Keys that expire.
    pub expiring: u64,
}

impl KeyCount {
    /// Adds the keys of another part of the key space.
    pub fn add(&mut self, other: KeyCount) {
        self.keys += other.keys;
        self.expiring += other.expiring;
    }

    /// The keys of all parts.
    pub fn sum(parts: impl IntoIterator<Item = KeyCount>) -> KeyCount {
        parts.into_iter().fold(KeyCount::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

/// The time for which admission delayed writers, by what they waited for, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stalls {
    /// A free block.
    pub space: u64,
    /// The collector, which gains the space for separated values.
    pub cleaning: u64,
    /// Device writes of separated values.
    pub values: u64,
    /// Room in memtables.
    pub memory: u64,
    /// A shorter log.
    pub log: u64,
    /// Fewer runs in level 0.
    pub runs: u64,
    /// The end of a merge.
    pub merge: u64,
}

impl Stalls {
    /// The sums of these and others.
    pub fn plus(self, other: Stalls) -> Stalls {
        self.zip(other, u64::saturating_add)
    }

    /// What has been added since an earlier state.
    pub fn since(self, earlier: Stalls) -> Stalls {
        self.zip(earlier, u64::saturating_sub)
    }

    fn zip(self, other: Stalls, combined: impl Fn(u64, u64) -> u64) -> Stalls {
        Stalls {
            space: combined(self.space, other.space),
            cleaning: combined(self.cleaning, other.cleaning),
            values: combined(self.values, other.values),
            memory: combined(self.memory, other.memory),
            log: combined(self.log, other.log),
            runs: combined(self.runs, other.runs),
            merge: combined(self.merge, other.merge),
        }
    }
}

/// Counters of one shard since it was opened, or the sum over shards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StoreStats {
    /// Keys, an estimate (see `docs/redis.md` for its bound).
    pub keys: u64,
    /// Keys that expire, an estimate.
    pub expiring_keys: u64,
    /// Reads completed by the device.
    pub device_reads: u64,
    /// Programs completed by the device.
    pub device_programs: u64,
    /// Erases completed by the device.
    pub device_erases: u64,
    /// Bytes of keys and values written by clients.
    pub host_bytes_written: u64,
    /// Bytes programmed, for any reason.
    pub flash_bytes_written: u64,
    /// Bytes programmed of data of clients, as they write them: separated values.
    pub program_bytes_host: u64,
    /// Bytes programmed of the log.
    pub program_bytes_log: u64,
    /// Bytes programmed by flushes.
    pub program_bytes_flush: u64,
    /// Bytes programmed by compaction.
    pub program_bytes_compaction: u64,
    /// Bytes programmed by the collection of value blocks.
    pub program_bytes_collection: u64,
    /// Bytes programmed of parity.
    pub program_bytes_parity: u64,
    /// Bytes programmed by rewrites of data that are hard to read.
    pub program_bytes_refresh: u64,
    /// Bytes programmed by moves of data that lag behind in wear.
    pub program_bytes_levelling: u64,
    /// Bytes programmed by rewrites of data that lack a copy or are reconstructed.
    pub program_bytes_rebuild: u64,
    /// Bytes programmed of the map of volumes: none in a store.
    pub program_bytes_map: u64,
    /// Bytes programmed of headers of superblocks.
    pub program_bytes_header: u64,
    /// Bytes read from the device.
    pub flash_bytes_read: u64,
    /// Bytes of log frames written.
    pub log_bytes_written: u64,
    /// Bytes of patches written by memtable flushes.
    pub flush_bytes_written: u64,
    /// Bytes of patches written by compaction.
    pub compaction_bytes_written: u64,
    /// Lookups that needed no read: memtable or cache.
    pub memory_hits: u64,
    /// Lookups that read flash.
    pub flash_lookups: u64,
    /// Lookups of absent keys that read flash because of a false positive of a filter.
    pub filter_false_positives: u64,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Bytes in the read cache.
    pub cache_bytes: u64,
    /// Bytes that the read cache may use now: the part of the memory budget without another use.
    pub cache_budget_bytes: u64,
    /// Bytes of patch indexes and filters.
    pub index_bytes: u64,
    /// Bytes of pages written for separated values.
    pub value_bytes_written: u64,
    /// Bytes of pages written to move separated values, to free the space of dead ones.
    pub value_bytes_collected: u64,
    /// Bytes of live separated values.
    pub value_bytes_live: u64,
    /// Blocks of separated values.
    pub value_blocks: u64,
    /// Live patches.
    pub patches: u64,
    /// Bytes of the log that recovery would replay.
    pub log_live_bytes: u64,
    /// Superblocks that can be allocated.
    pub superblocks_free: u64,
    /// All superblocks.
    pub superblocks_total: u64,
    /// Bytes of keys and values that fit the empty store: an estimate for keys and values of 1 KiB
    /// together, without compression.
    pub usable_bytes: u64,
    /// Memtable flushes completed.
    pub flushes: u64,
    /// Compactions completed.
    pub compactions: u64,
    /// Time for which admission delayed writers, in microseconds.
    pub stall_us: u64,
    /// The longest time for which admission delayed a writer, in microseconds.
    pub stall_longest_us: u64,
    /// The part of `stall_us` for which writes waited for a free block, in microseconds.
    pub stall_space_us: u64,
    /// For the collector, which gains the space for separated values.
    pub stall_cleaning_us: u64,
    /// For device writes of separated values.
    pub stall_values_us: u64,
    /// For room in memtables.
    pub stall_memory_us: u64,
    /// For a shorter log.
    pub stall_log_us: u64,
    /// For fewer runs in level 0.
    pub stall_runs_us: u64,
    /// For the end of a merge.
    pub stall_merge_us: u64,
    /// Writes refused because the flash is full or worn out.
    pub refused_writes: u64,
    /// Damaged reads reported.
    pub data_losses: u64,
    /// Completed scrub passes.
    pub patrols: u64,
    /// Bytes of patches read by the scrub.
    pub patrolled_bytes: u64,
    /// Bytes of patches rewritten because they were hard to read.
    pub refreshed_bytes: u64,
    /// Degraded blocks of a store with two copies or parity: a copy is missing or damaged, or a
    /// patch is in no parity group. The rebuild rewrites them.
    pub degraded_blocks: u64,
    /// Blocks of parity.
    pub parity_blocks: u64,
    /// Deleted patches that are kept because their parity groups need them.
    pub pinned_blocks: u64,
    /// Units lost since the start of a store with two copies or parity.
    pub lost_units: u64,
    /// Stale units, found at the start of a store with two copies or parity: they were restored
    /// from an old image.
    pub old_units: u64,
    /// Bytes of blocks on units that leave the store.
    pub draining_bytes: u64,
    /// 1 while writes are refused for lack of space.
    pub full: u64,
    /// Keys found expired, or removed because they had expired.
    pub keys_expired: u64,
    /// How far the clock for expiry is ahead of the wall clock, in milliseconds.
    pub clock_lead_ms: u64,
}

impl StoreStats {
    /// Adds another shard's counters. Of the longest waits and of the leads the longer one remains.
    pub fn add(&mut self, other: &StoreStats) {
        let stall_longest_us = self.stall_longest_us.max(other.stall_longest_us);
        let clock_lead_ms = self.clock_lead_ms.max(other.clock_lead_ms);
        for ((_, total), (_, part)) in self.fields_mut().into_iter().zip(other.clone().fields_mut())
        {
            *total += *part;
        }
        self.stall_longest_us = stall_longest_us;
        self.clock_lead_ms = clock_lead_ms;
        self.full = self.full.min(1);
    }

    /// The counters by name, in order of declaration.
    pub fn fields(&self) -> Vec<(&'static str, u64)> {
        self.clone().fields_mut().into_iter().map(|(name, value)| (name, *value)).collect()
    }

    fn fields_mut(&mut self) -> Vec<(&'static str, &mut u64)> {
        macro_rules! fields {
            ($($name:ident),* $(,)?) => { vec![$((stringify!($name), &mut self.$name)),*] };
        }
        fields![
            keys,
            expiring_keys,
            device_reads,
            device_programs,
            device_erases,
            host_bytes_written,
            flash_bytes_written,
            program_bytes_host,
            program_bytes_log,
            program_bytes_flush,
            program_bytes_compaction,
            program_bytes_collection,
            program_bytes_parity,
            program_bytes_refresh,
            program_bytes_levelling,
            program_bytes_rebuild,
            program_bytes_map,
            program_bytes_header,
            flash_bytes_read,
            log_bytes_written,
            flush_bytes_written,
            compaction_bytes_written,
            memory_hits,
            flash_lookups,
            filter_false_positives,
            memtable_bytes,
            cache_bytes,
            cache_budget_bytes,
            index_bytes,
            value_bytes_written,
            value_bytes_collected,
            value_bytes_live,
            value_blocks,
            patches,
            log_live_bytes,
            superblocks_free,
            superblocks_total,
            usable_bytes,
            flushes,
            compactions,
            stall_us,
            stall_longest_us,
            stall_space_us,
            stall_cleaning_us,
            stall_values_us,
            stall_memory_us,
            stall_log_us,
            stall_runs_us,
            stall_merge_us,
            refused_writes,
            data_losses,
            patrols,
            patrolled_bytes,
            refreshed_bytes,
            degraded_blocks,
            parity_blocks,
            pinned_blocks,
            lost_units,
            old_units,
            draining_bytes,
            full,
            keys_expired,
            clock_lead_ms,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_shards_has_the_longest_of_their_waits() {
        let shard = |stall_us, stall_longest_us, full| StoreStats {
            stall_us,
            stall_longest_us,
            clock_lead_ms: stall_longest_us,
            full,
            ..StoreStats::default()
        };
        let mut total = StoreStats::default();
        for part in [shard(7, 4, 1), shard(9, 9, 1), shard(5, 2, 0)] {
            total.add(&part);
        }
        assert_eq!(total, shard(21, 9, 1));
    }
}
