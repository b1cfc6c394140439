//! Reads the remaining records of a damaged patch.

use super::image::{self, Piece};
use super::report::{Bound, LostRange};
use crate::check::check_patch;
use crate::error::Result;
use crate::error::is_data_loss;
use crate::format::patch::{Block, PatchIndex};
use crate::format::record::Record;
use crate::headless::Headless;
use crate::kv::patch::Patch;
use softflash_blocks::BlockLayer;
use softflash_ftl::{Hint, Superblock};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The flash that patches are salvaged from.
pub(super) struct Source<'a> {
    /// The known blocks.
    pub(super) blocks: &'a BlockLayer,
    /// Superblocks whose block is unknown.
    pub(super) unknown: &'a [Superblock],
    /// Superblocks whose erase header is lost.
    pub(super) headless: &'a Headless,
}

/// The readable records of a patch, and its gaps.
pub(super) struct Salvaged {
    pub(super) patch: Rc<Patch>,
    /// Its damage.
    pub(super) problem: String,
    /// In order.
    pub(super) records: Vec<Record>,
    /// The indexes of records with lost records before them.
    gaps: BTreeSet<usize>,
    /// Records that it held, if known.
    pub(super) entries: Option<u64>,
    /// Lost blocks, if known.
    pub(super) blocks_lost: Option<u64>,
}

impl Salvaged {
    fn empty(patch: &Rc<Patch>, problem: String) -> Salvaged {
        Salvaged {
            patch: Rc::clone(patch),
            problem,
            records: Vec::new(),
            gaps: BTreeSet::new(),
            entries: None,
            blocks_lost: None,
        }
    }

    fn note_gap(&mut self) {
        self.gaps.insert(self.records.len());
    }

    /// Adds the records of a block, except records of the key `lost`, whose newer versions are
    /// lost.
    fn take(&mut self, block: Block, lost: Option<&[u8]>) {
        for record in block.into_records() {
            let Ok(record) = record else {
                self.note_gap();
                continue;
            };
            let last = self.records.last();
            let in_order = last.is_none_or(|last| last.order(&record) == Ordering::Less);
            if !in_order || lost.is_some_and(|lost| *lost == record.key) {
                self.note_gap();
                continue;
            }
            self.records.push(record);
        }
    }

    /// The ranges of the lost records, in a patch whose neighbours end with `before` and begin with
    /// `after`.
    pub(super) fn ranges(&self, before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<LostRange> {
        let index = self.patch.index().ok();
        let key = |place: usize| self.records.get(place).map(|record| &record.key[..]);
        // A patch without readable records may have been anywhere in its run.
        let has_place = !self.records.is_empty();
        let outside = |key: Option<&[u8]>| match key {
            Some(key) if has_place => Bound::Exclusive(key.into()),
            _ => Bound::Open,
        };
        let range = |gap: &usize| {
            let from = match (gap.checked_sub(1).and_then(key), index) {
                (Some(key), _) => Bound::Exclusive(key.into()),
                (None, Some(index)) => Bound::Inclusive(index.first_key().into()),
                (None, None) => outside(before),
            };
            let to = match (key(*gap), index) {
                (Some(key), _) => Bound::Exclusive(key.into()),
                (None, Some(index)) => Bound::Inclusive(index.last_key().into()),
                (None, None) => outside(after),
            };
            let is_last = has_place && *gap == self.records.len();
            LostRange { from, to, is_certain: self.entries.is_some() || !is_last }
        };
        self.gaps.iter().map(range).collect()
    }

    /// The widest bounds of each gap.
    pub(super) fn gap_bounds(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.gaps.iter().map(|gap| {
            let key = |place: usize| self.records.get(place).map(|record| &record.key[..]);
            let from = gap.checked_sub(1).and_then(key).unwrap_or(self.patch.first_key());
            (from, key(*gap).unwrap_or(self.patch.last_key()))
        })
    }
}

/// The damage of a patch, if any.
pub(super) async fn problem_of(patch: &Patch, source: &Source<'_>) -> Option<String> {
    if let Err(problem) = check_patch(patch, &mut Default::default()).await {
        return Some(problem);
    }
    if let Some(problem) = source.blocks.copy_problem(patch.id()) {
        return Some(problem);
    }
    source.headless.problem(source.blocks, patch.id())
}

/// Reads all readable records of a patch.
pub(super) async fn salvage(
    patch: &Rc<Patch>,
    problem: String,
    source: &Source<'_>,
) -> Result<Salvaged> {
    match patch.index() {
        Ok(index) => by_index(patch, index, problem).await,
        Err(_) => without_index(patch, problem, source).await,
    }
}

async fn by_index(patch: &Rc<Patch>, index: &PatchIndex, problem: String) -> Result<Salvaged> {
    let mut salvaged = Salvaged::empty(patch, problem);
    let (mut lost, mut after_gap) = (0, false);
    for number in 0..index.block_count() {
        match patch.read_block(number, Hint::REFRESH).await {
            Ok(block) => {
                let first = block.records().next().and_then(Result::ok);
                let split = (after_gap && index.is_continued(number)).then_some(first).flatten();
                salvaged.take(block, split.as_ref().map(|record| &record.key[..]));
                after_gap = false;
            }
            Err(error) if is_data_loss(&error) => {
                salvaged.note_gap();
                lost += 1;
                after_gap = true;
            }
            Err(error) => return Err(error),
        }
    }
    salvaged.entries = Some(index.entries());
    salvaged.blocks_lost = Some(lost);
    Ok(salvaged)
}

/// Searches for blocks in the patch's superblock or, if that is unknown, in all superblocks whose
/// block is unknown.
async fn without_index(
    patch: &Rc<Patch>,
    mut problem: String,
    source: &Source<'_>,
) -> Result<Salvaged> {
    let identity = source.blocks.identity(patch.id());
    let known = source.blocks.superblocks(patch.id());
    let candidates = if known.is_empty() { source.unknown } else { &known };
    for superblock in candidates {
        let image = image::read(source.blocks, superblock).await?;
        let Some(walked) = image::walk(&image, source.blocks.page_bytes(), identity) else {
            continue;
        };
        if known.is_empty() {
            problem = format!("it is in {superblock}, whose opening header is damaged");
        }
        let mut salvaged = Salvaged::empty(patch, problem);
        let mut blocks = 0;
        for piece in walked.pieces {
            match piece {
                Piece::Gap => salvaged.note_gap(),
                Piece::Block(block) => {
                    blocks += 1;
                    salvaged.take(block, None);
                }
            }
        }
        salvaged.entries = walked.header.map(|header| header.entries.into());
        salvaged.blocks_lost =
            walked.header.map(|header| u64::from(header.blocks).saturating_sub(blocks));
        return Ok(salvaged);
    }
    let mut salvaged = Salvaged::empty(patch, problem);
    salvaged.note_gap();
    Ok(salvaged)
}
