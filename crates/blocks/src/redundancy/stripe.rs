//! A stripe: a parity group that is being written. Each of its patches goes to a unit of its own;
//! the parity accumulates in memory.

use super::parity_group::{Member, ParityGroup};
use super::reconstruct::xor_into;
use crate::anti_affinity::AntiAffinity;
use crate::directory::Directory;
use crate::error::Result;
use crate::pools::Pools;
use crate::tag::{BlockId, BlockKind};
use crate::writer::Writer;
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_ftl::{Hint, Origin};
use std::rc::Rc;

/// A parity group that is being written.
pub struct Stripe {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    writer: Rc<Writer>,
    members: Vec<Member>,
    parity: Vec<u8>,
    anti_affinity: AntiAffinity,
}

impl Stripe {
    /// A new stripe, where the store keeps parity and more than one unit serves.
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        writer: &Rc<Writer>,
    ) -> Option<Stripe> {
        (pools.main().group_width() > 0).then(|| Stripe {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            writer: Rc::clone(writer),
            members: Vec::new(),
            parity: Vec::new(),
            anti_affinity: AntiAffinity::default(),
        })
    }

    /// Whether enough units are left for another patch and the parity.
    pub fn takes_another(&self) -> bool {
        let taken = self.anti_affinity.units();
        // Members whose unit is not chosen yet.
        let unplaced = self.members.len().saturating_sub(taken.len());
        let pool = self.pools.main();
        self.members.len() < pool.group_width() && pool.units_besides(&taken) >= unplaced + 2
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
        let page_bytes = self.pools.page_bytes();
        assert!(bytes.is_multiple_of(page_bytes), "{id} of {bytes} bytes is not whole pages");
        let pages = (bytes / page_bytes) as u32;
        self.members.push(Member { block: id.0, pages });
        self.anti_affinity.clone()
    }

    /// Writes the parity. The group is durable after the next flush that follows the writes of its
    /// patches.
    pub async fn close(self, hint: Hint) -> Result<ParityGroup> {
        let Stripe { pools, directory, writer, members, parity, anti_affinity } = self;
        let id = directory.new_id();
        let pieces = pools.main().pieces_of(&parity);
        let hint = hint.of(Origin::Parity);
        writer.write_whole(id, BlockKind::Parity, pieces, hint, &anti_affinity).await?;
        Ok(ParityGroup { parity: id.0, members })
    }
}
