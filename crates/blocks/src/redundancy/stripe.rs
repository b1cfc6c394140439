//! A stripe: a parity group that is being written. Each of its patches goes to a unit of its own;
//! the parity accumulates in memory.

use super::parity_group::{Member, ParityGroup};
use super::reconstruct::xor_into;
use crate::error::Result;
use crate::layer::BlockLayer;
use crate::open_block::AntiAffinity;
use crate::tag::{BlockId, BlockKind};
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;

/// Bytes per append of a parity block.
const PIECE_BYTES: usize = 1 << 20;

/// A parity group that is being written.
pub struct Stripe {
    blocks: BlockLayer,
    members: Vec<Member>,
    parity: Vec<u8>,
    anti_affinity: AntiAffinity,
}

impl BlockLayer {
    /// A new stripe, where the store keeps parity and more than one unit serves.
    pub fn new_stripe(&self) -> Option<Stripe> {
        (self.group_width() > 0).then(|| Stripe {
            blocks: self.clone(),
            members: Vec::new(),
            parity: Vec::new(),
            anti_affinity: AntiAffinity::default(),
        })
    }

    /// Copies bytes to buffers of whole pages.
    pub fn pieces_of(&self, bytes: &[u8]) -> Vec<IoBuf> {
        let piece_of = |chunk: &[u8]| {
            let mut piece = self.flash().buffer(chunk.len().next_multiple_of(self.page_bytes()));
            let (front, padding) = piece.split_at_mut(chunk.len());
            front.copy_from_slice(chunk);
            padding.fill(0);
            piece
        };
        bytes.chunks(PIECE_BYTES).map(piece_of).collect()
    }
}

impl Stripe {
    /// Whether enough units are left for another patch and the parity.
    pub fn takes_another(&self) -> bool {
        let taken = self.anti_affinity.units();
        // Members whose unit is not chosen yet.
        let unplaced = self.members.len().saturating_sub(taken.len());
        self.members.len() < self.blocks.group_width()
            && self.blocks.units_besides(&taken) >= unplaced + 2
    }

    /// Adds a patch. The caller writes it with the returned set, which keeps it on a unit of its
    /// own.
    pub fn add(&mut self, id: BlockId, pieces: &[IoBuf]) -> AntiAffinity {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if bytes > self.parity.len() {
            self.parity.resize(bytes, 0);
        }
        let mut at = 0;
        let forgotten = planted::bug(Bug::ParityForgetsPatch) && self.members.len() == 1;
        for piece in pieces.iter().filter(|_| !forgotten) {
            xor_into(self.parity.get_mut(at..).unwrap_or_default(), piece);
            at += piece.len();
        }
        let page_bytes = self.blocks.page_bytes();
        assert!(bytes.is_multiple_of(page_bytes), "{id} of {bytes} bytes is not whole pages");
        let pages = (bytes / page_bytes) as u32;
        self.members.push(Member { block: id.0, pages });
        self.anti_affinity.clone()
    }

    /// Writes the parity. The group is durable after the next flush that follows the writes of its
    /// patches.
    pub async fn close(self, hint: Hint) -> Result<ParityGroup> {
        let Stripe { blocks, members, parity, anti_affinity } = self;
        let id = blocks.new_id();
        let pieces = blocks.pieces_of(&parity);
        blocks.leave_room(hint)?;
        blocks.put_avoiding(id, BlockKind::Parity, pieces, hint, &anti_affinity).await?;
        Ok(ParityGroup { parity: id.0, members })
    }
}
