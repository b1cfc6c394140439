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
    /// The version whose first fragments are in the whole patch in front.
    pub(super) joined_before: Option<Version>,
    /// The version whose last fragments are in the whole patch behind.
    pub(super) joined_after: Option<Version>,
}

/// A version of a key: the key and the sequence number.
pub(super) type Version = (Bytes, u64);

pub(super) fn version_of(record: &Record) -> Version {
    (record.key.clone(), record.seq)
}

/// A patch of the run.
struct Member {
    patch: Rc<Patch>,
    /// Its first and last readable record.
    edges: Option<(Record, Record)>,
    salvaged: Option<Salvaged>,
    /// It cannot be read completely, so that the fragments at its edges may not be there.
    is_damaged: bool,
}

impl Member {
    /// The first and the last record, if all between them is there.
    fn whole(&self) -> Option<(&Record, &Record)> {
        let edges = self.edges.as_ref().filter(|_| !self.is_damaged);
        edges.map(|(first, last)| (first, last))
    }

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
        let patch = Rc::clone(patch);
        let mut member = Member { patch, edges: None, salvaged: None, is_damaged: false };
        if let Some(problem) = problem_of(&member.patch, source).await {
            member.is_damaged = true;
            member.note_salvaged(salvage(&member.patch, problem, source).await?);
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
    let torn: Vec<usize> = (0..members.len()).filter(|place| is_torn(&members, *place)).collect();
    for torn in torn {
        let Some(member) = members.get_mut(torn) else { break };
        let problem = "it holds a part of a value that has another part in a damaged patch";
        let salvaged = salvage(&member.patch, problem.to_owned(), source).await?;
        member.note_salvaged(salvaged);
    }
    Ok(group(members))
}

async fn edges_of(patch: &Patch) -> Result<Option<(Record, Record)>> {
    let last = patch.block_count().saturating_sub(1);
    let first = patch.read_block(0, Hint::REFRESH).await?.into_records().next();
    let last = patch.read_block(last, Hint::REFRESH).await?.into_records().last();
    Ok(first.and_then(Result::ok).zip(last.and_then(Result::ok)))
}

/// Whether a whole patch begins or ends inside a value of which another part is not there.
fn is_torn(members: &[Member], place: usize) -> bool {
    begins_torn(members, place) || ends_torn(members, place)
}

/// Whether the first value of a whole patch has fragments in front of it that are not there.
fn begins_torn(members: &[Member], place: usize) -> bool {
    let whole = |place: usize| members.get(place).and_then(Member::whole);
    let Some((first, _)) = whole(place) else { return false };
    let before = place.checked_sub(1).and_then(|before| whole(before).map(|edges| (before, edges)));
    first.fragment() > 0
        && !before.is_some_and(|(before, (begin, end))| {
            continues(end, first) && !(is_of(begin, first) && begins_torn(members, before))
        })
}

/// Whether the last value of a whole patch has fragments behind it that are not there.
fn ends_torn(members: &[Member], place: usize) -> bool {
    let whole = |place: usize| members.get(place).and_then(Member::whole);
    let Some((_, last)) = whole(place) else { return false };
    last.fragment() + 1 < last.fragments()
        && !whole(place + 1).is_some_and(|(begin, end)| {
            continues(last, begin) && !(is_of(end, last) && ends_torn(members, place + 1))
        })
}

/// Whether two records are fragments of the same value.
fn is_of(record: &Record, other: &Record) -> bool {
    (&record.key, record.seq) == (&other.key, other.seq)
}

/// Whether a record is the next fragment of a value.
fn continues(before: &Record, after: &Record) -> bool {
    is_of(before, after) && before.fragment() + 1 == after.fragment()
}

fn group(members: Vec<Member>) -> Vec<RewriteRange> {
    let mut ranges: Vec<RewriteRange> = Vec::new();
    // The edges of the member before, and whether the last range is open.
    let (mut before, mut is_open): (Option<(Record, Record)>, bool) = (None, false);
    for Member { edges, salvaged, .. } in members {
        let first = edges.as_ref().map(|(first, _)| first);
        let joined = before.as_ref().zip(first).filter(|((_, last), first)| continues(last, first));
        let joined = joined.map(|(_, first)| version_of(first));
        match (salvaged, ranges.last_mut().filter(|_| is_open)) {
            (Some(salvaged), Some(open)) => open.patches.push(salvaged),
            (Some(salvaged), None) => {
                is_open = true;
                ranges.push(RewriteRange {
                    patches: vec![salvaged],
                    before: before.map(|(_, last)| last.key),
                    after: None,
                    joined_before: joined,
                    joined_after: None,
                });
            }
            (None, Some(open)) => {
                is_open = false;
                open.after = first.map(|first| first.key.clone());
                open.joined_after = joined;
            }
            (None, None) => {}
        }
        before = edges;
    }
    ranges
}
