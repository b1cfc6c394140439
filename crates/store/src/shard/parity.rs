//! Parity: groups of patches are kept whole. A block of a group that is missing or damaged is written once more, the same
//! bytes under the same id, made of the others. A group some of whose patches are given up goes on without them: its new parity
//! is the old one XOR those.
//!
//! Only compaction's task does this, so that it never works on what compaction takes away.

use super::{Shard, count};
use crate::block_layer::{Apart, BlockId, BlockKind, Unburdening, xor_into};
use crate::error::{Result, StoreError};
use crate::format::log::event::{Member, ParityGroup};
use crate::kv::patch_image;
use crate::kv::slice::Slice;
use bytes::Bytes;
use softflash_ftl::Hint;
use std::collections::BTreeSet;

impl Shard {
    /// Makes a block of a group whole that is not. Returns whether there was one.
    pub(super) async fn restore_once(&self) -> Result<bool> {
        let Some(id) = self.blocks.take_restorable() else { return Ok(false) };
        let Some(group) = self.blocks.group_of(id) else { return Ok(true) };
        if let Err(error) = self.restore(id, &group).await {
            if self.closing.get() {
                return Err(StoreError::Closed);
            }
            // It is tried again later.
            tracing::warn!(shard = self.id.0, block = %id, %error, "a block could not be made of its group");
        }
        Ok(true)
    }

    async fn restore(&self, id: BlockId, group: &ParityGroup) -> Result<()> {
        if self.blocks.is_pinned(id) {
            return Ok(());
        }
        let member = group.members.iter().find(|member| member.block == id.0);
        let apart = self.apart_from(group, id);
        if self.blocks.units_apart(&apart.units()) == 0 {
            // The group is too wide for the units that are left: one of its patches has to leave it.
            let leaves = group.members.iter().rev().map(|member| BlockId(member.block));
            let leaves = leaves.filter(|id| !self.blocks.is_pinned(*id)).last();
            let leaves = member.map_or(leaves, |_| Some(id));
            leaves.into_iter().for_each(|id| self.blocks.note_strained(id));
            return Ok(());
        }
        let (image, kind) = match member {
            Some(member) => {
                let Some(kind) = self.kind_of_patch(id) else { return Ok(()) };
                let image =
                    patch_image::make_of_others(&self.blocks, group, *member, Hint::COMPACTION);
                (image.await?, kind)
            }
            None => (self.parity_of(&group.members).await?, BlockKind::Parity),
        };
        let pieces = self.blocks.pieces_of(&image);
        self.blocks.put_again(id, kind, pieces, Hint::COMPACTION, &apart).await?;
        count(&self.counters.refreshed_bytes, image.len() as u64);
        Ok(())
    }

    fn kind_of_patch(&self, id: BlockId) -> Option<BlockKind> {
        let lists = |slice: &&Slice| slice.tree().patches().any(|(.., patch)| patch.id() == id);
        self.slices.iter().find(lists).map(|slice| BlockKind::Patch { slice: slice.id.0 })
    }

    /// The units of the blocks of a group, but for one of them.
    fn apart_from(&self, group: &ParityGroup, id: BlockId) -> Apart {
        let others = group.blocks().map(|block| BlockId(block.block)).filter(|other| *other != id);
        Apart::of(others.flat_map(|other| {
            self.blocks.superblocks(other).into_iter().map(move |place| (other, place.unit.0))
        }))
    }

    /// Lets every group go on without those of its patches that are given up. Returns whether there was one.
    pub(super) async fn unburden_groups(&self) -> Result<bool> {
        let mut any = false;
        for burdened in self.blocks.burdened_groups() {
            if self.closing.get() {
                return Err(StoreError::Closed);
            }
            match self.unburden(burdened).await {
                Ok(()) => any = true,
                Err(error @ StoreError::Closed) => return Err(error),
                Err(error) => {
                    tracing::debug!(shard = self.id.0, %error, "a group keeps what it does not need");
                }
            }
        }
        if any {
            self.room.notify_all();
        }
        Ok(any)
    }

    async fn unburden(&self, Unburdening { group, pinned, is_suspect }: Unburdening) -> Result<()> {
        let (given_up, members): (Vec<Member>, Vec<Member>) =
            group.members.iter().partition(|member| pinned.contains(&BlockId(member.block)));
        let site = self.building.begin(&self.blocks);
        let parity = Member { block: group.parity, pages: group.pages() };
        let sources: Vec<Member> = given_up.into_iter().chain([parity]).collect();
        let is_sure = !is_suspect && self.is_apart(&sources, &members);
        let image = match is_sure && sources.len() <= members.len() {
            true => match self.xor_of(&sources, &members).await {
                Err(_) => self.parity_of(&members).await?,
                xor => xor?,
            },
            false => self.parity_of(&members).await?,
        };
        let new = ParityGroup { parity: self.blocks.new_id().0, members };
        let apart = self.apart_from(&new, BlockId(new.parity));
        if self.blocks.units_apart(&apart.units()) == 0 {
            return Err(self.blocks.lack_of_space());
        }
        let (id, pieces) = (BlockId(new.parity), self.blocks.pieces_of(&image));
        let hint = Hint::COMPACTION;
        self.blocks.put_apart(id, BlockKind::Parity, pieces, hint, &apart).await?;
        self.blocks.flash().flush(hint).await?;
        drop(site);
        let shed = self.blocks.exchange_groups(&[group.parity], new);
        let (Some(shed), Some(slice)) = (shed, self.slices.first()) else {
            self.blocks.delete(id);
            return Ok(());
        };
        self.edit(slice, &[], Vec::new());
        self.log.stable_soon(self.seq.get()).await?;
        shed.into_iter().for_each(|id| self.blocks.delete(id));
        Ok(())
    }

    /// Whether a unit that gives wrong bytes for the `sources` has none of the `members`, which would need them.
    fn is_apart(&self, sources: &[Member], members: &[Member]) -> bool {
        let units = |blocks: &[Member]| -> BTreeSet<u16> {
            let places =
                blocks.iter().flat_map(|block| self.blocks.superblocks(BlockId(block.block)));
            places.map(|place| place.unit.0).collect()
        };
        !sources.iter().any(|source| self.blocks.is_degraded(BlockId(source.block)))
            && units(sources).is_disjoint(&units(members))
    }

    /// The XOR of blocks, as long as the longest of `members`.
    async fn xor_of(&self, sources: &[Member], members: &[Member]) -> Result<Bytes> {
        let pages = members.iter().map(|member| member.pages).max().unwrap_or(0);
        let read =
            async |first, pages| self.blocks.xor_of(sources, first, pages, Hint::COMPACTION).await;
        patch_image::collect(&self.blocks, pages, read).await
    }

    /// The parity of patches, each of them verified: what is made of wrong bytes would make the right ones unknown.
    async fn parity_of(&self, members: &[Member]) -> Result<Bytes> {
        let mut parity = Vec::new();
        for member in members {
            if self.closing.get() {
                return Err(StoreError::Closed);
            }
            let image = patch_image::read(&self.blocks, *member, Hint::COMPACTION).await?;
            if image.len() > parity.len() {
                parity.resize(image.len(), 0);
            }
            xor_into(&mut parity, &image);
        }
        Ok(parity.into())
    }
}
