//! Memory and free space: how they are divided, and how much of each is left.

pub(crate) mod budget;
pub(super) mod cache_room;
pub(super) mod caches;
pub(super) mod fullness;
pub(super) mod large_reads;
pub(super) mod limits;
pub(super) mod space;
