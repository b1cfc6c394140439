//! Parity: maintenance of parity groups. A missing or damaged block of a group is reconstructed
//! from the other blocks, with the same bytes under the same id. A group with retired patches is
//! rewritten without them: its new parity is the old parity XOR these patches.
//!
//! Only the compaction task or an offline repair may do this, so that it never works on patches
//! that a compaction removes.

use super::manifest::Manifest;
use super::tasks::Tasks;
use crate::error::{Result, StoreError};
use crate::kv::patch_image;
use crate::kv::slice::Slice;
use crate::shard::Shard;
use crate::shard::counters::Counters;
use crate::shard::slices::Slices;
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{
    AntiAffinity, BlockId, BlockKind, BlockLayer, GroupState, Member, ParityGroup, xor_into,
};
use softflash_ftl::Hint;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Keeps the parity groups of a shard whole.
pub(crate) struct ParityKeeper<'a> {
    id: ShardId,
    blocks: &'a BlockLayer,
    slices: &'a Slices,
    tasks: &'a Tasks,
    counters: &'a Counters,
    manifest: Manifest<'a>,
}

impl ParityKeeper<'_> {
    /// The parts of a shard that its parity groups depend on.
    pub(crate) fn of(shard: &Shard) -> ParityKeeper<'_> {
        let Shard { id, blocks, slices, tasks, counters, .. } = shard;
        ParityKeeper { id: *id, blocks, slices, tasks, counters, manifest: Manifest::of(shard) }
    }

    /// Reconstructs one missing or damaged block of a group. Returns whether there was one.
    pub(crate) async fn reconstruct_once(&self) -> Result<bool> {
        let Some(id) = self.blocks.take_reconstructible() else { return Ok(false) };
        let Some(group) = self.blocks.group_of(id) else { return Ok(true) };
        if let Err(error) = self.reconstruct(id, &group).await {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            // The rebuild retries later.
            tracing::warn!(shard = self.id.0, block = %id, %error, "a block could not be reconstructed from its group");
        }
        Ok(true)
    }

    async fn reconstruct(&self, id: BlockId, group: &ParityGroup) -> Result<()> {
        if self.blocks.is_pinned(id) {
            return Ok(());
        }
        let member = group.members.iter().find(|member| member.block == id.0);
        let anti_affinity = self.anti_affinity_of(group, id);
        if self.blocks.units_besides(&anti_affinity.units()) == 0 {
            // The group is wider than the number of remaining units: one of its patches must leave
            // it.
            let mut members = group.members.iter().map(|member| BlockId(member.block));
            let leaving = members.find(|id| !self.blocks.is_pinned(*id));
            let leaving = member.map_or(leaving, |_| Some(id));
            leaving.into_iter().for_each(|id| self.blocks.note_needs_refresh(id));
            return Ok(());
        }
        let (image, kind) = match member {
            Some(member) => {
                let Some(kind) = self.kind_of_patch(id) else { return Ok(()) };
                let image = patch_image::reconstruct(self.blocks, group, *member, Hint::REBUILD);
                (image.await?, kind)
            }
            None => (self.parity_of(&group.members).await?, BlockKind::Parity),
        };
        let pieces = self.blocks.pieces_of(&image);
        self.blocks.rewrite(id, kind, pieces, Hint::REBUILD, &anti_affinity).await?;
        self.counters.count_refreshed(image.len() as u64);
        Ok(())
    }

    fn kind_of_patch(&self, id: BlockId) -> Option<BlockKind> {
        let lists = |slice: &&Slice| slice.tree().patches().any(|(.., patch)| patch.id() == id);
        self.slices.iter().find(lists).map(|slice| BlockKind::Patch { slice: slice.id.0 })
    }

    /// The units of all blocks of a group except `id`.
    fn anti_affinity_of(&self, group: &ParityGroup, id: BlockId) -> AntiAffinity {
        let others = group.blocks().map(|block| BlockId(block.block)).filter(|other| *other != id);
        AntiAffinity::of(others.flat_map(|other| {
            self.blocks.superblocks(other).into_iter().map(move |place| (other, place.unit.0))
        }))
    }

    /// Rewrites every group with retired patches, without these. Returns whether one was rewritten.
    pub(crate) async fn rewrite_groups(&self) -> Result<bool> {
        let (mut any, mut tried) = (false, BTreeSet::new());
        while let Some(state) = self.blocks.group_with_pinned(&tried) {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            tried.insert(state.group.parity);
            match self.rewrite_group(state).await {
                Ok(()) => any = true,
                Err(error @ StoreError::Closed) => return Err(error),
                Err(error) => {
                    tracing::debug!(shard = self.id.0, %error, "a parity group could not be rewritten without its retired patches");
                }
            }
        }
        if any {
            self.tasks.announce_room();
        }
        Ok(any)
    }

    async fn rewrite_group(&self, state: GroupState) -> Result<()> {
        let pending = self.manifest.begin_output();
        let groups = self.groups_to_merge(state);
        let members: Vec<Member> = groups.iter().flat_map(GroupState::needed).collect();
        let sources: Vec<Member> = groups.iter().flat_map(GroupState::rest).collect();
        let is_trusted =
            !groups.iter().any(|group| group.is_suspect) && self.shares_no_unit(&sources, &members);
        let image = match is_trusted && sources.len() <= members.len() {
            true => match self.xor_of(&sources, &members).await {
                Err(_) => self.parity_of(&members).await?,
                xor => xor?,
            },
            false => self.parity_of(&members).await?,
        };
        let new = ParityGroup { parity: self.blocks.new_id().0, members };
        let anti_affinity = self.anti_affinity_of(&new, BlockId(new.parity));
        if self.blocks.units_besides(&anti_affinity.units()) == 0 {
            return Err(self.blocks.lack_of_space().into());
        }
        let (id, pieces) = (BlockId(new.parity), self.blocks.pieces_of(&image));
        let hint = Hint::PARITY;
        self.blocks.put_avoiding(id, BlockKind::Parity, pieces, hint, &anti_affinity).await?;
        self.blocks.flash().flush(Hint::PARITY).await?;
        drop(pending);
        let old: Vec<u64> = groups.iter().map(|group| group.group.parity).collect();
        let released = self.blocks.exchange_groups(&old, new);
        let (Some(released), Some(slice)) = (released, self.slices.first()) else {
            self.blocks.delete(id);
            return Ok(());
        };
        let held = || released.iter().filter(|id| self.blocks.contains(**id)).count();
        let before = held();
        if planted::bug(Bug::GroupFreedEarly) {
            released.iter().for_each(|id| self.blocks.delete(*id));
        }
        self.manifest.replace(slice, &[], Vec::new()).await?;
        assert_eq!(
            held(),
            before,
            "shard {}: the old groups are whole until a recovery finds the new one",
            self.id
        );
        released.into_iter().for_each(|id| self.blocks.delete(id));
        Ok(())
    }

    /// A group that needs a new parity block, and other groups to merge with it, which saves parity
    /// blocks.
    fn groups_to_merge(&self, state: GroupState) -> Vec<GroupState> {
        let parity = state.group.parity;
        let is_intact = self.is_intact(&state);
        let mut chosen = vec![state];
        if !is_intact {
            return chosen;
        }
        // The patches of level 0 are retired soon and together.
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let level0 =
            trees.iter().flat_map(|tree| tree.levels.first()).flat_map(|level| level.patches());
        let level0_blocks: BTreeSet<u64> = level0.map(|patch| patch.id().0).collect();
        let is_level0 =
            |group: &GroupState| group.needed().any(|member| level0_blocks.contains(&member.block));
        let room = self
            .blocks
            .group_width()
            .saturating_sub(chosen.iter().flat_map(GroupState::needed).count());
        let mut others = self.blocks.groups_of_up_to(room);
        others.retain(|other| {
            let is_candidate = !other.pinned.is_empty() || !is_level0(other);
            other.group.parity != parity && is_candidate && self.is_intact(other)
        });
        others.sort_by_key(|other| (other.pinned.is_empty(), Reverse(other.needed().count())));
        for other in others {
            let members: Vec<Member> =
                chosen.iter().chain([&other]).flat_map(GroupState::needed).collect();
            let units = self.units_of(&members);
            // The parity needs one more unit.
            if members.len() <= self.blocks.group_width() && units.len() == members.len() {
                chosen.push(other);
            }
        }
        chosen
    }

    /// Whether no block of a group is known to be degraded or suspect.
    fn is_intact(&self, group: &GroupState) -> bool {
        let mut blocks = group.group.blocks().map(|block| BlockId(block.block));
        !group.is_suspect && !blocks.any(|id| self.blocks.is_degraded(id))
    }

    fn units_of(&self, blocks: &[Member]) -> BTreeSet<u16> {
        let places = blocks.iter().flat_map(|block| self.blocks.superblocks(BlockId(block.block)));
        places.map(|place| place.unit.0).collect()
    }

    /// Whether no unit holds both `sources` and `members`: a faulty unit must not damage members
    /// and the parity that would reconstruct them.
    fn shares_no_unit(&self, sources: &[Member], members: &[Member]) -> bool {
        !sources.iter().any(|source| self.blocks.is_degraded(BlockId(source.block)))
            && self.units_of(sources).is_disjoint(&self.units_of(members))
    }

    /// The XOR of the `sources`, with the length of the longest of the `members`.
    async fn xor_of(&self, sources: &[Member], members: &[Member]) -> Result<Bytes> {
        let pages = members.iter().map(|member| member.pages).max().unwrap_or(0);
        let read =
            async |first, pages| self.blocks.xor_of(sources, first, pages, Hint::PARITY).await;
        patch_image::collect(self.blocks, pages, read).await
    }

    /// The parity of patches, each verified first: parity from wrong bytes could not reconstruct
    /// the right ones.
    async fn parity_of(&self, members: &[Member]) -> Result<Bytes> {
        let mut parity = Vec::new();
        for member in members {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            let image = patch_image::read(self.blocks, *member, Hint::PARITY).await?;
            if image.len() > parity.len() {
                parity.resize(image.len(), 0);
            }
            xor_into(&mut parity, &image);
        }
        Ok(parity.into())
    }
}
