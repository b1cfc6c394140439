//! The leveled compaction policy. It returns a choice, which the worker executes.
//!
//! Level 0 holds a run for each flush. A merge of level 0 into level 1 writes all data of level 1
//! again, so it pays by the bytes of level 0 that it removes: the runs gather until they are about
//! as large as level 1 (lazy leveling: Dayan and Idreos, "Dostoevsky", SIGMOD 2018), as long as
//! writers do not need their space. A merge that does not fit the free space runs in [`parts`].
//!
//! Every deeper level is one run, [`Options::fanout`] times as large as the level above. A level
//! over its target size merges one patch at a time into the next level: first those with many
//! deletions, then in cyclic key order.

use crate::kv::compaction::parts::{Part, longest, parts};
use crate::kv::patch::Patch;
use crate::kv::tree::{Level, Run, Tree};
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use std::rc::Rc;

/// The most bytes of a partly filled patch that are copied for each byte of new data that fills it.
const MOST_COPIED: u64 = 2;

/// The bytes of level 0, as a multiple of those of level 1, at which a merge pays: it writes level
/// 1 once, so each byte of level 0 costs the inverse of this number.
const PAYING_SHARE: f64 = 1.25;

/// The most runs that gather in level 0 of a slice. A lookup of an absent key passes a filter for
/// each.
pub const GATHERED_RUNS: usize = 16;

/// Partly filled patches at the end of a part.
pub const SHORT_PATCHES: usize = 2;

/// A patch goes first where one in this many of its records is a deletion.
const DELETIONS_OF_RECORDS: u64 = 4;

/// The target shape of the tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Runs of level 0 that start a merge where space is short, and the most that the first merge
    /// after a start takes then.
    pub level0_runs: usize,
    /// Runs in level 0 that start a compaction of any payoff.
    pub gathered_runs: usize,
    /// Target size of level 1 in bytes.
    pub base_bytes: u64,
    /// The ratio of a level's size to the level above.
    pub fanout: u64,
    /// Free blocks for the outputs.
    pub room_blocks: usize,
    /// Free blocks that flushes and the log do not need during a merge.
    pub merge_blocks: usize,
    /// Free blocks that outputs can take without a pause of writers.
    pub spare_blocks: usize,
    /// The most patches of the target level in a part of a merge that does not fit
    /// `spare_blocks`.
    pub part_blocks: usize,
    /// The most bytes of a patch.
    pub patch_bytes: u64,
}

/// A compaction to execute.
pub struct Choice {
    /// The source level.
    pub from: usize,
    /// The target level.
    pub to: usize,
    /// Runs to merge, newest first; each is a part of a run of `from` or `to`.
    pub inputs: Vec<Run>,
    /// Whether the last of the inputs is of level `to`.
    pub overlaps: bool,
    /// Whether no older versions are below, so that deletions can be dropped.
    pub bottom: bool,
}

/// The policy of one slice, with a cursor in each level.
#[derive(Default)]
pub struct Leveled {
    /// The key after which each level continues.
    cursors: Vec<Bytes>,
    /// Whether a merge of level 0 has ended since the store was opened.
    has_merged: bool,
}

impl Leveled {
    /// A merge of level 0 has ended.
    pub fn note_merged(&mut self) {
        self.has_merged = true;
    }

    /// The next compaction, if any. Under space `pressure`, levels within their targets are merged
    /// down too, because merging drops dead data.
    pub fn choose(&mut self, tree: &Tree, options: &Options, pressure: bool) -> Option<Choice> {
        let due: Vec<(usize, f64)> = tree
            .levels
            .iter()
            .enumerate()
            .map(|(number, level)| (number, score(tree, number, level, options)))
            .filter(|(_, score)| *score >= 1.0)
            .collect();
        if pressure {
            return self.choose_for_space(tree, options, &due);
        }
        let most_due = due.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        self.of_level(tree, options, most_due.0)
    }

    /// The deepest due level goes first: an oversized level makes every merge into it need more
    /// room than is kept free. A choice without room is skipped in favour of one that has room.
    fn choose_for_space(
        &mut self,
        tree: &Tree,
        options: &Options,
        due: &[(usize, f64)],
    ) -> Option<Choice> {
        let above_bottom = tree.levels.len().saturating_sub(1).max(1);
        let worth = (0..above_bottom).filter(|number| worth_merging(tree, *number));
        let mut smallest: Option<Choice> = None;
        for from in due.iter().rev().map(|(number, _)| *number).chain(worth) {
            let Some(choice) = self.of_level(tree, options, from) else { continue };
            if choice.blocks(options) <= options.room_blocks {
                return Some(choice);
            }
            smallest = match smallest {
                Some(smallest) if smallest.blocks(options) <= choice.blocks(options) => {
                    Some(smallest)
                }
                _ => Some(choice),
            };
        }
        smallest
    }

    /// The next compaction of a level into the level below.
    fn of_level(&mut self, tree: &Tree, options: &Options, from: usize) -> Option<Choice> {
        if from > 0 {
            return self.one_patch(tree, options, from);
        }
        // The first merge is short: long ones would never end where a store restarts often.
        level0(tree, options, if self.has_merged { usize::MAX } else { options.level0_runs })
    }

    fn one_patch(&mut self, tree: &Tree, options: &Options, from: usize) -> Option<Choice> {
        let run = tree.levels.get(from)?.runs.first()?;
        if self.cursors.len() <= from {
            self.cursors.resize(from + 1, Bytes::new());
        }
        let cursor = self.cursors.get_mut(from)?;
        let picked = match run.lost() {
            0 => {
                let place = next_patch(run, cursor);
                clean_cut(run, place, place + 1)
            }
            // Lost patches may hold versions of the same keys.
            _ => run.patches.clone(),
        };
        *cursor = Bytes::copy_from_slice(picked.last()?.last_key());
        Some(choice(tree, options, from, vec![Run { number: run.number, patches: picked }]))
    }
}

/// The place of the patch to merge into the next level: one with many deletions, because it and the
/// records that it deletes disappear; otherwise the next one behind the cursor.
fn next_patch(run: &Run, cursor: &[u8]) -> usize {
    let deletes = |patch: &Rc<Patch>| {
        patch.records() > 0 && patch.tombstones() * DELETIONS_OF_RECORDS >= patch.records()
    };
    let behind = || match run.patches.partition_point(|patch| patch.last_key() <= cursor) {
        next if next < run.patches.len() => next,
        _ => 0,
    };
    run.patches.iter().position(deletes).unwrap_or_else(behind)
}

impl Choice {
    /// The number of input patches.
    fn patches(&self) -> usize {
        self.inputs.iter().map(|run| run.patches.len()).sum()
    }

    /// The most free blocks that the merge takes: until it ends, the records of the upper runs,
    /// which stay as long, and the outputs of a part.
    fn blocks(&self, options: &Options) -> usize {
        let below = self.inputs.last().filter(|_| self.overlaps);
        let Some(below) = below.filter(|run| run.lost() == 0) else { return self.patches() };
        let upper = self.patches() - below.patches.len();
        let part = longest(&parts(&below.patches, options.part_blocks));
        self.patches().min(upper + part + SHORT_PATCHES)
    }

    /// The runs of the upper level, and the parts of the merge: one, if there is room for it.
    pub fn into_parts(mut self, options: &Options) -> (Vec<Run>, Vec<Part>) {
        let patches = self.patches();
        let below = self.inputs.pop_if(|_| self.overlaps);
        let most = match &below {
            Some(run) if run.lost() == 0 && patches > options.spare_blocks => options.part_blocks,
            _ => patches,
        };
        let below = below.map(|run| run.patches).unwrap_or_default();
        (self.inputs, parts(&below, most))
    }
}

/// Whether merging a level drops dead data: a single run in level 0 needs a level below, or
/// deletions.
fn worth_merging(tree: &Tree, number: usize) -> bool {
    let Some(level) = tree.levels.get(number) else { return false };
    let has_data = !level.runs.is_empty();
    has_data && (tree.levels.len() > number + 1 || level.runs.len() > 1 || has_garbage(level))
}

fn has_garbage(level: &Level) -> bool {
    level.patches().any(|patch| patch.tombstones() > 0)
}

fn score(tree: &Tree, number: usize, level: &Level, options: &Options) -> f64 {
    if number == 0 {
        return score_of_level0(tree, level, options);
    }
    let target = options.base_bytes * options.fanout.pow(number as u32 - 1);
    level.bytes() as f64 / target as f64
}

/// At least 1 where a merge of level 0 is due: it pays, lookups have to pass too many runs, or
/// writers need their space.
fn score_of_level0(tree: &Tree, level: &Level, options: &Options) -> f64 {
    let runs = level.runs.len();
    if runs < options.level0_runs || options.spare_blocks == 0 {
        return runs as f64 / options.level0_runs as f64;
    }
    (payoff(tree) / PAYING_SHARE).min(1.0).max(runs as f64 / options.gathered_runs as f64)
}

/// The bytes of level 0 that a merge removes, for each byte of level 1 that it rewrites.
pub fn payoff(tree: &Tree) -> f64 {
    let bytes = |level: usize| tree.levels.get(level).map_or(0, |level| level.bytes());
    bytes(0) as f64 / (bytes(1) as f64).max(1.0)
}

/// All runs, where their merge leaves room for writers; otherwise as many as fit beside the flushes
/// meanwhile, up to `limit`; and where few fit beside those, the few that fit at all. The oldest,
/// because runs that stay in level 0 must be newer than the data below.
fn level0(tree: &Tree, options: &Options, limit: usize) -> Option<Choice> {
    let runs = &tree.levels.first()?.runs;
    let of =
        |runs: &[Rc<Run>]| choice(tree, options, 0, runs.iter().map(|run| run.share()).collect());
    let most = options.level0_runs.min(runs.len());
    if planted::bug(Bug::NewestRunsTaken) {
        return runs.get(..most).map(of);
    }
    let all = of(runs);
    if all.patches() <= options.spare_blocks {
        return Some(all);
    }
    let oldest = |count: usize| runs.get(runs.len() - count..).map(of);
    let mut many = (most..=runs.len().min(limit)).rev().filter_map(oldest);
    if let Some(choice) = many.find(|choice| choice.blocks(options) <= options.merge_blocks) {
        return Some(choice);
    }
    let mut fewer = (1..=most).rev().filter_map(oldest);
    fewer.find(|choice| choice.blocks(options) <= options.room_blocks).or_else(|| oldest(1))
}

/// Adds the overlapping patches of the level below to the inputs of `from`.
fn choice(tree: &Tree, options: &Options, from: usize, mut inputs: Vec<Run>) -> Choice {
    let to = from + 1;
    let patches = || inputs.iter().flat_map(|run| &run.patches);
    let first = patches().map(|patch| patch.first_key()).min().unwrap_or_default().to_vec();
    let last = patches().map(|patch| patch.last_key()).max().unwrap_or_default().to_vec();
    let (mut first, mut last, mut overlaps) = (first, last, false);
    if let Some(run) = tree.levels.get(to).and_then(|level| level.runs.first()) {
        let (mut start, end) = match run.lost() {
            0 => (
                run.start_of(&first),
                run.patches.partition_point(|patch| patch.first_key() <= &last[..]),
            ),
            _ => (0, run.patches.len()),
        };
        if start == end && fills(run, start, inputs.iter().map(|run| run.bytes()).sum(), options) {
            start -= 1;
        }
        if start < end {
            let overlapping = clean_cut(run, start, end);
            if let (Some(front), Some(back)) = (overlapping.first(), overlapping.last())
                && !planted::bug(Bug::WidenedPartForgotten)
            {
                first = first.min(front.first_key().to_vec());
                last = last.max(back.last_key().to_vec());
            }
            inputs.push(Run { number: run.number, patches: overlapping });
            overlaps = true;
        }
    }
    let bottom = !tree
        .levels
        .iter()
        .skip(to + 1)
        .flat_map(|level| level.patches())
        .any(|patch| patch.first_key() <= &last[..] && patch.last_key() >= &first[..]);
    Choice { from, to, inputs, overlaps, bottom: bottom || planted::bug(Bug::DeletionsDropped) }
}

/// Whether the patch in front of place `start` and `bytes` of new data, which overlap nothing, are
/// merged into one patch: keys that are written in order would otherwise leave a patch for each
/// flush, and a small patch takes a whole block too. The patch is not much larger than the new
/// data, so that a byte is copied a few times at most until its patch is full.
fn fills(run: &Run, start: usize, bytes: u64, options: &Options) -> bool {
    let neighbour = start.checked_sub(1).and_then(|place| run.patches.get(place));
    neighbour.is_some_and(|neighbour| {
        let both = neighbour.bytes() + bytes;
        both <= options.patch_bytes && neighbour.bytes() <= MOST_COPIED * bytes
    })
}

/// `start..end` of a run, widened so that no key has versions on both sides of the cut: a deletion
/// must be merged with all versions that it deletes.
fn clean_cut(run: &Run, mut start: usize, mut end: usize) -> Vec<Rc<Patch>> {
    let shares_key =
        |left: usize, right: usize| match (run.patches.get(left), run.patches.get(right)) {
            (Some(left), Some(right)) if !planted::bug(Bug::CutNotWidened) => {
                left.last_key() == right.first_key()
            }
            _ => false,
        };
    while start > 0 && shares_key(start - 1, start) {
        start -= 1;
    }
    while end > 0 && shares_key(end - 1, end) {
        end += 1;
    }
    run.patches.get(start..end).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests;
