//! Compaction: a policy chooses, the shard's worker merges.

pub mod leveled;
pub mod parts;
