//! Moves the live values of a block to other blocks.
//!
//! A moved value gets a new version with the new reference, in the log and in the memtable, unless
//! a client has written the key meanwhile.

use super::reading::read_unnamed;
use super::{ValueLog, extent};
use crate::error::{Result, StoreError, is_data_loss};
use crate::format::log::event::Event;
use crate::format::reference::Reference;
use crate::format::separated::{References, Separated};
use crate::format::value::StoredValue;
use crate::format::version::{Content, Version};
use crate::shard::Shard;
use crate::shard::admission::Throttle;
use crate::shard::clock::ExpiryClock;
use crate::shard::counters::Counters;
use crate::shard::history::History;
use crate::shard::log::Log;
use crate::shard::read::{Newest, Reader};
use crate::shard::read_mark::ReadMark;
use crate::shard::slices::Slices;
use crate::shard::tasks::Tasks;
use crate::shard::write_room::WriteRoom;
use crate::value::{Entry, Value};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::select;
use futures_util::stream::FuturesUnordered;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Values that are moved at the same time.
pub(super) const MOVES: usize = 16;
/// The most bytes of a read of neighbouring values, and the largest gap between them that is read
/// as well.
const READ_BYTES: usize = 1 << 20;
const READ_GAP: usize = 32 << 10;
/// How often the collector checks for room in memtables and log, in addition to notifications.
const PAUSE_FOR_ROOM: Duration = Duration::from_millis(20);

/// Moves values of a shard.
pub(crate) struct Mover<'a> {
    id: ShardId,
    runtime: &'a RuntimeHandle,
    blocks: &'a BlockLayer,
    values: &'a ValueLog,
    slices: &'a Slices,
    history: &'a History,
    log: &'a Log,
    clock: &'a ExpiryClock,
    tasks: &'a Tasks,
    counters: &'a Counters,
    /// Throttles writers of separated values.
    throttle: &'a Throttle,
    reader: Reader<'a>,
    room: WriteRoom<'a>,
}

/// A moved value that no version refers to: dead when this is dropped.
struct Unapplied<'a> {
    values: &'a ValueLog,
    moved: Option<Rc<Separated>>,
}

impl Drop for Unapplied<'_> {
    fn drop(&mut self) {
        if let Some(moved) = &self.moved {
            self.values.ledger().borrow_mut().supersede(moved);
        }
    }
}

/// Consecutive values of a block that are read together.
struct Extent {
    start: usize,
    end: usize,
    values: Vec<(u32, u32)>,
}

impl Mover<'_> {
    /// The parts of a shard that have values.
    pub(crate) fn of(shard: &Shard) -> Mover<'_> {
        let Shard { id, runtime, blocks, values, slices, history, log, .. } = shard;
        Mover {
            id: *id,
            runtime,
            blocks,
            values,
            slices,
            history,
            log,
            clock: &shard.clock,
            tasks: &shard.tasks,
            counters: &shard.counters,
            throttle: &shard.throttle_values,
            reader: Reader::of(shard),
            room: WriteRoom::of(shard),
        }
    }

    /// Moves all live values of a block.
    pub(crate) async fn empty_block(&self, block: u64) -> Result<()> {
        let (began, live) = (self.runtime.now(), self.values.ledger().borrow().live_in(block));
        let Some(handle) = self.values.ledger().borrow().handle(block) else { return Ok(()) };
        let born = self.values.ledger().borrow().born(&Reference::new(block, 0, 0, 0));
        let bytes: u64 = live.iter().map(|(_, len)| u64::from(*len)).sum();
        self.blocks.clear_refresh(BlockId(block));
        let mut moves = FuturesUnordered::new();
        for group in extents(&live) {
            for (reference, stored) in self.read_extent(block, &group).await? {
                self.wait_for_room().await?;
                moves.push(self.move_value(reference, stored, born.unwrap_or(0)));
                if moves.len() >= MOVES
                    && let Some(moved) = moves.next().await
                {
                    moved?;
                }
            }
        }
        while let Some(moved) = moves.next().await {
            moved?;
        }
        drop(handle);
        let freed = (self.blocks.capacity_bytes() as u64).saturating_sub(bytes);
        self.throttle.note_flush(freed, self.runtime.now().since_ns(began));
        Ok(())
    }

    /// Waits while memtables or log are too long for more moves: nothing else holds the collector
    /// back, and a log that grows faster than flushes shorten it takes the last free block.
    async fn wait_for_room(&self) -> Result<()> {
        loop {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            self.room.check()?;
            // A repair runs without the tasks that make room.
            if self.room.takes_moves() || !self.tasks.are_running() {
                return Ok(());
            }
            self.room.make();
            let wait = self.runtime.sleep_until(self.runtime.now() + PAUSE_FOR_ROOM);
            select(wait, pin!(self.tasks.room_announced())).await;
        }
    }

    /// Reads neighbouring values. A value that cannot be read is reported, and its block is kept.
    async fn read_extent(
        &self,
        block: u64,
        group: &Extent,
    ) -> Result<Vec<(Reference, StoredValue)>> {
        let (id, page) = (BlockId(block), self.blocks.page_bytes());
        let identity = self.blocks.identity(id);
        let (first, end) = (group.start / page, group.end.div_ceil(page));
        let pages = (end - first) as u32;
        let read = self.blocks.read(id, first as u32, pages, Hint::COMPACTION).await;
        let all = read.map(|pages| Bytes::copy_from_slice(&pages)).unwrap_or_default();
        let mut found = Vec::with_capacity(group.values.len());
        for place in group.values.iter().copied() {
            let (offset, len) = extent(place);
            let start = offset - first * page;
            let bytes = all.get(start..start + len).map(|_| all.slice(start..start + len));
            let stored = match StoredValue::decode(&bytes.unwrap_or_default(), identity, place.0) {
                Ok(stored) => Ok(stored),
                Err(_) => {
                    // Alone, and from another copy where the first one is damaged.
                    let place = Reference::new(block, place.0, place.1, 0);
                    read_unnamed(self.blocks, &place, Hint::COMPACTION).await
                }
            };
            match stored {
                Ok(stored) => {
                    let reference = Reference::new(block, place.0, place.1, stored.checksum);
                    found.push((reference, stored));
                }
                Err(error) if is_data_loss(&error) => {
                    tracing::error!(shard = self.id.0, %error, "a value is lost; its block is kept");
                    self.counters.count_data_loss();
                    self.values.ledger().borrow_mut().keep(block);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Moves a value to the block of its stream, if it is the value of its key.
    async fn move_value(&self, old: Reference, stored: StoredValue, born: u64) -> Result<()> {
        if !self.values.ledger().borrow().is_live(&old) {
            return Ok(());
        }
        let StoredValue { key, expires_at_ms, value, .. } = stored.clone();
        if expires_at_ms != 0 && expires_at_ms <= self.clock.now_ms() {
            self.values.ledger().borrow_mut().remove_expired(&old, expires_at_ms);
            return Ok(());
        }
        let entry = Entry { value: Value::from(value), expires_at_ms };
        let moved = Rc::new(Separated::waiting(&key, entry));
        let mut unapplied = Unapplied { values: self.values, moved: Some(Rc::clone(&moved)) };
        self.values.move_value(&stored, &moved, born);
        let new = loop {
            if let Some(new) = moved.references() {
                break new;
            }
            if moved.is_given_up.get() {
                return Err(StoreError::OutOfSpace);
            }
            self.values.check()?;
            self.values.progress().notified().await;
        };
        let Some(new) = new.first().copied() else { return Ok(()) };
        loop {
            let at_seq = self.history.seq();
            let current = self.current_references(&key).await?;
            let mark = ReadMark { key: key.clone(), shard: self.id, at_seq };
            if mark.is_outdated(self.history, self.slices) {
                continue;
            }
            let place = current.as_ref().and_then(|(references, _)| {
                references.iter().position(|reference| *reference == old)
            });
            let (Some(place), Some((mut references, expires_at_ms))) = (place, current) else {
                if planted::bug(Bug::MovedOverWrite) {
                    unapplied.moved = None;
                    self.apply_move(key, old, [new].into_iter().collect(), expires_at_ms);
                    return Ok(());
                }
                // A client has written the key, or the ledger did not know that it had.
                self.values.ledger().borrow_mut().remove(&old);
                return Ok(());
            };
            if let Some(reference) = references.get_mut(place) {
                *reference = new;
            }
            unapplied.moved = None;
            self.apply_move(key, old, references, expires_at_ms);
            return Ok(());
        }
    }

    /// The references of the newest version of a key, and its expiry.
    async fn current_references(&self, key: &Bytes) -> Result<Option<(References, u64)>> {
        let slice = self.slices.of_key(key)?;
        let newest = match slice.in_memory(key, |version| version.content().clone()) {
            Some(content) => Some(content),
            None => {
                self.reader.find_on_flash(slice, key).await?.map(|Newest { content, .. }| content)
            }
        };
        let Some(Content::Separated(separated)) = newest else { return Ok(None) };
        Ok(separated.references().map(|references| (references, separated.expires_at_ms)))
    }

    /// Gives a key the version with the moved value.
    fn apply_move(&self, key: Bytes, old: Reference, references: References, expires_at_ms: u64) {
        let Ok(slice) = self.slices.of_key(&key) else { return };
        let seq = self.history.next_seq();
        let separated = Separated::placed(references, expires_at_ms);
        let version = Version::separated(seq, Rc::new(separated));
        let change = [(key, version)];
        let event = Event::Batch { seq, clear: false, entries: &change };
        let segment = self.log.append(&event, seq);
        self.values.ledger().borrow_mut().remove(&old);
        let snapshot = self.history.snapshots().newest();
        for (key, version) in change {
            slice.insert(&key, version, segment, snapshot);
        }
        self.room.start_due_flushes();
    }
}

/// Groups values, in order of their offsets, for reads of at most [`READ_BYTES`].
fn extents(live: &[(u32, u32)]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for place in live.iter().copied() {
        let (start, len) = extent(place);
        let end = start + len;
        match extents.last_mut() {
            Some(last) if start - last.end <= READ_GAP && end - last.start <= READ_BYTES => {
                last.end = end;
                last.values.push(place);
            }
            _ => extents.push(Extent { start, end, values: vec![place] }),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_values_are_read_together_up_to_a_mebibyte() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let live = [(0, 100), (100, 100), (40 * kib, 100), (2 * mib, mib), (3 * mib, 10)];
        let found: Vec<_> = extents(&live).iter().map(|e| (e.start, e.values.len())).collect();
        let expected = [(0, 2), (40 << 10, 1), (2 << 20, 1), (3 << 20, 1)];
        assert_eq!(found, expected);
    }
}
