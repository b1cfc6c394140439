//! Values with lost fragments.

use crate::format::record::Record;
use bytes::Bytes;

/// Replaces each version with missing fragments by a deletion; returns the keys. `records` are in
/// order.
pub(super) fn delete_torn_values(records: &mut Vec<Record>) -> Vec<Bytes> {
    let mut torn = Vec::new();
    let mut kept = Vec::with_capacity(records.len());
    for version in records.chunk_by(|a, b| (&a.key, a.seq) == (&b.key, b.seq)) {
        let Some(first) = version.first() else { continue };
        let in_order = version.iter().zip(0..).all(|(record, number)| record.fragment() == number);
        if in_order && version.len() == usize::from(first.fragments()) {
            kept.extend_from_slice(version);
        } else {
            kept.push(Record::delete(first.key.clone(), first.seq));
            torn.push(first.key.clone());
        }
    }
    *records = kept;
    torn
}
