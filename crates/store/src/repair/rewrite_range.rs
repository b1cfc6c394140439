//! Chooses the patches of a run that are rewritten together: damaged patches, and patches with a
//! part of a value that has other parts in damaged ones.

use super::salvage::{Salvaged, Source, problem_of, salvage};
use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::tree::Run;
use bytes::Bytes;
use softflash_ftl::Hint;
use std::cmp::Ordering;
use std::rc::Rc;

/// Neighbours in a run that are rewritten together.
pub(super) struct RewriteRange {
    pub(super) patches: Vec<Salvaged>,
    /// The last key of the whole patch in front.
    pub(super) before: Option<Bytes>,
    /// The first key of the whole patch behind.
    pub(super) after: Option<Bytes>,
}

/// A patch of the run.
struct Member {
    patch: Rc<Patch>,
    /// Its first and last readable record.
    edges: Option<(Record, Record)>,
    salvaged: Option<Salvaged>,
}

impl Member {
    fn first_key(&self) -> &[u8] {
        match (&self.edges, self.patch.index()) {
            (Some((first, _)), _) => &first.key,
            (None, Ok(index)) => index.first_key(),
            (None, Err(_)) => &[],
        }
    }

    fn order(&self, other: &Member) -> Ordering {
        match (&self.edges, &other.edges) {
            (Some((a, _)), Some((b, _))) => a.order(b),
            _ => self.first_key().cmp(other.first_key()),
        }
    }

    fn note_salvaged(&mut self, salvaged: Salvaged) {
        let (first, last) = (salvaged.records.first(), salvaged.records.last());
        self.edges = first.cloned().zip(last.cloned());
        self.salvaged = Some(salvaged);
    }
}

/// The ranges of a run that must be rewritten, in key order.
pub(super) async fn rewrite_ranges_of(run: &Run, source: &Source<'_>) -> Result<Vec<RewriteRange>> {
    let mut members = Vec::new();
    for patch in &run.patches {
        let mut member = Member { patch: Rc::clone(patch), edges: None, salvaged: None };
        if let Some(problem) = problem_of(patch, source).await {
            member.note_salvaged(salvage(patch, problem, source).await?);
        }
        members.push(member);
    }
    if members.iter().all(|member| member.salvaged.is_none()) {
        return Ok(Vec::new());
    }
    for member in members.iter_mut().filter(|member| member.salvaged.is_none()) {
        member.edges = edges_of(&member.patch).await?;
    }
    members.sort_by(Member::order);
    while let Some(torn) = (0..members.len()).find(|place| is_torn(&members, *place)) {
        let Some(member) = members.get_mut(torn) else { break };
        let problem = "it holds a part of a value that has another part in a damaged patch";
        let salvaged = salvage(&member.patch, problem.to_owned(), source).await?;
        member.note_salvaged(salvaged);
    }
    Ok(group(members))
}

async fn edges_of(patch: &Patch) -> Result<Option<(Record, Record)>> {
    let last = patch.block_count().saturating_sub(1);
    let first = patch.read_block(0, Hint::COMPACTION).await?.into_records().next();
    let last = patch.read_block(last, Hint::COMPACTION).await?.into_records().last();
    Ok(first.and_then(Result::ok).zip(last.and_then(Result::ok)))
}

/// Whether a whole patch begins or ends inside a value whose other parts are not in its whole
/// neighbours.
fn is_torn(members: &[Member], place: usize) -> bool {
    let whole = |place: Option<usize>| {
        let member = place.and_then(|place| members.get(place))?;
        member.salvaged.is_none().then_some(member.edges.as_ref()).flatten()
    };
    let Some((first, last)) = whole(Some(place)) else { return false };
    let continues = |before: &Record, after: &Record| {
        (&before.key, before.seq, before.fragment() + 1)
            == (&after.key, after.seq, after.fragment())
    };
    let begun = first.fragment() > 0
        && !whole(place.checked_sub(1)).is_some_and(|(_, before)| continues(before, first));
    let unfinished = last.fragment() + 1 < last.fragments()
        && !whole(Some(place + 1)).is_some_and(|(after, _)| continues(last, after));
    begun || unfinished
}

fn group(members: Vec<Member>) -> Vec<RewriteRange> {
    let mut ranges = Vec::new();
    let (mut open, mut before): (Vec<Salvaged>, Option<Bytes>) = (Vec::new(), None);
    for Member { edges, salvaged, .. } in members {
        match (salvaged, edges) {
            (Some(salvaged), _) => open.push(salvaged),
            (None, edges) => {
                let (first, last) = edges.map(|(first, last)| (first.key, last.key)).unzip();
                if !open.is_empty() {
                    let patches = std::mem::take(&mut open);
                    ranges.push(RewriteRange { patches, before: before.take(), after: first });
                }
                before = last;
            }
        }
    }
    if !open.is_empty() {
        ranges.push(RewriteRange { patches: open, before, after: None });
    }
    ranges
}
