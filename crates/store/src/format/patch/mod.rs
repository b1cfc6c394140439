//! Patches: immutable sorted runs of records, each in one superblock.
//!
//! ```text
//! page 0                                data offset (a page)
//! | header | keys | fences | tombstones | filter | references | zeros | block | block | ... | block |
//! ```
//!
//! The metadata is read once and stays in memory as a [`PatchIndex`]; a lookup that passes the
//! filter reads one block. Blocks lie back to back, without padding; a block is read with the pages
//! that it touches.

mod block;
mod builder;
mod compress;
mod fence;
mod filter;
mod header;
mod index;
mod references;
#[cfg(test)]
mod tests;

pub use block::{Block, block_len, decode_block};
#[cfg(test)]
pub use builder::PatchImage;
pub use builder::{Added, BuilderConfig, PatchBuilder};
pub use header::{HEADER_BYTES, PatchHeader, metadata_len};
pub use index::{PatchIndex, decode_metadata};
pub use references::{KeyHashes, ReferenceEntry};
#[cfg(any(test, fuzzing))]
pub use {block::BLOCK_HEADER_BYTES, header::VERSION};
