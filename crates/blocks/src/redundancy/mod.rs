//! Redundancy against the loss of a unit: copies, or parity groups. This module has the modes, and
//! parity; `open_block.rs` writes the copies of a block, `reading.rs` reads them. A single copy is
//! read with redundancy and without, so `copy_reader.rs` is not in here.

mod groups;
mod membership;
mod parity_group;
mod reconstruct;
mod rewrites;
mod stripe;

pub use groups::GroupState;
pub(crate) use groups::{Deferral, Groups};
pub(crate) use membership::Membership;
pub use parity_group::{GroupChange, Member, ParityGroup};
pub(crate) use reconstruct::Reconstruction;
pub use reconstruct::xor_into;
pub(crate) use rewrites::Rewrites;
pub use stripe::Stripe;

use crate::tag::BlockKind;

/// The redundancy of a store's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redundancy {
    /// None: each block has one copy.
    #[default]
    None,
    /// Each block is on two units.
    Copies,
    /// Patches share a parity block, all on different units. The log has two copies: its appends
    /// are acknowledged one by one and cannot wait for other blocks of a group.
    Parity {
        /// The most patches of a group.
        members: u8,
    },
}

impl Redundancy {
    /// Whether blocks have redundancy.
    pub fn is_some(self) -> bool {
        self != Redundancy::None
    }

    /// Whether each patch should be in a parity group.
    pub(crate) fn is_parity(self) -> bool {
        matches!(self, Redundancy::Parity { .. })
    }

    /// Copies that a block of the kind should have.
    pub fn copies_of(self, kind: BlockKind) -> u8 {
        match (self, kind) {
            (Redundancy::Copies, _) | (Redundancy::Parity { .. }, BlockKind::Log { .. }) => 2,
            _ => 1,
        }
    }
}
