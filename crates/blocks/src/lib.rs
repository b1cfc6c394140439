//! The block layer: 64-bit ids for blocks of one superblock each, on the unit that a policy
//! chooses.
//!
//! A block is written whole ([`BlockLayer::put`]) or opened and appended to ([`BlockLayer::open`]),
//! read in pages, and deleted. Ids are never reused, so an id is also the identity under which
//! everything inside is checksummed. The opening headers of superblocks say which block they hold;
//! a mount discovers the blocks from them.
//!
//! With [`Redundancy::Copies`] each block is on two units, the same bytes at the same pages. As ids
//! are never reused, a page of any superblock that claims the id is valid if its checksum matches,
//! in either copy. With [`Redundancy::Parity`], each group of blocks has one more block, the XOR of
//! the group.
//!
//! From the bottom up: [`tag`] is a superblock's claim to a block. Four parts hold the state of the
//! shard's blocks: `pools` (the units that take blocks) with `placement`, `directory` (ids to
//! superblocks), `health` (blocks to refresh) and the groups of `redundancy/`. Each mechanism holds
//! the parts that it uses: `damage`, `lifecycle`, `writer` with `open_block`, `copy_reader` with
//! `search` and `reading`, reconstruction and stripes. `layer` assembles the parts and is the
//! public interface; no other file uses it.

mod anti_affinity;
mod copy_reader;
mod damage;
mod directory;
mod discovery;
mod error;
mod health;
mod layer;
mod lifecycle;
mod open_block;
mod placement;
mod pool;
mod pools;
mod reading;
mod redundancy;
mod search;
pub mod space;
mod stale_units;
mod state;
pub mod tag;
mod wear_levelling;
mod writer;

pub use anti_affinity::AntiAffinity;
pub use discovery::Found;
pub use error::BlockError;
pub use layer::BlockLayer;
pub use open_block::OpenBlock;
pub use pool::UnitMark;
pub use redundancy::{GroupChange, GroupState, Member, ParityGroup, Redundancy, Stripe, xor_into};
pub use stale_units::StaleUnit;
pub use tag::{BlockId, BlockKind};
