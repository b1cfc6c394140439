//! The key-value engine's parts: trees of patches, merging, compaction and the read cache.

pub mod cache;
pub mod compaction;
pub mod cursor;
mod live_count;
pub mod memtable;
pub mod merge;
pub mod patch;
pub mod patch_image;
pub mod scan_readahead;
pub mod slice;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;
pub mod writer;
