//! Applies a transaction: checks its reads for conflicts, then makes its writes visible atomically.

use super::admission::Demand;
use super::clear::Clear;
use super::write_room::WriteRoom;
use super::writes::Writes;
use crate::capacity::BYTES_OF_RECORD;
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::value::stored_len;
use crate::kv::memtable::{OVERHEAD_BYTES, Version, bytes_of_fragments};
use crate::layout::Compression;
use crate::options::StoreOptions;
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::counters::Counters;
use crate::shard::log::event::KeyChange;
use crate::shard::log::{Event, Log};
use crate::shard::resources::cache_room::CacheRoom;
use crate::shard::resources::caches::Caches;
use crate::shard::slices::Slices;
use crate::shard::transactions::gate::Gate;
use crate::shard::transactions::history::History;
use crate::shard::transactions::read_mark::ReadMark;
use crate::shard::values::ValueLog;
use crate::value::Entry;
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockLayer;
use std::rc::Rc;

/// Applies the writes of a shard.
pub(crate) struct Committer<'a> {
    gate: &'a Gate,
    history: &'a History,
    slices: &'a Slices,
    log: &'a Log,
    values: &'a ValueLog,
    blocks: &'a BlockLayer,
    options: &'a StoreOptions,
    clock: &'a ExpiryClock,
    caches: &'a Caches,
    cache_room: CacheRoom<'a>,
    counters: &'a Counters,
    room: WriteRoom<'a>,
    clear: Clear<'a>,
}

impl Committer<'_> {
    /// The parts of a shard that writes change.
    pub(crate) fn of(shard: &Shard) -> Committer<'_> {
        let Shard { gate, history, slices, log, values, blocks, options, .. } = shard;
        Committer {
            gate,
            history,
            slices,
            log,
            values,
            blocks,
            options,
            clock: &shard.clock,
            caches: &shard.caches,
            cache_room: shard.cache_room(),
            counters: &shard.counters,
            room: WriteRoom::of(shard),
            clear: Clear::of(shard),
        }
    }

    /// Applies writes of this shard alone; returns their sequence number.
    pub(crate) async fn commit(
        &self,
        writes: Writes,
        marks: &[ReadMark],
        exclusive: bool,
    ) -> Result<u64> {
        loop {
            if !exclusive {
                self.gate.pass().await;
            }
            self.admit_writes(&writes).await?;
            if exclusive || self.gate.is_open() {
                break;
            }
        }
        // No await follows, so no other write comes between the check and the change. An exclusive
        // transaction has read under the gate it holds; a flush since then may have raised
        // `flushed_seq` by the numbers of edits, which is no conflict.
        if !exclusive && marks.iter().any(|mark| mark.is_outdated(self.history, self.slices)) {
            return Err(StoreError::Conflict);
        }
        Ok(self.apply(writes, None))
    }

    /// Waits until the writes are admitted.
    pub(crate) async fn admit_writes(&self, writes: &Writes) -> Result<()> {
        let (mut records, mut inline, mut separated) = (0, 0, 0);
        for (key, entry) in writes.entries() {
            (records, inline) = (records + 1, inline + key.len());
            let Some(Entry { value, .. }) = entry else { continue };
            match self.is_separated(key, value.len()) {
                true => {
                    separated += self.values.space_of(key, value);
                    inline += bytes_of_fragments(key, self.values.most_fragments(key, value));
                }
                false => inline += value.len(),
            }
        }
        let bytes = inline + records * OVERHEAD_BYTES;
        let stored = inline + records * BYTES_OF_RECORD as usize;
        let (grows, clears) = (writes.grow(), writes.clear && !writes.grow());
        self.room.await_admission(Demand { bytes, stored, separated, grows, clears }).await
    }

    /// Writes to the log and the memtables; with a transaction, as a prepare that needs a commit.
    pub(in crate::shard) fn apply(&self, writes: Writes, transaction: Option<u64>) -> u64 {
        let seq = self.history.next_seq();
        let bytes = writes.bytes() as u64;
        let clear = writes.clear;
        let changes: SmallVec<[KeyChange; 1]> = writes
            .into_entries()
            .filter_map(|(key, entry)| {
                // Limits were checked when the transaction took the write.
                let len = entry.as_ref().map_or(0, |entry| entry.value.len());
                let version = match entry {
                    Some(entry) if self.is_separated(&key, len) => {
                        Version::separate(&key, seq, entry, self.values.longest_fragment(&key))
                    }
                    entry => Version::seal_in(&key, seq, entry, self.options.fragment_bytes),
                };
                Some((key, version.ok()?))
            })
            .collect();
        let entries = &changes[..];
        let event = match transaction {
            None => Event::Batch { seq, clear, entries },
            Some(transaction) => Event::Prepare { transaction, seq, clear, entries },
        };
        let segment = self.log.append(&event, seq);
        if clear {
            self.clear.remove_all(seq);
        }
        if clear && transaction.is_none() {
            self.clear.drop_cleared_patches(None);
        }
        self.counters.count_host_bytes(bytes);
        let snapshot = self.history.snapshots().newest();
        for (key, version) in changes {
            self.note_values(&key, &version);
            self.history.touch(&key);
            let Ok(slice) = self.slices.of_key(&key) else { continue };
            let is_new = slice.insert(&key, version, segment, snapshot);
            // A key of a memtable is only in the cache if its value is separated.
            let may_be_cached = is_new || self.values.is_used();
            if may_be_cached && !planted::bug(Bug::CacheKeepsOld) {
                self.caches.remove(&key);
            }
        }
        self.cache_room.fit();
        self.room.start_due_flushes();
        seq
    }

    /// Whether a value of this length goes to a value block. Values of parity groups and of
    /// compressed slices stay in the tree: value blocks have neither parity nor compression.
    fn is_separated(&self, key: &[u8], len: usize) -> bool {
        let is_large = self.options.value_threshold.is_some_and(|least| len >= least.max(1));
        let longest = stored_len(key.len(), len.min(self.options.fragment_bytes));
        is_large
            && longest <= self.blocks.capacity_bytes()
            && !self.blocks.has_parity()
            && self.slices.of_key(key).is_ok_and(|slice| slice.compression == Compression::None)
    }

    /// Gives a separated value to the value log, and notes the death of the one that the key had.
    fn note_values(&self, key: &Bytes, version: &Version) {
        if version.as_separated().is_none() && !self.values.is_used() {
            return;
        }
        let replaced = self.supersede_value(key);
        if let Some(separated) = version.as_separated() {
            let expires_ms = separated.expires_at_ms;
            let ttl_ms = (expires_ms != 0).then(|| expires_ms.saturating_sub(self.clock.now_ms()));
            self.values.write(key, version.seq, separated, ttl_ms, replaced);
        }
    }

    /// The value that a key has is dead. Returns its reference, if it is in a value block.
    fn supersede_value(&self, key: &Bytes) -> Option<Reference> {
        let slice = self.slices.of_key(key).ok()?;
        let before = slice.in_memory(key, |version| version.as_separated().map(Rc::clone));
        if let Some(in_memory) = before {
            let separated = in_memory?;
            self.values.ledger().borrow_mut().supersede(&separated);
            return separated.references()?.first().copied();
        }
        let on_flash = slice.references_on_flash(key);
        let mut ledger = self.values.ledger().borrow_mut();
        on_flash.iter().for_each(|entry| ledger.remove(&entry.reference));
        on_flash.first().map(|entry| entry.reference)
    }
}
