//! The upkeep of blocks: their health, their units, and their parity groups.

use super::BlockLayer;
use crate::copy_reader::Extent;
use crate::error::Result;
use crate::pool::UnitMark;
use crate::redundancy::{GroupChange, GroupState, Member, ParityGroup, Stripe};
use crate::stale_units::{self, StaleUnit};
use crate::tag::BlockId;
use softflash_base::IoBuf;
use softflash_ftl::{Hint, Origin};
use softflash_runtime::Notify;
use std::collections::BTreeSet;
use std::rc::Rc;

impl BlockLayer {
    /// The block is hard to read, and needs a refresh while it can be read.
    pub fn note_needs_refresh(&self, id: BlockId) {
        self.parts.damage.note_needs_refresh(id, Origin::Refresh);
    }

    /// Whether [`note_lagging`](Self::note_lagging) would look at the wear of some unit.
    pub fn is_look_at_wear_due(&self) -> bool {
        self.parts.wear_levelling.is_look_due()
    }

    /// Requests a refresh of the block of each unit whose superblock lags behind in wear, now and
    /// then. Called between pieces of background work, while space is not short.
    pub fn note_lagging(&self) {
        self.parts.wear_levelling.note_lagging();
    }

    /// Whether the block should be rewritten: it is hard to read, lacks a copy, or lags behind in
    /// wear.
    pub fn needs_refresh(&self, id: BlockId) -> bool {
        self.why_refresh(id).is_some()
    }

    /// Why the block should be rewritten, if it should.
    pub fn why_refresh(&self, id: BlockId) -> Option<Origin> {
        self.parts.health.why_refresh(id)
    }

    /// The block is being rewritten, or cannot be.
    pub fn clear_refresh(&self, id: BlockId) {
        self.parts.health.clear_refresh(id);
    }

    /// Whether any block needs a refresh.
    pub fn any_needs_refresh(&self) -> bool {
        self.parts.health.any_needs_refresh()
    }

    /// A block to be reconstructed from its group now.
    pub fn take_reconstructible(&self) -> Option<BlockId> {
        self.parts.health.take_reconstructible()
    }

    /// A copy of the block is missing or damaged.
    pub fn note_degraded(&self, id: BlockId) {
        self.parts.damage.note_degraded(id);
    }

    /// Whether a copy of the block is known to be missing or damaged.
    pub fn is_degraded(&self, id: BlockId) -> bool {
        self.parts.health.is_degraded(id)
    }

    /// Blocks of which a copy is known to be missing or damaged.
    pub fn degraded_blocks(&self) -> u64 {
        self.parts.health.degraded_blocks()
    }

    /// Requests a refresh of all degraded blocks, if a refresh can make them whole: the cause of an
    /// earlier failure may be gone.
    pub fn retry_degraded(&self) {
        self.parts.damage.retry();
    }

    /// Rings when a block is degraded that a refresh can make whole.
    pub fn degraded_bell(&self) -> &Notify {
        self.parts.health.degraded_bell()
    }

    /// Rings when a deleted block is pinned by its group. The last reader of a patch may delete it
    /// long after it was replaced.
    pub fn pinned_bell(&self) -> &Notify {
        self.parts.health.pinned_bell()
    }

    /// The damage of a block's copies, for reports. `None` where there is none, or where a refresh
    /// would not help, as a single unit is left.
    pub fn copy_problem(&self, id: BlockId) -> Option<String> {
        self.parts.damage.describe(id)
    }

    /// Units that were lost since the mount, where their blocks have other copies.
    pub fn lost_units(&self) -> u64 {
        self.parts.pools.main().lost_units()
    }

    /// Marks all blocks of the unit as degraded.
    pub fn distrust_unit(&self, unit: u16) {
        self.parts.damage.distrust(unit, false);
    }

    /// The marks of all units, for the log.
    pub fn unit_marks(&self) -> Vec<UnitMark> {
        self.parts.pools.main().marks()
    }

    /// Units whose generations at the mount are behind the log's marks. They matter only where a
    /// block in use lacks a copy.
    pub fn stale_units(&self, marks: &[UnitMark]) -> Vec<StaleUnit> {
        stale_units::find(&self.parts.mounted, marks, self.parts.pools.main())
    }

    /// Whether a new block survives the loss of a unit.
    pub fn is_redundant(&self) -> bool {
        self.parts.pools.are_redundant()
    }

    /// Whether each patch should be in a group.
    pub fn has_parity(&self) -> bool {
        self.parts.pools.redundancy().is_parity()
    }

    /// Whether the log has two copies.
    pub fn keeps_log_copies(&self) -> bool {
        self.parts.pools.redundancy().is_some()
    }

    /// Patches that a new group may have; 0 where there is no parity.
    pub fn group_width(&self) -> usize {
        self.parts.pools.main().group_width()
    }

    /// A new stripe, where the store keeps parity and more than one unit serves.
    pub fn new_stripe(&self) -> Option<Stripe> {
        Stripe::new(&self.parts.pools, &self.parts.directory, &self.parts.writer)
    }

    /// Adds a group that is whole and durable. The log records it with the next edit of a tree.
    pub fn form_group(&self, group: ParityGroup) {
        self.parts.membership.form(group);
    }

    /// Adds the groups that the log records, before any block is read.
    pub fn adopt_groups(&self, recorded: impl IntoIterator<Item = ParityGroup>) {
        recorded.into_iter().for_each(|group| self.parts.membership.adopt(group));
    }

    /// Drops the adopted groups without any of `patches`, which are the patches in use. In the
    /// other groups, members that are not in use are pinned.
    pub fn settle_groups(&self, patches: &BTreeSet<BlockId>) {
        self.parts.membership.settle(patches);
    }

    /// Chooses the latest complete attempt of each block that a power cut found in a rewrite, and
    /// releases the other superblocks. Called once, when the groups are known.
    pub async fn settle_rewrites(&self) {
        self.parts.rewrites.settle().await;
    }

    /// A patch was written. It is degraded if it should be in a group and is in none, because the
    /// write of the parity failed.
    pub fn note_written(&self, id: BlockId) {
        self.parts.membership.note_written(id);
    }

    /// Replaces groups by one group with their members in use. Returns the blocks to delete once
    /// the log has recorded the exchange durably; `None` where one of the old groups does not
    /// exist.
    pub fn exchange_groups(&self, old: &[u64], new: ParityGroup) -> Option<Vec<BlockId>> {
        self.parts.membership.exchange(old, new)
    }

    /// The changes that the log has to record, if any.
    pub fn take_group_change(&self) -> Option<GroupChange> {
        self.parts.groups.take_change()
    }

    /// The group that the block is in.
    pub fn group_of(&self, id: BlockId) -> Option<Rc<ParityGroup>> {
        self.parts.groups.of(id)
    }

    /// All groups.
    pub fn groups(&self) -> Vec<Rc<ParityGroup>> {
        self.parts.groups.all()
    }

    /// The number of groups: each has a parity block.
    pub fn parity_blocks(&self) -> u64 {
        self.parts.groups.count()
    }

    /// Deleted patches that are kept for the other patches of their groups.
    pub fn pinned_blocks(&self) -> u64 {
        self.parts.groups.count_pinned()
    }

    /// Whether a deleted block is kept for its group.
    pub fn is_pinned(&self, id: BlockId) -> bool {
        self.parts.groups.is_pinned(id)
    }

    /// The groups with at most `members` members in use.
    pub fn groups_of_up_to(&self, members: usize) -> Vec<GroupState> {
        self.parts.groups.of_up_to(members)
    }

    /// A group with pinned members, except the groups `passed_over`.
    pub fn group_with_pinned(&self, passed_over: &BTreeSet<u64>) -> Option<GroupState> {
        self.parts.groups.any_with_pinned(passed_over)
    }

    /// Whether the parity of a group can be read and equals the XOR of its patches; otherwise it is
    /// noted as degraded. `true` where a patch cannot be read: the read has noted that.
    pub async fn parity_agrees(&self, group: &ParityGroup, hint: Hint) -> bool {
        self.parts.reconstruction.parity_agrees(group, hint).await
    }

    /// Whole pages of a block, reconstructed from the other blocks of its group.
    pub async fn reconstruct(
        &self,
        group: &ParityGroup,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        let extent = Extent { id, first_page, pages, hint };
        self.parts.reconstruction.xor_of_others(extent, group).await
    }

    /// The XOR of pages of blocks; pages beyond a block's end count as zeros.
    pub async fn xor_of(
        &self,
        blocks: &[Member],
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        self.parts.reconstruction.xor(blocks, first_page, pages, hint).await
    }
}
