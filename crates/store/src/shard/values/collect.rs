//! The collector: chooses blocks with few live values, has these moved, and deletes empty blocks.
//!
//! The old block is deleted once all events up to the moves are durable and decided, because until
//! then a recovery may need it, and once no scan needs it.

use super::ledger::Empty;
use super::moving::Mover;
use super::retiring::Victim;
use super::{Collector, ValueLog, victim};
use crate::error::{Result, StoreError};
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::Log;
use crate::shard::maintenance::tasks::Tasks;
use crate::shard::transactions::history::History;
use crate::shard::write::write_room::WriteRoom;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use softflash_base::ShardId;
use softflash_base::cast::index;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockLayer};
use softflash_runtime::RuntimeHandle;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// The pause after an error, while scans need deleted blocks, and while there is no free block.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
const PAUSE_FOR_SCANS: Duration = Duration::from_millis(5);
const PAUSE_FOR_SPACE: Duration = Duration::from_millis(20);
/// A shard has another empty block that waits for the durability of the events before its deletion
/// for each so many blocks: one sync of the log serves all of them. From then on no other block is
/// emptied: nobody has their space yet.
const BLOCKS_PER_RETIRING: u32 = 240;
const FEWEST_RETIRING: u32 = 3;
const MOST_RETIRING: u32 = 8;
/// Blocks that are emptied at the same time: while the last values of one are written, those of the
/// next are read.
const VICTIMS: usize = 2;
/// The weight of the last block in the average lifetime of short-lived blocks, as a divisor.
const LIFETIME_WEIGHT: u64 = 16;

/// The state of the blocks that are being emptied.
enum Next {
    Emptied(Result<()>),
    Pending,
    /// There are none.
    Idle,
}

/// Collects the value blocks of a shard.
pub(crate) struct Collection<'a> {
    id: ShardId,
    runtime: &'a RuntimeHandle,
    blocks: &'a BlockLayer,
    values: &'a ValueLog,
    collector: &'a Collector,
    history: &'a History,
    log: &'a Log,
    clock: &'a ExpiryClock,
    tasks: &'a Tasks,
    room: WriteRoom<'a>,
    mover: Mover<'a>,
}

impl Collection<'_> {
    /// The parts of a shard that the collector uses.
    pub(crate) fn of(shard: &Shard) -> Collection<'_> {
        let Shard { id, runtime, blocks, values, collector, history, log, clock, tasks, .. } =
            shard;
        Collection {
            id: *id,
            runtime,
            blocks,
            values,
            collector,
            history,
            log,
            clock,
            tasks,
            room: WriteRoom::of(shard),
            mover: Mover::of(shard),
        }
    }

    /// Collects until the shard closes.
    pub(in crate::shard) async fn collect_forever(&self) {
        let mut under_way = FuturesUnordered::new();
        while !self.tasks.is_closing() {
            // Blocks under way need their future polled: nothing else is awaited meanwhile.
            let mut outcome = self.delete_empty(false).await.map(drop);
            while outcome.is_ok()
                && under_way.len() < VICTIMS
                && self.collector.retiring() < self.most_retiring()
                && let Some(victim) = self.choose_victim()
            {
                under_way.push(self.empty(victim));
            }
            match self.next_emptied(&mut under_way).await {
                Next::Emptied(emptied) => outcome = outcome.and(emptied),
                Next::Idle if outcome.is_ok() => match self.delete_empty(true).await {
                    Ok(true) => {}
                    Ok(false) => self.wait_for_garbage().await,
                    Err(error) => outcome = Err(error),
                },
                Next::Idle | Next::Pending => {}
            }
            let Err(mut error) = outcome else { continue };
            // The others end before the pause.
            while let Some(emptied) = under_way.next().await {
                error = emptied.err().unwrap_or(error);
            }
            match error {
                StoreError::Closed => return,
                // The log or a flush has the blocks for moved values at the moment.
                StoreError::OutOfSpace => self.wait_for_space().await,
                error => {
                    tracing::warn!(shard = self.id.0, %error, "a value block could not be collected");
                    let resume_at = self.runtime.now() + PAUSE_AFTER_ERROR;
                    let closed = self.tasks.collection_requested();
                    select(self.runtime.sleep_until(resume_at), pin!(closed)).await;
                }
            }
        }
        while under_way.next().await.is_some() {}
    }

    /// Waits until the next block is empty, at most 20 ms: other blocks become empty meanwhile, and
    /// the flush that the moves wait for may need their space.
    async fn next_emptied(
        &self,
        under_way: &mut FuturesUnordered<impl Future<Output = Result<()>>>,
    ) -> Next {
        let pause = self.runtime.sleep_until(self.runtime.now() + PAUSE_FOR_SPACE);
        match select(under_way.next(), pause).await {
            Either::Left((emptied, _)) => emptied.map_or(Next::Idle, Next::Emptied),
            Either::Right(_) => Next::Pending,
        }
    }

    async fn empty(&self, victim: Victim<'_>) -> Result<()> {
        self.mover.empty_block(victim.block).await
    }

    async fn wait_for_space(&self) {
        let resume_at = self.runtime.now() + PAUSE_FOR_SPACE;
        select(self.runtime.sleep_until(resume_at), pin!(self.tasks.room_announced())).await;
    }

    /// Waits for a notification, the durability of the events before a deletion, or an expiry.
    async fn wait_for_garbage(&self) {
        self.collector.forget_wanted();
        self.collector.set_idle(true);
        self.tasks.announce_room();
        let notified = pin!(self.tasks.collection_requested());
        let next = self.collector.next_to_delete();
        let next_expiry_ms = self.values.ledger().borrow().next_expiry_ms();
        if let Some((seq, _)) = next {
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
            let after =
                Duration::from_millis(expires_ms.saturating_sub(self.clock.now_ms()).max(1));
            select(self.runtime.sleep_until(self.runtime.now() + after), notified).await;
        } else {
            notified.await;
        }
        self.collector.set_idle(false);
    }

    /// Does a step of work. Returns whether there was one.
    pub(crate) async fn collect_once(&self) -> Result<bool> {
        if self.delete_empty(true).await? {
            return Ok(true);
        }
        let Some(victim) = self.choose_victim() else { return Ok(false) };
        self.empty(victim).await?;
        Ok(true)
    }

    fn most_retiring(&self) -> usize {
        let share = self.blocks.total_blocks() / BLOCKS_PER_RETIRING;
        index(share.clamp(FEWEST_RETIRING, MOST_RETIRING))
    }

    /// Deletes blocks without live values; where space is short, waits for the log if it
    /// `may_wait`. Returns whether there were any.
    async fn delete_empty(&self, may_wait: bool) -> Result<bool> {
        self.take_empty();
        self.retire(may_wait).await
    }

    /// Moves blocks that no value keeps to the list of blocks to delete.
    fn take_empty(&self) {
        let empty = self.values.ledger().borrow_mut().take_empty(self.clock.now_ms());
        for empty in empty {
            self.values.note_lifetime(&empty);
            let seq = self.history.seq();
            self.collector.note_empty(seq, empty);
        }
    }

    /// Deletes blocks that neither a recovery nor a scan needs. Returns whether there were any.
    async fn retire(&self, may_wait: bool) -> Result<bool> {
        let mut any = false;
        while let Some((seq, expired_ms)) = self.collector.next_to_delete() {
            if !planted::bug(Bug::ValueBlockFreedEarly) {
                if !self.log.is_stable(seq) {
                    if !self.room.space().is_short_for_values() {
                        break;
                    }
                    if !may_wait && self.collector.retiring() < self.most_retiring() / 2 {
                        break;
                    }
                    self.log.request_sync(seq);
                    if !may_wait {
                        break;
                    }
                    self.log.stable(seq).await?;
                }
                if expired_ms > 0 && !self.clock.is_logged(expired_ms) {
                    self.log.request_clock();
                    if !may_wait {
                        break;
                    }
                    self.log.clock_logged(expired_ms).await?;
                }
            }
            // Also a scan that has seen the last write: its values may have expired since.
            if self.history.snapshots().oldest().is_some_and(|oldest| oldest <= seq)
                && !planted::bug(Bug::ValueBlockFreedUnderScan)
            {
                break;
            }
            if let Some(empty) = self.collector.take_next() {
                empty.handle.retire();
                any = true;
            }
        }
        if any {
            self.tasks.announce_room();
        }
        Ok(any)
    }

    /// The block to collect next: one that is hard to read or lags behind in wear, or, where space
    /// is short, the policy's choice.
    fn choose_victim(&self) -> Option<Victim<'_>> {
        if self.room.space().allows_rebuild() {
            self.blocks.note_lagging();
        }
        // Each move is logged, so that it leads to a flush, whose patch takes a whole block however
        // small it is. Where compaction does not keep up, the moves would take the space that it
        // needs to merge these patches.
        if self.room.waits_for_compaction() {
            return None;
        }
        let ledger = self.values.ledger().borrow();
        let candidates =
            || ledger.candidates().filter(|candidate| !self.collector.is_victim(candidate.block));
        if self.blocks.any_needs_refresh() && self.room.space().allows_rebuild() {
            let mut ids = candidates().map(|candidate| candidate.block);
            if let Some(id) = ids.find(|id| self.blocks.needs_refresh(BlockId(*id))) {
                return Some(self.collector.begin(id));
            }
        }
        // Without room for a block of moved values the collector has no work.
        if !self.room.space().is_short_for_values() || !self.values.has_room_for_moves() {
            return None;
        }
        let size = (self.blocks.capacity_bytes() as u64, self.blocks.page_bytes() as u64);
        let mut policies = self.collector.policies();
        let chosen = victim::choose(&mut policies, candidates(), size, self.values.clock());
        chosen.map(|chosen| self.collector.begin(chosen.block))
    }

    /// Moves the live values of all blocks that take no more values, and deletes the blocks.
    ///
    /// # Errors
    /// Errors of the flash and of the log.
    pub(crate) async fn collect_all(&self) -> Result<()> {
        let blocks: Vec<u64> = {
            let ledger = self.values.ledger().borrow();
            ledger.candidates().map(|candidate| candidate.block).collect()
        };
        for block in blocks {
            self.mover.empty_block(block).await?;
        }
        self.log.stable_soon(self.history.seq()).await?;
        while self.collect_once().await? {}
        Ok(())
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
