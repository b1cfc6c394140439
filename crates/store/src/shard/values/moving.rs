//! Moves the live values of a block to other blocks: in large reads and writes, with a single copy
//! (from the buffer that was read to the one that is written), and one event of the log for each
//! write.
//!
//! A moved value gets a new version with the new reference, in the log and in the memtable, unless
//! a client has written the key meanwhile.

use super::extents::{Extent, batches};
use super::reading::read_unnamed;
use super::{LossReport, Unreadable, ValueLog, extent};
use crate::error::{Result, StoreError, is_data_loss};
use crate::format::log::event::{Event, KeyChange};
use crate::format::reference::Reference;
use crate::format::separated::{References, Separated};
use crate::format::value::{StoredValue, ValueBytes};
use crate::format::version::{Content, Version};
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::Log;
use crate::shard::maintenance::tasks::Tasks;
use crate::shard::read::lookup::{Listed, Reader};
use crate::shard::slices::Slices;
use crate::shard::transactions::history::History;
use crate::shard::transactions::read_mark::ReadMark;
use crate::shard::write::write_room::WriteRoom;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{join_all, select};
use futures_util::stream::FuturesUnordered;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, ShardId};
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::{Hint, Priority};
use softflash_runtime::RuntimeHandle;
use std::cell::RefCell;
use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Batches of a block that are moved at the same time.
const DEPTH: usize = 2;
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
    reader: Reader<'a>,
    losses: LossReport<'a>,
    room: WriteRoom<'a>,
}

/// A value that has a new place.
struct Moved {
    key: Bytes,
    old: Reference,
    new: Reference,
}

/// The new version of a key with a moved value, or with some moved fragments of it.
struct Change {
    key: Bytes,
    /// The old and the new place of each of them.
    places: SmallVec<[(Reference, Reference); 1]>,
    references: References,
    expires_at_ms: u64,
}

impl Change {
    /// Also moves another fragment of the value; false if this is no fragment of it.
    fn adds(&mut self, moved: &Moved) -> bool {
        let mut fragments = self.references.iter_mut();
        if self.key == moved.key
            && let Some(place) = fragments.find(|reference| **reference == moved.old)
        {
            *place = moved.new;
            self.places.push((moved.old, moved.new));
            return true;
        }
        false
    }

    /// Whether the value has several fragments.
    fn is_of_fragments(&self) -> bool {
        self.references.len() > 1
    }
}

/// The references of the newest version of a key and its expiry, if it has a separated value.
pub(super) type Current = Option<(References, u64)>;

/// Whether memory knows them.
enum Known {
    Yes(Current),
    /// The newest version has a value of which some fragments are not written.
    Waits(Rc<Separated>),
    No,
}

/// The copy of a value that no version refers to yet: dead when this is dropped.
struct Unapplied<'a> {
    values: &'a ValueLog,
    copy: Option<Reference>,
}

impl Drop for Unapplied<'_> {
    fn drop(&mut self) {
        if let Some(copy) = &self.copy {
            self.values.ledger().borrow_mut().remove(copy);
        }
    }
}

impl Mover<'_> {
    /// The parts of a shard that have values.
    pub(crate) fn of(shard: &Shard) -> Mover<'_> {
        let Shard { id, runtime, blocks, values, slices, history, log, .. } = shard;
        let hint = Hint::COLLECTION.at(Priority::Foreground);
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
            reader: Reader::of(shard, hint),
            losses: LossReport::of(shard, hint),
            room: WriteRoom::of(shard),
        }
    }

    /// Moves all live values of a block.
    pub(crate) async fn empty_block(&self, block: u64) -> Result<()> {
        let Some(handle) = self.values.ledger().borrow().handle(block) else { return Ok(()) };
        let born = self.values.ledger().borrow().born(&Reference::new(block, 0, 0, 0));
        let live = self.values.ledger().borrow().live_in(block);
        self.blocks.clear_refresh(BlockId(block));
        let progress = self.values.gain().begin(self.blocks.capacity_bytes(), &live);
        let unreadable = RefCell::default();
        let mut moves = FuturesUnordered::new();
        let mut outcome = Ok(());
        for batch in batches(&live) {
            if moves.len() >= DEPTH
                && let Some(moved) = moves.next().await
            {
                outcome = outcome.and(moved);
            }
            if outcome.is_err() {
                break;
            }
            let (progress, unreadable) = (&progress, &unreadable);
            moves.push(async move {
                let moved = self.move_batch(block, &batch, born.unwrap_or(0), unreadable).await;
                progress.advance(batch.iter().map(Extent::live_bytes).sum());
                self.values.progress().notify_all();
                moved
            });
        }
        // Also after an error: an append that nobody waits for would keep its block open.
        while let Some(moved) = moves.next().await {
            outcome = outcome.and(moved);
        }
        drop(moves);
        outcome?;
        let unreadable = unreadable.into_inner();
        if !unreadable.is_empty() && self.losses.examine(unreadable).await? {
            self.values.ledger().borrow_mut().note_unreadable(block);
        }
        drop(handle);
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

    /// Moves the values of a batch, those that are the values of their keys.
    async fn move_batch(
        &self,
        block: u64,
        batch: &[Extent],
        born: u64,
        unreadable: &RefCell<Vec<Unreadable>>,
    ) -> Result<()> {
        self.wait_for_room().await?;
        let reads = join_all(batch.iter().map(|extent| self.read(block, extent))).await;
        let (identity, page) = (self.blocks.identity(BlockId(block)), self.blocks.page_bytes());
        let (mut found, mut damaged) = (Vec::new(), Vec::new());
        for (extent, pages) in batch.iter().zip(&reads) {
            for place in extent.values.iter().copied() {
                match decoded(pages.as_ref(), place, extent.start(page), identity) {
                    Some(value) => found.push((reference(block, place, value.checksum), value)),
                    None => damaged.push(place),
                }
            }
        }
        let alone = self.read_alone(block, damaged, unreadable).await?;
        found.extend(alone.iter().map(|(reference, stored)| (*reference, stored.as_bytes())));
        found.retain(|(old, value)| self.is_worth_moving(old, value.expires_at_ms));
        let (old, values): (Vec<Reference>, Vec<ValueBytes<'_>>) = found.into_iter().unzip();
        let (mut old, mut unknown) = (old.into_iter(), Vec::new());
        let moved = self
            .values
            .relocate(&values, born, |part, places| {
                let moved = part.iter().zip(old.by_ref()).zip(places).map(|((value, old), new)| {
                    Moved { key: Bytes::copy_from_slice(value.key), old, new: *new }
                });
                unknown.extend(self.apply_known(moved));
            })
            .await;
        for (moved, unapplied) in unknown {
            self.apply_unknown(moved, unapplied).await?;
        }
        moved
    }

    async fn read(&self, block: u64, extent: &Extent) -> Option<IoBuf> {
        let pages = extent.pages(self.blocks.page_bytes());
        let (first, count) = (pages.start as u32, pages.len() as u32);
        self.blocks.read(BlockId(block), first, count, Hint::COLLECTION).await.ok()
    }

    /// Reads single values, from another copy where the first one is damaged.
    async fn read_alone(
        &self,
        block: u64,
        places: Vec<(u32, u32)>,
        unreadable: &RefCell<Vec<Unreadable>>,
    ) -> Result<Vec<(Reference, StoredValue)>> {
        let mut found = Vec::with_capacity(places.len());
        for value in places {
            let place = reference(block, value, 0);
            match read_unnamed(self.blocks, &place, Hint::COLLECTION).await {
                Ok(stored) => found.push((reference(block, value, stored.checksum), stored)),
                Err(error) if is_data_loss(&error) => {
                    unreadable.borrow_mut().push(Unreadable { place, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Whether a value is live. One that has expired is dead from now on.
    fn is_worth_moving(&self, old: &Reference, expires_at_ms: u64) -> bool {
        let mut ledger = self.values.ledger().borrow_mut();
        let has_expired = expires_at_ms != 0 && expires_at_ms <= self.clock.now_ms();
        if ledger.is_live(old) && has_expired {
            ledger.remove_expired(old, expires_at_ms);
        }
        ledger.is_live(old)
    }

    /// Gives the keys of moved values their new versions, in one event of the log, as far as memory
    /// tells that the moved values are theirs. Returns the others.
    fn apply_known(&self, moved: impl Iterator<Item = Moved>) -> Vec<(Moved, Unapplied<'_>)> {
        let (mut changes, mut unknown) = (Vec::<Change>::new(), Vec::new());
        for moved in moved {
            // Fragments of a value mostly lie one behind the other, and get one new version
            // together. It is applied before the next value: later fragments look it up in memory.
            if let Some(last) = changes.last_mut().filter(|last| last.is_of_fragments()) {
                if last.adds(&moved) {
                    continue;
                }
                self.apply(mem::take(&mut changes));
            }
            match self.known_references(&moved.key) {
                Known::Waits(value) if value.move_waiting(&moved.old, moved.new) => {
                    let mut ledger = self.values.ledger().borrow_mut();
                    ledger.insert(&moved.new, value.expires_at_ms);
                    ledger.remove(&moved.old);
                }
                Known::Waits(_) => changes.extend(self.change(moved, None)),
                Known::Yes(current) => changes.extend(self.change(moved, current)),
                Known::No => {
                    // Live until it is known, so that the collector does not take its block.
                    self.values.ledger().borrow_mut().insert(&moved.new, 0);
                    let unapplied = Unapplied { values: self.values, copy: Some(moved.new) };
                    unknown.push((moved, unapplied));
                }
            }
        }
        self.apply(changes);
        unknown
    }

    /// As [`apply_known`](Self::apply_known), for a value whose key has to be looked up on flash.
    async fn apply_unknown(&self, moved: Moved, mut unapplied: Unapplied<'_>) -> Result<()> {
        loop {
            let (key, at_seq) = (moved.key.clone(), self.history.seq());
            let current = self.current_references(&key).await?;
            let mark = ReadMark { key, shard: self.id, at_seq };
            if mark.is_outdated(self.history, self.slices) {
                continue;
            }
            // The block of the copy may be full by now, and another victim: the copy of the copy
            // was dropped, as the key still has the value in its old place, which stays.
            if !self.values.ledger().borrow().is_live(&moved.new) {
                return Ok(());
            }
            if let Some(change) = self.change(moved, current) {
                unapplied.copy = None;
                self.apply(vec![change]);
            }
            return Ok(());
        }
    }

    /// The new version of the key of a moved value, whose newest version has the `current`
    /// references and expiry. `None` where the value is not part of it.
    fn change(&self, moved: Moved, current: Current) -> Option<Change> {
        let (references, expires_at_ms) = current.unwrap_or_default();
        let mut change =
            Change { key: moved.key.clone(), places: SmallVec::new(), references, expires_at_ms };
        if change.adds(&moved) {
            return Some(change);
        }
        if planted::bug(Bug::MovedOverWrite) {
            let references = [moved.new].into_iter().collect();
            let places = [(moved.old, moved.new)].into_iter().collect();
            return Some(Change { references, places, ..change });
        }
        // A client has written the key, or the ledger did not know that it had.
        self.values.ledger().borrow_mut().remove(&moved.old);
        None
    }

    /// The references of the newest version of a key, and its expiry, as far as memory knows.
    fn known_references(&self, key: &Bytes) -> Known {
        let Ok(slice) = self.slices.of_key(key) else { return Known::No };
        match slice.in_memory(key, |version| version.content().clone()) {
            Some(Content::Separated(value)) if !value.is_placed() => return Known::Waits(value),
            Some(content) => return Known::Yes(references_of(Some(content))),
            None => {}
        }
        match self.reader.find_listed(slice, key) {
            Listed::Found(newest) => Known::Yes(references_of(Some(newest.content))),
            Listed::Absent => Known::Yes(None),
            Listed::Unknown => Known::No,
        }
    }

    /// As [`known_references`](Self::known_references), with a read of the flash if need be.
    async fn current_references(&self, key: &Bytes) -> Result<Current> {
        let slice = self.slices.of_key(key)?;
        let newest = self.reader.newest_content(slice, key).await?;
        Ok(references_of(newest))
    }

    /// Gives keys the versions with the moved values.
    fn apply(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let seq = self.history.next_seq();
        let mut entries: Vec<KeyChange> = Vec::with_capacity(changes.len());
        let mut ledger = self.values.ledger().borrow_mut();
        for Change { key, places, references, expires_at_ms } in changes {
            for (old, new) in places {
                ledger.insert(&new, expires_at_ms);
                ledger.remove(&old);
            }
            let separated = Separated::placed(references, expires_at_ms);
            entries.push((key, Version::separated(seq, Rc::new(separated))));
        }
        drop(ledger);
        let event = Event::Batch { seq, clear: false, entries: &entries };
        let segment = self.log.append(&event, seq);
        let snapshot = self.history.snapshots().newest();
        for (key, version) in entries {
            if let Ok(slice) = self.slices.of_key(&key) {
                slice.insert(&key, version, segment, snapshot);
            }
        }
        self.room.start_due_flushes();
    }
}

fn reference(block: u64, (offset, len): (u32, u32), checksum: u64) -> Reference {
    Reference::new(block, offset, len, checksum)
}

pub(super) fn references_of(content: Option<Content>) -> Current {
    let Some(Content::Separated(separated)) = content else { return None };
    separated.references().map(|references| (references, separated.expires_at_ms))
}

/// The value at a place of a block, in the pages that were read from its byte `start` on; `None`
/// where it is damaged or was not read.
fn decoded(
    read: Option<&IoBuf>,
    place: (u32, u32),
    start: usize,
    identity: u64,
) -> Option<ValueBytes<'_>> {
    let (offset, len) = extent(place);
    let at = offset.checked_sub(start)?;
    let bytes = read?.get(at..at + len)?;
    ValueBytes::decode(bytes, identity, place.0).ok()
}
