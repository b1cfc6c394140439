//! Runs the compactions that the policy chooses.

use super::manifest::Manifest;
use super::merging::Merger;
use crate::error::Result;
use crate::kv::compaction::leveled::{Choice, GATHERED_RUNS, Options};
use crate::kv::slice::Slice;
use crate::shard::Shard;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

impl Shard {
    /// The target shape of the trees.
    pub(in crate::shard) fn compaction_options(&self) -> Options {
        Options {
            level0_runs: self.budget.level0_runs,
            gathered_runs: GATHERED_RUNS,
            base_bytes: self.budget.level1_bytes,
            fanout: 8,
            room_blocks: self.blocks.room_of_compaction(),
            merge_blocks: self.blocks.free_blocks().saturating_sub(self.limits().flush_blocks)
                as usize,
            spare_blocks: self.spare_blocks(),
            part_blocks: self.budget.part_blocks as usize,
            patch_bytes: self.blocks.capacity_bytes() as u64,
        }
    }

    /// Runs one compaction of the slice, if its policy chooses any. Returns whether one was run.
    pub(in crate::shard) async fn compact_once(&self, slice: &Slice) -> Result<bool> {
        let (options, pressure) = (self.compaction_options(), self.space_is_short());
        let choice = slice.policy.borrow_mut().choose(&slice.tree(), &options, pressure);
        let Some(choice) = choice else { return Ok(false) };
        tracing::debug!(slice = slice.id.0, from = choice.from, to = choice.to, "compacts");
        let group = self.blocks.group_width();
        if is_move(&choice, self.blocks.capacity_bytes() as u64, group) {
            self.move_down(slice, &choice).await?;
        } else {
            let of_level0 = choice.from == 0;
            Merger::of(self).merge(slice, choice, &options).await?;
            if of_level0 {
                slice.policy.borrow_mut().note_merged();
            }
        }
        self.tasks.announce_room();
        // The collector waits for a lagging compaction.
        self.tasks.request_collection();
        Ok(true)
    }

    async fn move_down(&self, slice: &Slice, choice: &Choice) -> Result<()> {
        let inputs: Vec<_> = choice.inputs.iter().flat_map(|run| run.patches.clone()).collect();
        let added = inputs.iter().map(|patch| (choice.to as u8, 0, Rc::clone(patch))).collect();
        self.edit(slice, &inputs, added);
        self.counters.count_compaction();
        Manifest::of(self).durable().await
    }
}

/// Whether the inputs can be moved to the next level without a rewrite, because a merge would only
/// copy them: a single run without overlap below, or runs with disjoint key ranges, as after a
/// sequential load. Not if a merge would drop deletions, or fill fewer blocks of `block_bytes`, or
/// if runs are shorter than a parity group of `group` patches: each has a parity block of its own.
fn is_move(choice: &Choice, block_bytes: u64, group: usize) -> bool {
    let patches = || choice.inputs.iter().flat_map(|run| &run.patches);
    let deletes = || patches().any(|patch| patch.tombstones() > 0);
    let full = || {
        let bytes: u64 = patches().map(|patch| patch.bytes()).sum();
        bytes.div_ceil(block_bytes) >= patches().count() as u64
    };
    let disjoint = || {
        if planted::bug(Bug::OverlapMoved) {
            return true;
        }
        let mut bounds: Vec<_> = patches().map(|p| (p.first_key(), p.last_key())).collect();
        bounds.sort_unstable();
        bounds.windows(2).all(|pair| matches!(pair, [left, right] if left.1 < right.0))
    };
    let fills_groups = || choice.inputs.iter().all(|run| run.patches.len() >= group);
    let is_cheap = choice.inputs.len() == 1 || (full() && disjoint() && fills_groups());
    is_cheap && !(choice.bottom && deletes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::testing::patch;
    use crate::kv::tree::Run;
    use softflash_blocks::Redundancy;
    use softflash_testing::on_blocks;

    #[test]
    fn runs_that_are_shorter_than_a_parity_group_are_merged() {
        on_blocks(Redundancy::None, async |blocks, _| {
            let run =
                |first, last| Run { number: 0, patches: vec![patch(blocks, first, last, 10)] };
            let choice = |inputs| Choice { from: 0, to: 1, inputs, overlaps: false, bottom: false };
            // Each patch is full if a block has one byte.
            let two = choice(vec![run("c", "d"), run("a", "b")]);
            assert!(is_move(&two, 1, 0), "there is no parity");
            assert!(is_move(&two, 1, 1), "each run fills a group");
            assert!(!is_move(&two, 1, 2), "their patches can share a parity block");
            assert!(is_move(&choice(vec![run("a", "b")]), 1, 2), "a merge would not change it");
        });
    }
}
