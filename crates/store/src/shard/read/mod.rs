//! Reads: lookups, scans and counts, each at one sequence number.

pub(super) mod expirations;
pub(super) mod key_count;
pub(super) mod lookup;
pub(super) mod random_key;
pub(super) mod scan;
pub(super) mod snapshots;
