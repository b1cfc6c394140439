//! The bookkeeping of a page-mapped FTL, without time and without I/O. The volumes of a real device
//! and the laboratory's drives use the same code.
//!
//! ```
//! use softflash_base::random::Rng;
//! use softflash_mapping::{Blocks, NONE, PageMap};
//! use softflash_policy::{Policies, VictimPolicy, WearPolicy};
//!
//! // One group of four blocks of two pages; logical pages 0 and 1 fill the first block.
//! let mut blocks = Blocks::all_free([0..4], 2);
//! let mut map = PageMap::new(4, 8);
//! let mut policies = Policies::new(VictimPolicy::GREEDY, WearPolicy::FIFO, Rng::seeded(1));
//! let block = blocks.take_free(0, &policies).unwrap();
//! for logical in [0, 1] {
//!     assert_eq!(map.put(logical, 2 * block + logical), NONE);
//!     blocks.add_valid(block);
//! }
//! blocks.close(block, 0);
//!
//! // Logical page 0 is replaced by a page of the second block, so the first one has one left.
//! let open = blocks.take_free(0, &policies).unwrap();
//! let old = map.put(0, 2 * open);
//! blocks.add_valid(open);
//! blocks.remove_valid(old / 2);
//! assert_eq!(blocks.choose_victim(0, 1, &mut policies), Some(block));
//! assert_eq!(map.next_valid(2 * block, 2 * block + 2), Some(2 * block + 1));
//! ```
//!
//! The choices, which block is collected and which is used next, are those of `softflash_policy`.
//!
//! # Layout
//!
//! - [`map`]: kinds of maps from logical to physical pages; [`map::page`]: one entry a page;
//!   [`map::cached`]: which pages of a map on flash are in memory;
//! - [`blocks`]: the blocks of each group: valid pages, order of closing, erases, free blocks;
//! - [`bands`]: blocks of several groups that are collected together;
//! - [`credits`]: what clients may write while collection works;
//! - [`lifetimes`]: which pages are expected to become invalid at about the same time;
//! - [`pace`]: keeps the host's writes and collection in step;
//! - [`window`]: which of the sets with copies of the same data programs, and which only read;
//! - [`memory`]: large tables in huge pages, prefetches.
//!
//! Functions that are called for each page are `#[inline]`: other crates call them.

pub mod bands;
pub mod blocks;
pub mod credits;
pub mod lifetimes;
pub mod map;
pub mod memory;
pub mod pace;
pub mod window;

pub use bands::Bands;
pub use blocks::Blocks;
pub use credits::Credits;
pub use lifetimes::Lifetimes;
pub use map::cached::CachedMap;
pub use map::page::{ENTRIES_PER_LINE, NONE, PageMap};
pub use map::{MapKind, Share, UnknownMap};
pub use pace::Pace;
pub use window::{Window, Windows};
