//! Values with lost fragments.

use super::rewrite_range::{Version, version_of};
use crate::format::record::Record;
use bytes::Bytes;

/// Replaces each version with missing fragments by a deletion; returns the keys. `records` are in
/// order. The first fragments of the version `before`, and the last ones of `after`, are in patches
/// that are not rewritten.
pub(super) fn delete_torn_values(
    records: &mut Vec<Record>,
    before: Option<&Version>,
    after: Option<&Version>,
) -> Vec<Bytes> {
    let mut torn = Vec::new();
    let mut kept = Vec::with_capacity(records.len());
    for version in records.chunk_by(|a, b| (&a.key, a.seq) == (&b.key, b.seq)) {
        let (Some(first), Some(last)) = (version.first(), version.last()) else { continue };
        let is_joined = |to: Option<&Version>| to.is_some_and(|to| *to == version_of(first));
        let begins = first.fragment() == 0 || is_joined(before);
        let ends = last.fragment() + 1 == last.fragments() || is_joined(after);
        let mut numbers = version.iter().zip(first.fragment()..);
        let in_order = numbers.all(|(record, number)| record.fragment() == number);
        if begins && ends && in_order {
            kept.extend_from_slice(version);
        } else {
            kept.push(Record::delete(first.key.clone(), first.seq));
            torn.push(first.key.clone());
        }
    }
    *records = kept;
    torn
}
