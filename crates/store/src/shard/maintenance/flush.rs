//! Flushing: a frozen memtable becomes a run of patches in level 0.

use crate::error::Result;
use crate::kv::cache::Cached;
use crate::kv::memtable::{Presence, Version};
use crate::kv::merge::MemoryCursor;
use crate::kv::patch::Patch;
use crate::kv::slice::{Frozen, Slice};
use crate::kv::writer::PatchWriter;
use crate::shard::Shard;
use crate::shard::log::{Edit, Event, PatchEntry};
use crate::shard::write::admission::Flushed;
use bytes::Bytes;
use futures_util::future::select;
use softflash_base::planted::{self, Bug};
use softflash_blocks::space::BLOCKS_OF_LOG;
use softflash_ftl::Hint;
use softflash_runtime::yield_now;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Keys after which the task yields.
const YIELD_KEYS: usize = 256;
/// How long a requested flush waits on full flash.
const SPACE_TIMEOUT: Duration = Duration::from_secs(30);
/// The length of a log that a start reads with little delay.
const SHORT_LOG_BYTES: u64 = 1 << 20;

impl Shard {
    /// Flushes the oldest frozen memtable of a slice.
    pub(in crate::shard) async fn flush_oldest(&self, slice: &Slice) -> Result<()> {
        let Some(frozen) = slice.frozen.borrow().front().map(Rc::clone) else { return Ok(()) };
        let clears = slice.clears.get();
        // Patches must not hold writes that the log might still lose: recovery would restore half a
        // batch.
        if !planted::bug(Bug::UndecidedFlushed) {
            self.log.stable_soon(frozen.last_seq).await?;
        }
        let began = self.runtime.now();
        let pending = self.pending_outputs.begin(&self.blocks);
        let mut writer =
            PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, Hint::FLUSH);
        let mut records = MemoryCursor::new(Rc::clone(&frozen.table), None);
        while let Some(record) = records.take() {
            writer.add(&record).await?;
        }
        let (patches, bytes) = writer.finish().await?;
        let live_keys = self.live_keys_after(slice, &frozen).await;
        if slice.clears.get() != clears && !planted::bug(Bug::FlushedAcrossClear) {
            patches.iter().for_each(|patch| patch.retire());
            return Ok(());
        }
        drop(pending);
        let full = self.limits().freeze_bytes;
        let flushed = Flushed { bytes: frozen.table.borrow().bytes(), written: bytes, full };
        self.throttle.note_part(flushed, self.runtime.now().since_ns(began));
        self.install_flush(slice, &frozen, patches, live_keys);
        let (edit_seq, needed) = (self.history.seq(), self.first_segment_needed());
        self.counters.count_flush(bytes);
        self.move_to_cache(&frozen).await;
        if !planted::bug(Bug::SegmentsFreedEarly) {
            self.log.stable_soon(edit_seq).await?;
        }
        // The durable edit records that the segments are not needed.
        self.log.release_before(needed);
        self.fit_cache();
        self.tasks.announce_room();
        Ok(())
    }

    /// Deletes segments of the log without needed events, where no flush is due.
    pub(super) async fn trim_log(&self) -> Result<()> {
        let Some(slice) = self.slices.first() else { return Ok(()) };
        self.edit(slice, &[], Vec::new());
        let (edit_seq, needed) = (self.history.seq(), self.first_segment_needed());
        self.log.stable_soon(edit_seq).await?;
        self.log.release_before(needed);
        self.tasks.announce_room();
        Ok(())
    }

    /// Rotates the log, so that only older segments with events of memtables are needed.
    pub(in crate::shard) async fn rotate_log(&self) -> Result<()> {
        self.log.rotate().await?;
        self.trim_log().await
    }

    /// Shortens a long log before the shard closes, by a flush of all memtables, so that the next
    /// start reads little. If the flush fails, the log still has all writes.
    pub(in crate::shard) async fn shorten_log(&self) {
        let short = SHORT_LOG_BYTES.min(self.blocks.capacity_bytes() as u64 / 8);
        let is_short = self.log.bytes_from(self.first_segment_needed()) <= short;
        if is_short || self.is_full() || self.has_failed() {
            return;
        }
        let shortened = async {
            self.flush_everything().await?;
            self.rotate_log().await
        };
        if let Err(error) = shortened.await {
            tracing::warn!(shard = self.id.0, %error, "the log could not be shortened");
        }
    }

    /// Replaces the memtable by the run, atomically in memory and in the log.
    fn install_flush(
        &self,
        slice: &Slice,
        frozen: &Rc<Frozen>,
        patches: Vec<Rc<Patch>>,
        live_keys: u64,
    ) {
        let run = slice.next_run.get();
        slice.next_run.set(run + 1);
        slice.live_keys.set(live_keys);
        let all = planted::bug(Bug::FlushedTooMuch);
        slice.flushed_seq.set(if all { self.history.seq() } else { frozen.last_seq });
        let added: Vec<_> = patches.into_iter().map(|patch| (0, run, patch)).collect();
        slice.drop_frozen(frozen);
        self.edit(slice, &[], added);
        self.wake_compaction();
    }

    /// Changes a slice's tree and logs the edit.
    pub(in crate::shard) fn edit(
        &self,
        slice: &Slice,
        removed: &[Rc<Patch>],
        added: Vec<(u8, u64, Rc<Patch>)>,
    ) {
        let removed: Vec<_> = removed.iter().map(|patch| patch.id()).collect();
        let entries = added
            .iter()
            .map(|(level, run, patch)| PatchEntry { block: patch.id().0, level: *level, run: *run })
            .collect();
        self.note_groups();
        let tree = slice.tree().edited(&removed, &added);
        *slice.tree.borrow_mut() = Rc::new(tree);
        let seq = self.history.next_seq();
        self.log.append(
            &Event::Edit(&Edit {
                slice: slice.id.0,
                added: entries,
                removed: removed.iter().map(|id| id.0).collect(),
                flushed_seq: slice.flushed_seq.get(),
                live_keys: slice.live_keys.get(),
                log_start: self.first_segment_needed(),
                unlisted_from: self.pending_outputs.unlisted_from(&self.blocks),
            }),
            seq,
        );
        self.note_units();
    }

    /// Logs changes of the parity groups, before a tree lists the new patches.
    fn note_groups(&self) {
        if let Some(change) = self.blocks.take_group_change() {
            self.log.append(&Event::Groups(&change), self.history.seq());
        }
    }

    /// Logs the generations of the units, where another copy of the log can reveal a unit that was
    /// restored from an old image.
    pub(in crate::shard) fn note_units(&self) {
        if self.layout.redundancy().is_some() {
            self.log.append(&Event::Units(&self.blocks.unit_marks()), self.history.seq());
        }
    }

    /// The slice's key count after the flush of the memtable.
    async fn live_keys_after(&self, slice: &Slice, frozen: &Frozen) -> u64 {
        let keys: Vec<_> = frozen
            .table
            .borrow()
            .newest_after(None)
            .map(|(key, version, presence)| (key.clone(), version.is_put(), presence))
            .collect();
        let mut live = slice.live_keys.get();
        for (number, (key, is_put, presence)) in keys.into_iter().enumerate() {
            if number % YIELD_KEYS == 0 {
                yield_now().await;
            }
            let existed = match presence {
                Presence::New => false,
                Presence::Replaces => true,
                Presence::Unknown => slice.probably_on_flash(&key),
            };
            match (is_put, existed) {
                (true, false) => live += 1,
                (false, true) => live = live.saturating_sub(1),
                _ => {}
            }
        }
        live
    }

    /// Moves the flushed entries to the read cache, as far as it has room: recent writes are likely
    /// to be read.
    async fn move_to_cache(&self, frozen: &Frozen) {
        let newest: Vec<(Bytes, Version)> = frozen
            .table
            .borrow()
            .newest_after(None)
            .map(|(key, version, _)| (key.clone(), version.clone()))
            .collect();
        for (number, (key, version)) in newest.into_iter().enumerate() {
            if number % YIELD_KEYS == 0 {
                yield_now().await;
            }
            let Some(entry) = version.inline().cloned() else { continue };
            let Ok(slice) = self.slices.of_key(&key) else { continue };
            let rewritten = slice.flushed_seq.get() > frozen.last_seq
                || slice.cleared_seq.get() > frozen.last_seq
                || slice.in_memory(&key, |_| ()).is_some();
            if !rewritten {
                let (cached, room) =
                    (Cached { entry, seq: version.seq }, self.cache_room().room_bytes());
                self.caches.insert(key, cached, room);
            }
        }
    }

    /// The first segment of the log that a recovery needs.
    pub(in crate::shard) fn first_segment_needed(&self) -> u64 {
        let slices = self.slices.iter().map(Slice::first_segment_needed);
        let forgotten = planted::bug(Bug::PendingClearsForgotten);
        let undoable =
            if forgotten { u64::MAX } else { self.history.clears().first_segment_needed() };
        slices.min().unwrap_or(u64::MAX).min(undoable).min(self.log.segment())
    }

    /// Freezes all memtables and waits until the background task has flushed them.
    ///
    /// # Errors
    /// [`OutOfSpace`](crate::error::StoreError::OutOfSpace) where there is no space for a while;
    /// the memtables stay frozen.
    pub async fn flush(&self) -> Result<()> {
        let deadline = self.runtime.now() + SPACE_TIMEOUT;
        let last = self.history.seq();
        for slice in &self.slices {
            slice.freeze(last);
        }
        self.tasks.request_flush();
        let waiting = |slice: &Slice| slice.frozen.borrow().iter().any(|f| f.last_seq <= last);
        while self.slices.iter().any(waiting) {
            self.check_health()?;
            let now = self.runtime.now();
            if now >= deadline && self.blocks.free_blocks() <= BLOCKS_OF_LOG {
                return Err(self.blocks.lack_of_space().into());
            }
            let look_again = self.runtime.sleep_until(now + SPACE_TIMEOUT);
            select(look_again, pin!(self.tasks.room_announced())).await;
        }
        Ok(())
    }

    /// Flushes every memtable in this task.
    pub(in crate::shard) async fn flush_everything(&self) -> Result<()> {
        for slice in &self.slices {
            slice.freeze(self.history.seq());
            while !slice.frozen.borrow().is_empty() {
                self.flush_oldest(slice).await?;
            }
        }
        Ok(())
    }
}
