//! Parity: groups of patches are kept whole. A block of a group that is missing or damaged is written once more, the same
//! bytes under the same id, made of the others. A group some of whose patches are given up goes on without them: its new parity
//! is the old one XOR those.
//!
//! Only compaction's task does this, or a repair that serves nobody, so that it never works on what compaction takes away.

use super::{Shard, count};
use crate::error::{Result, StoreError};
use crate::kv::patch_image;
use crate::kv::slice::Slice;
use bytes::Bytes;
use softflash_blocks::{
    AntiAffinity, BlockId, BlockKind, GroupState, Member, ParityGroup, xor_into,
};
use softflash_ftl::Hint;
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl Shard {
    /// Makes a block of a group whole that is not. Returns whether there was one.
    pub(crate) async fn restore_once(&self) -> Result<bool> {
        let Some(id) = self.blocks.take_reconstructible() else { return Ok(false) };
        let Some(group) = self.blocks.group_of(id) else { return Ok(true) };
        if let Err(error) = self.restore(id, &group).await {
            if self.tasks.closing.get() {
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
        if self.blocks.units_besides(&apart.units()) == 0 {
            // The group is too wide for the units that are left: one of its patches has to leave it.
            let leaves = group.members.iter().rev().map(|member| BlockId(member.block));
            let leaves = leaves.filter(|id| !self.blocks.is_pinned(*id)).last();
            let leaves = member.map_or(leaves, |_| Some(id));
            leaves.into_iter().for_each(|id| self.blocks.note_needs_refresh(id));
            return Ok(());
        }
        let (image, kind) = match member {
            Some(member) => {
                let Some(kind) = self.kind_of_patch(id) else { return Ok(()) };
                let image =
                    patch_image::reconstruct(&self.blocks, group, *member, Hint::COMPACTION);
                (image.await?, kind)
            }
            None => (self.parity_of(&group.members).await?, BlockKind::Parity),
        };
        let pieces = self.blocks.pieces_of(&image);
        self.blocks.rewrite(id, kind, pieces, Hint::COMPACTION, &apart).await?;
        count(&self.counters.refreshed_bytes, image.len() as u64);
        Ok(())
    }

    fn kind_of_patch(&self, id: BlockId) -> Option<BlockKind> {
        let lists = |slice: &&Slice| slice.tree().patches().any(|(.., patch)| patch.id() == id);
        self.slices.iter().find(lists).map(|slice| BlockKind::Patch { slice: slice.id.0 })
    }

    /// The units of the blocks of a group, but for one of them.
    fn apart_from(&self, group: &ParityGroup, id: BlockId) -> AntiAffinity {
        let others = group.blocks().map(|block| BlockId(block.block)).filter(|other| *other != id);
        AntiAffinity::of(others.flat_map(|other| {
            self.blocks.superblocks(other).into_iter().map(move |place| (other, place.unit.0))
        }))
    }

    /// Lets every group go on without those of its patches that are given up. Returns whether there was one.
    pub(crate) async fn unburden_groups(&self) -> Result<bool> {
        let (mut any, mut tried) = (false, BTreeSet::new());
        while let Some(burdened) = self.blocks.group_with_pinned(&tried) {
            if self.tasks.closing.get() {
                return Err(StoreError::Closed);
            }
            tried.insert(burdened.group.parity);
            match self.unburden(burdened).await {
                Ok(()) => any = true,
                Err(error @ StoreError::Closed) => return Err(error),
                Err(error) => {
                    tracing::debug!(shard = self.id.0, %error, "a group keeps what it does not need");
                }
            }
        }
        if any {
            self.tasks.room.notify_all();
        }
        Ok(any)
    }

    async fn unburden(&self, burdened: GroupState) -> Result<()> {
        let site = self.pending_outputs.begin(&self.blocks);
        let groups = self.with_company(burdened);
        let members: Vec<Member> = groups.iter().flat_map(GroupState::needed).collect();
        let sources: Vec<Member> = groups.iter().flat_map(GroupState::rest).collect();
        let is_sure =
            !groups.iter().any(|group| group.is_suspect) && self.is_apart(&sources, &members);
        let image = match is_sure && sources.len() <= members.len() {
            true => match self.xor_of(&sources, &members).await {
                Err(_) => self.parity_of(&members).await?,
                xor => xor?,
            },
            false => self.parity_of(&members).await?,
        };
        let new = ParityGroup { parity: self.blocks.new_id().0, members };
        let apart = self.apart_from(&new, BlockId(new.parity));
        if self.blocks.units_besides(&apart.units()) == 0 {
            return Err(self.blocks.lack_of_space().into());
        }
        let (id, pieces) = (BlockId(new.parity), self.blocks.pieces_of(&image));
        let hint = Hint::COMPACTION;
        self.blocks.put_avoiding(id, BlockKind::Parity, pieces, hint, &apart).await?;
        self.blocks.flash().flush(hint).await?;
        drop(site);
        let old: Vec<u64> = groups.iter().map(|group| group.group.parity).collect();
        let shed = self.blocks.exchange_groups(&old, new);
        let (Some(shed), Some(slice)) = (shed, self.slices.first()) else {
            self.blocks.delete(id);
            return Ok(());
        };
        self.edit(slice, &[], Vec::new());
        self.log.stable_soon(self.history.seq.get()).await?;
        shed.into_iter().for_each(|id| self.blocks.delete(id));
        Ok(())
    }

    /// A group that needs a new parity block, and others that can share it: fewer blocks of parity are to be written, or to be
    /// kept.
    fn with_company(&self, burdened: GroupState) -> Vec<GroupState> {
        let parity = burdened.group.parity;
        let is_sound = self.is_sound(&burdened);
        let mut chosen = vec![burdened];
        if !is_sound {
            return chosen;
        }
        // What is in level 0 is given up soon, all at once.
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let level0 =
            trees.iter().flat_map(|tree| tree.levels.first()).flat_map(|level| level.patches());
        let young: BTreeSet<u64> = level0.map(|patch| patch.id().0).collect();
        let is_young =
            |group: &GroupState| group.needed().any(|member| young.contains(&member.block));
        let room = self
            .blocks
            .group_width()
            .saturating_sub(chosen.iter().flat_map(GroupState::needed).count());
        let mut others = self.blocks.groups_of_up_to(room);
        others.retain(|other| {
            let is_wanted = !other.pinned.is_empty() || !is_young(other);
            other.group.parity != parity && is_wanted && self.is_sound(other)
        });
        others.sort_by_key(|other| (other.pinned.is_empty(), Reverse(other.needed().count())));
        for other in others {
            let members: Vec<Member> =
                chosen.iter().chain([&other]).flat_map(GroupState::needed).collect();
            let units = self.units_of(&members);
            // One more for the parity.
            if members.len() <= self.blocks.group_width() && units.len() == members.len() {
                chosen.push(other);
            }
        }
        chosen
    }

    /// Whether all blocks of a group are where they should be, as far as is known.
    fn is_sound(&self, group: &GroupState) -> bool {
        let mut blocks = group.group.blocks().map(|block| BlockId(block.block));
        !group.is_suspect && !blocks.any(|id| self.blocks.is_degraded(id))
    }

    fn units_of(&self, blocks: &[Member]) -> BTreeSet<u16> {
        let places = blocks.iter().flat_map(|block| self.blocks.superblocks(BlockId(block.block)));
        places.map(|place| place.unit.0).collect()
    }

    /// Whether a unit that gives wrong bytes for the `sources` has none of the `members`, which would need them.
    fn is_apart(&self, sources: &[Member], members: &[Member]) -> bool {
        !sources.iter().any(|source| self.blocks.is_degraded(BlockId(source.block)))
            && self.units_of(sources).is_disjoint(&self.units_of(members))
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
            if self.tasks.closing.get() {
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
