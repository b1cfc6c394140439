//! The slices of a shard.

use crate::error::{Result, StoreError};
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use softflash_base::{ShardId, SliceId};
use std::ops::Deref;

/// A shard's slices, in order of their ids.
pub(super) struct Slices {
    shard: ShardId,
    layout: StoreLayout,
    slices: Vec<Slice>,
}

impl Slices {
    /// The slices of `shard`.
    pub(super) fn new(shard: ShardId, layout: StoreLayout, slices: Vec<Slice>) -> Slices {
        Slices { shard, layout, slices }
    }

    /// The slice with this id.
    ///
    /// # Errors
    /// The slice does not belong to this shard.
    pub(super) fn with_id(&self, id: SliceId) -> Result<&Slice> {
        let first = self.slices.first().map_or(0, |slice| slice.id.0);
        let place = usize::from(id.0.wrapping_sub(first));
        self.slices.get(place).ok_or_else(|| {
            StoreError::Unusable(format!("slice {id} does not belong to shard {}", self.shard))
        })
    }

    /// The slice of a key of this shard.
    ///
    /// # Errors
    /// The key does not belong to this shard.
    pub(super) fn of_key(&self, key: &[u8]) -> Result<&Slice> {
        match self.slices.as_slice() {
            [only] => Ok(only),
            _ => self.with_id(self.layout.slice_of(key)),
        }
    }

    /// Bytes of the active memtables.
    pub(super) fn active_bytes(&self) -> usize {
        self.slices.iter().map(Slice::active_bytes).sum()
    }

    /// Bytes of all memtables.
    pub(super) fn memtable_bytes(&self) -> usize {
        self.slices.iter().map(Slice::memtable_bytes).sum()
    }
}

impl Deref for Slices {
    type Target = [Slice];

    fn deref(&self) -> &[Slice] {
        &self.slices
    }
}

impl<'a> IntoIterator for &'a Slices {
    type Item = &'a Slice;
    type IntoIter = std::slice::Iter<'a, Slice>;

    fn into_iter(self) -> Self::IntoIter {
        self.slices.iter()
    }
}
