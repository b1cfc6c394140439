//! The collector: moves the live values of blocks with few of them, and deletes empty blocks.
//!
//! A moved value gets a new version with the new reference, in the log and in the memtable, unless
//! a client has written the key meanwhile. The old block is deleted once all events up to then are
//! durable and decided, because until then a recovery may need it, and once no scan needs it.

use super::frontier::FREE_FOR_LOG;
use super::ledger::Empty;
use super::reading::read_unnamed;
use super::{ValueLog, extent, victim};
use crate::error::{Result, StoreError, is_data_loss};
use crate::format::log::event::Event;
use crate::format::reference::Reference;
use crate::format::separated::{References, Separated};
use crate::format::value::StoredValue;
use crate::format::version::{Content, Version};
use crate::shard::commit::ReadMark;
use crate::shard::read::Newest;
use crate::shard::{Shard, count};
use crate::value::{Entry, Value};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
use softflash_ftl::Hint;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Free blocks by which the collector keeps ahead of the writers: this share of all blocks, as a
/// divisor, and at least so many. They are lost to the data, so that there are few.
const LEAD_SHARE: u32 = 128;
const LEAST_LEAD: u32 = 3;
/// Values that are moved at the same time.
const MOVES: usize = 16;
/// The most bytes of a read of neighbouring values, and the largest gap between them that is read
/// as well.
const READ_BYTES: usize = 1 << 20;
const READ_GAP: usize = 32 << 10;
/// The pause after an error, and while scans need deleted blocks.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
const PAUSE_FOR_SCANS: Duration = Duration::from_millis(5);
/// How often the collector checks for room in memtables and log, in addition to notifications.
const PAUSE_FOR_ROOM: Duration = Duration::from_millis(20);
/// The weight of the last block in the average lifetime of short-lived blocks, as a divisor.
const LIFETIME_WEIGHT: u64 = 16;

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

impl Shard {
    /// Collects until the shard closes.
    pub(in crate::shard) async fn collect_forever(&self) {
        while !self.tasks.closing.get() {
            match self.collect_once().await {
                Ok(true) => {}
                Ok(false) => self.wait_for_garbage().await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(shard = self.id.0, %error, "a value block could not be collected");
                    let resume_at = self.runtime.now() + PAUSE_AFTER_ERROR;
                    let closed = self.tasks.collect.notified();
                    select(self.runtime.sleep_until(resume_at), pin!(closed)).await;
                }
            }
        }
    }

    /// Waits for a notification, the durability of the events before a deletion, or an expiry.
    async fn wait_for_garbage(&self) {
        self.collector.is_idle.set(true);
        self.tasks.room.notify_all();
        let notified = pin!(self.tasks.collect.notified());
        let next = self.collector.retiring.borrow().front().map(|(seq, _)| *seq);
        let next_expiry_ms = self.values.ledger().borrow().next_expiry_ms();
        if let Some(seq) = next {
            match self.log.is_stable(seq) {
                true => {
                    let resume_at = self.runtime.now() + PAUSE_FOR_SCANS;
                    select(self.runtime.sleep_until(resume_at), notified).await;
                }
                false => {
                    if let Either::Left((Err(_), notified)) =
                        select(pin!(self.log.stable(seq)), notified).await
                    {
                        notified.await;
                    }
                }
            }
        } else if let Some(expires_ms) = next_expiry_ms {
            let after = Duration::from_millis(expires_ms.saturating_sub(self.now_ms()).max(1));
            select(self.runtime.sleep_until(self.runtime.now() + after), notified).await;
        } else {
            notified.await;
        }
        self.collector.is_idle.set(false);
    }

    /// Does a step of work. Returns whether there was one.
    pub(crate) async fn collect_once(&self) -> Result<bool> {
        self.take_empty();
        if self.retire().await? {
            return Ok(true);
        }
        let Some(victim) = self.choose_victim() else { return Ok(false) };
        self.collect_block(victim).await?;
        Ok(true)
    }

    /// Moves blocks that no value keeps to the list of blocks to delete.
    fn take_empty(&self) {
        let empty = self.values.ledger().borrow_mut().take_empty(self.now_ms());
        for empty in empty {
            self.values.note_lifetime(&empty);
            let seq = self.history.seq.get();
            self.collector.retiring.borrow_mut().push_back((seq, empty));
        }
    }

    /// Deletes blocks that neither a recovery nor a scan needs. Returns whether there were any.
    async fn retire(&self) -> Result<bool> {
        let mut any = false;
        loop {
            let next = {
                let retiring = self.collector.retiring.borrow();
                retiring.front().map(|(seq, empty)| (*seq, empty.expired_ms))
            };
            let Some((seq, expired_ms)) = next else { break };
            if !planted::bug(Bug::ValueBlockFreedEarly) {
                if !self.log.is_stable(seq) {
                    if !self.values_need_space() {
                        break;
                    }
                    self.log.stable_soon(seq).await?;
                }
                if expired_ms > 0 && !self.clock.is_logged(expired_ms) {
                    self.log.request_clock();
                    self.log.clock_logged(expired_ms).await?;
                }
            }
            // Also a scan that has seen the last write: its values may have expired since.
            if self.history.snapshots.oldest().is_some_and(|oldest| oldest <= seq)
                && !planted::bug(Bug::ValueBlockFreedUnderScan)
            {
                break;
            }
            let retired = self.collector.retiring.borrow_mut().pop_front();
            if let Some((_, empty)) = retired {
                empty.handle.retire();
                any = true;
            }
        }
        if any {
            self.tasks.room.notify_all();
        }
        Ok(any)
    }

    /// The block to collect next: one that is hard to read, or, where space is short, the policy's
    /// choice.
    fn choose_victim(&self) -> Option<u64> {
        // Each move is logged, so that it leads to a flush, whose patch takes a whole block however
        // small it is. Where compaction does not keep up, the moves would take the space that it
        // needs to merge these patches.
        if self.compaction_lags() {
            return None;
        }
        let ledger = self.values.ledger().borrow();
        if self.blocks.any_needs_refresh() && self.can_rebuild() {
            let mut ids = ledger.candidates().map(|candidate| candidate.block);
            if let Some(id) = ids.find(|id| self.blocks.needs_refresh(BlockId(*id))) {
                return Some(id);
            }
        }
        // Without room for a block of moved values the collector has no work.
        if !self.values_need_space() || self.blocks.free_blocks() <= FREE_FOR_LOG {
            return None;
        }
        let size = (self.blocks.capacity_bytes() as u64, self.blocks.page_bytes() as u64);
        let chosen = victim::choose(ledger.candidates(), size, self.values.clock());
        chosen.map(|chosen| chosen.block)
    }

    /// Free blocks below which the collector works: it keeps ahead of the writers, so that they
    /// never wait for a whole block.
    pub(in crate::shard) fn collect_below(&self) -> u32 {
        let share = self.blocks.total_blocks() / LEAD_SHARE;
        self.reserve_blocks() + share.max(LEAST_LEAD)
    }

    /// Whether free space is so short that blocks should be collected.
    pub(in crate::shard) fn values_need_space(&self) -> bool {
        self.blocks.free_blocks() < self.collect_below()
    }

    /// Whether something can be taken back: blocks wait for their deletion, are worth collecting,
    /// or expire within this time.
    pub(in crate::shard) fn has_value_garbage(&self, within: Duration) -> bool {
        let by_ms = self.now_ms() + within.as_millis() as u64;
        let ledger = self.values.ledger().borrow();
        !self.collector.retiring.borrow().is_empty()
            || !self.collector.is_idle.get() && !ledger.is_empty()
            || ledger.next_expiry_ms().is_some_and(|expires_ms| expires_ms <= by_ms)
    }

    /// Moves the live values of all blocks that take no more values, and deletes the blocks.
    ///
    /// # Errors
    /// Errors of the flash and of the log.
    pub async fn collect(&self) -> Result<()> {
        let blocks: Vec<u64> = {
            let ledger = self.values.ledger().borrow();
            ledger.candidates().map(|candidate| candidate.block).collect()
        };
        for block in blocks {
            self.collect_block(block).await?;
        }
        self.log.stable_soon(self.history.seq.get()).await?;
        while self.collect_once().await? {}
        Ok(())
    }

    /// Moves all live values of a block.
    pub(crate) async fn collect_block(&self, block: u64) -> Result<()> {
        let (began, live) = (self.runtime.now(), self.values.ledger().borrow().live_in(block));
        let Some(handle) = self.values.ledger().borrow().handle(block) else { return Ok(()) };
        let born = self.values.ledger().borrow().born(&Reference::new(block, 0, 0, 0));
        let bytes: u64 = live.iter().map(|(_, len)| u64::from(*len)).sum();
        self.blocks.clear_refresh(BlockId(block));
        let mut moves = FuturesUnordered::new();
        for group in extents(&live) {
            for (reference, stored) in self.read_extent(block, &group).await? {
                self.wait_for_room_to_move().await?;
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
        self.throttle_values.note_flush(freed, self.runtime.now().since_ns(began));
        Ok(())
    }

    /// Waits while memtables or log are too long for more moves: nothing else holds the collector
    /// back, and a log that grows faster than flushes shorten it takes the last free block.
    async fn wait_for_room_to_move(&self) -> Result<()> {
        loop {
            if self.tasks.closing.get() {
                return Err(StoreError::Closed);
            }
            self.check_health()?;
            // A repair runs without the tasks that make room.
            if self.has_room_to_move() || self.tasks.running.get() == 0 {
                return Ok(());
            }
            self.freeze_largest();
            self.tasks.flush.notify_one();
            let wait = self.runtime.sleep_until(self.runtime.now() + PAUSE_FOR_ROOM);
            select(wait, pin!(self.tasks.room.notified())).await;
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
                    read_unnamed(&self.blocks, &place, Hint::COMPACTION).await
                }
            };
            match stored {
                Ok(stored) => {
                    let reference = Reference::new(block, place.0, place.1, stored.checksum);
                    found.push((reference, stored));
                }
                Err(error) if is_data_loss(&error) => {
                    tracing::error!(shard = self.id.0, %error, "a value is lost; its block is kept");
                    count_loss(self);
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
        if expires_at_ms != 0 && expires_at_ms <= self.now_ms() {
            self.values.ledger().borrow_mut().remove_expired(&old, expires_at_ms);
            return Ok(());
        }
        let entry = Entry { value: Value::from(value), expires_at_ms };
        let moved = Rc::new(Separated::waiting(&key, entry));
        let mut unapplied = Unapplied { values: &self.values, moved: Some(Rc::clone(&moved)) };
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
            let at_seq = self.history.seq.get();
            let current = self.current_references(&key).await?;
            let mark = ReadMark { key: key.clone(), shard: self.id, at_seq };
            if self.has_changed(&mark) {
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
        let slice = self.slice_of(key)?;
        let newest = match slice.in_memory(key, |version| version.content().clone()) {
            Some(content) => Some(content),
            None => self.find_on_flash(slice, key).await?.map(|Newest { content, .. }| content),
        };
        let Some(Content::Separated(separated)) = newest else { return Ok(None) };
        Ok(separated.references().map(|references| (references, separated.expires_at_ms)))
    }

    /// Gives a key the version with the moved value.
    fn apply_move(&self, key: Bytes, old: Reference, references: References, expires_at_ms: u64) {
        let Ok(slice) = self.slice_of(&key) else { return };
        let seq = self.next_seq();
        let separated = Separated::placed(references, expires_at_ms);
        let version = Version::separated(seq, Rc::new(separated));
        let change = [(key, version)];
        let event = Event::Batch { seq, clear: false, entries: &change };
        let segment = self.log.append(&event, seq);
        self.values.ledger().borrow_mut().remove(&old);
        let snapshot = self.history.snapshots.newest();
        for (key, version) in change {
            slice.insert(&key, version, segment, snapshot);
        }
        if self.active_bytes() >= self.budget.freeze_bytes {
            self.freeze_largest();
        }
        if self.log.live_bytes() > self.budget.log_bytes {
            self.tasks.flush.notify_one();
        }
    }
}

impl ValueLog {
    /// The clock of the ages of values.
    fn clock(&self) -> u64 {
        self.inner.clock.get()
    }

    /// A block is empty: its lifetime shows how long short-lived values live.
    fn note_lifetime(&self, empty: &Empty) {
        if !empty.is_short {
            return;
        }
        let (lifetime, average) =
            (self.inner.clock.get().saturating_sub(empty.born), &self.inner.short_lifetime);
        average.set(match average.get() {
            u64::MAX => lifetime,
            before => before - before / LIFETIME_WEIGHT + lifetime / LIFETIME_WEIGHT,
        });
    }
}

fn count_loss(shard: &Shard) {
    count(&shard.counters.data_losses, 1);
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
