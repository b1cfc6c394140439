//! Tells lost values from dead ones that the ledger lists as live.
//!
//! A start lists the values of versions that a deletion or a small value on flash has superseded:
//! only the key shows that. A value that can be read names its key. The key of one that cannot be
//! read is in the patch that lists its reference, which is read only if a newer patch may have the
//! key too.

use super::ValueLog;
use super::moving::{Current, references_of};
use crate::error::{Result, StoreError, is_data_loss};
use crate::format::patch::ReferenceEntry;
use crate::format::reference::Reference;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::counters::Counters;
use crate::shard::read::lookup::Reader;
use crate::shard::slices::Slices;
use crate::shard::transactions::history::History;
use crate::shard::transactions::read_mark::ReadMark;
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_ftl::Hint;
use std::collections::HashSet;
use std::rc::Rc;

/// A value that cannot be read: its place without its checksum, and the error of the last read.
pub(crate) struct Unreadable {
    pub(crate) place: Reference,
    pub(crate) error: StoreError,
}

/// Examines values of a shard that cannot be read.
pub(crate) struct LossReport<'a> {
    id: ShardId,
    values: &'a ValueLog,
    slices: &'a Slices,
    history: &'a History,
    clock: &'a ExpiryClock,
    counters: &'a Counters,
    reader: Reader<'a>,
    hint: Hint,
}

impl LossReport<'_> {
    /// The parts of a shard that know which values are live.
    pub(crate) fn of(shard: &Shard, hint: Hint) -> LossReport<'_> {
        let Shard { id, values, slices, history, clock, counters, .. } = shard;
        let reader = Reader::of(shard, hint);
        LossReport { id: *id, values, slices, history, clock, counters, reader, hint }
    }

    /// Removes dead values from the ledger, and reports the others as lost. Returns whether there
    /// are any.
    ///
    /// # Errors
    /// Errors of the flash other than lost data.
    pub(crate) async fn examine(&self, unreadable: Vec<Unreadable>) -> Result<bool> {
        let place = |value: &Unreadable| (value.place.block(), value.place.offset());
        let places: HashSet<(u64, u32)> = unreadable.iter().map(place).collect();
        for slice in self.slices.iter() {
            for (patch, suspects) in suspects(slice, &places, self.clock.now_ms()) {
                self.remove_dead(slice, &patch, &suspects).await?;
            }
        }
        let is_live = |value: &Unreadable| self.values.ledger().borrow().is_live(&value.place);
        let mut any = false;
        for Unreadable { error, .. } in unreadable.into_iter().filter(is_live) {
            tracing::error!(shard = self.id.0, %error, "a value cannot be read");
            self.counters.count_data_loss();
            any = true;
        }
        Ok(any)
    }

    /// Removes those references of a patch from the ledger that are not of the newest versions of
    /// their keys. Where the tree cannot be read, they stay.
    async fn remove_dead(
        &self,
        slice: &Slice,
        patch: &Patch,
        suspects: &[Reference],
    ) -> Result<()> {
        let removed = async {
            for (key, reference) in self.keys_of(patch, suspects).await? {
                let current = self.current(slice, key).await?;
                let mut ledger = self.values.ledger().borrow_mut();
                match current.filter(|(references, _)| references.contains(&reference)) {
                    None => ledger.remove(&reference),
                    Some((_, expires_at_ms)) if self.is_over(expires_at_ms) => {
                        ledger.remove_expired(&reference, expires_at_ms);
                    }
                    Some(_) => {}
                }
            }
            Ok(())
        };
        removed.await.or_else(|error| if is_data_loss(&error) { Ok(()) } else { Err(error) })
    }

    fn is_over(&self, expires_at_ms: u64) -> bool {
        expires_at_ms != 0 && expires_at_ms <= self.clock.now_ms()
    }

    /// The keys whose records in the patch have one of these references.
    async fn keys_of(
        &self,
        patch: &Patch,
        sought: &[Reference],
    ) -> Result<Vec<(Bytes, Reference)>> {
        let mut found = Vec::with_capacity(sought.len());
        for number in 0..patch.block_count() {
            for record in patch.read_block(number, self.hint).await?.into_records() {
                let record = record.map_err(|error| patch.damaged(0, &error))?;
                if let Some(reference) = record.reference().filter(|of| sought.contains(of)) {
                    found.push((Bytes::copy_from_slice(&record.key), *reference));
                }
            }
        }
        Ok(found)
    }

    /// The references of the newest version of a key.
    async fn current(&self, slice: &Slice, key: Bytes) -> Result<Current> {
        let mut mark = ReadMark { key, shard: self.id, at_seq: self.history.seq() };
        loop {
            let newest = self.reader.newest_content(slice, &mark.key).await?;
            if !mark.is_outdated(self.history, self.slices) {
                return Ok(references_of(newest));
            }
            mark.at_seq = self.history.seq();
        }
    }
}

/// The references to values in these places that may be dead at `now_ms`, by the patch that lists
/// them: they have expired, or a newer patch may have their key.
fn suspects(
    slice: &Slice,
    places: &HashSet<(u64, u32)>,
    now_ms: u64,
) -> Vec<(Rc<Patch>, Vec<Reference>)> {
    let tree = slice.tree();
    let (mut newer, mut found) = (Vec::<&Rc<Patch>>::new(), Vec::new());
    for run in tree.runs() {
        let is_suspect = |entry: &&ReferenceEntry| {
            let has_expired = entry.expires_at_ms != 0 && entry.expires_at_ms <= now_ms;
            places.contains(&(entry.reference.block(), entry.reference.offset()))
                && (has_expired || newer.iter().any(|patch| patch.may_contain(entry.key.hash)))
        };
        for patch in &run.patches {
            let Ok(index) = patch.index() else { continue };
            let suspects = index.references().entries().iter().filter(is_suspect);
            let suspects: Vec<Reference> = suspects.map(|entry| entry.reference).collect();
            if !suspects.is_empty() {
                found.push((Rc::clone(patch), suspects));
            }
        }
        newer.extend(&run.patches);
    }
    found
}
