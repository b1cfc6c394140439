//! The tasks that write values: one for clients' values, one for those that the collector moves.

use super::frontier::Started;
use super::{Inner, Item, ValueLog, ValueStream, WriteQueue};
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::options::Durability;
use futures_util::StreamExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use futures_util::stream::FuturesUnordered;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
use softflash_ftl::FtlError;
use std::pin::pin;
use std::rc::Rc;

/// The most bytes of one device write.
const CHUNK_BYTES: usize = 1 << 20;
/// Device writes under way.
const DEPTH: usize = 4;
/// Blocks tried for one write before the value log fails, as for a frame of the log.
const MAX_ATTEMPTS: usize = 8;

/// The two tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Fresh,
    Moved,
}

impl ValueLog {
    /// Starts the tasks.
    pub fn start(&self) {
        for which in [Which::Fresh, Which::Moved] {
            let inner = Rc::clone(&self.inner);
            let runtime = self.inner.runtime.clone();
            runtime.spawn(Box::pin(async move {
                if let Err(error) = Rc::clone(&inner).write_forever(which).await
                    && !matches!(error, StoreError::Closed)
                {
                    tracing::error!(shard = inner.shard.0, %error, "values could not be written");
                    inner.fail(error);
                }
            }));
        }
    }
}

impl Inner {
    fn queue(&self, which: Which) -> &WriteQueue {
        match which {
            Which::Fresh => &self.fresh,
            Which::Moved => &self.moved,
        }
    }

    async fn write_forever(self: Rc<Self>, which: Which) -> Result<()> {
        let queue = self.queue(which);
        let mut under_way: FuturesUnordered<LocalBoxFuture<'static, Result<()>>> =
            FuturesUnordered::new();
        loop {
            while under_way.len() < DEPTH && self.has_chunk(queue, under_way.is_empty()) {
                let Some((stream, items)) = self.next_chunk(queue) else { break };
                let writer = Rc::clone(&self);
                under_way.push(Box::pin(async move { writer.write(which, stream, items).await }));
            }
            if self.is_closed.get() && under_way.is_empty() && queue.items.borrow().is_empty() {
                return Ok(());
            }
            let work = pin!(queue.work.notified());
            if under_way.is_empty() {
                work.await;
                continue;
            }
            if let Either::Left((Some(written), _)) = select(under_way.next(), work).await {
                written?;
            }
        }
    }

    /// Whether to start a device write now. While others are under way, and no client waits for it,
    /// a short one waits for more values.
    fn has_chunk(&self, queue: &WriteQueue, is_idle: bool) -> bool {
        let bytes = queue.queued_bytes.get();
        let at_once = is_idle || self.durability == Durability::Flash || self.is_closed.get();
        !queue.items.borrow().is_empty() && (at_once || bytes >= CHUNK_BYTES)
    }

    /// Takes the values of the next device write: the oldest one, and others of its stream.
    fn next_chunk(&self, queue: &WriteQueue) -> Option<(ValueStream, Vec<Item>)> {
        let mut waiting = queue.items.borrow_mut();
        let stream = waiting.front()?.stream;
        let (mut items, mut bytes, mut place) = (Vec::new(), 0, 0);
        while let Some(item) = waiting.get(place) {
            let len = item.stored.stored_len();
            if item.stream != stream {
                place += 1;
                continue;
            }
            if !items.is_empty() && bytes + len > CHUNK_BYTES {
                break;
            }
            bytes += len;
            items.extend(waiting.remove(place));
        }
        queue.queued_bytes.set(queue.queued_bytes.get() - bytes);
        Some((stream, items))
    }

    /// Writes values of a stream: as many as fit the open block, and the others to the next one.
    async fn write(&self, which: Which, stream: ValueStream, mut items: Vec<Item>) -> Result<()> {
        while let Some(first) = items.first() {
            let room = match self.room(stream, first.stored.stored_len()).await {
                Err(StoreError::OutOfSpace) if which == Which::Moved => {
                    self.give_up(&items);
                    return Ok(());
                }
                room => room?.1,
            };
            let mut bytes = 0;
            let fits = |item: &&Item| {
                bytes += item.stored.stored_len();
                bytes <= room
            };
            let count = items.iter().take_while(fits).count().max(1);
            let part: Vec<Item> = items.drain(..count).collect();
            self.write_part(which, stream, part).await?;
        }
        Ok(())
    }

    /// Writes values in one device write, and records their places.
    async fn write_part(&self, which: Which, stream: ValueStream, items: Vec<Item>) -> Result<()> {
        let bytes: usize = items.iter().map(|item| item.stored.stored_len()).sum();
        let mut last = None;
        for attempt in 1..=MAX_ATTEMPTS {
            let (block, _) = match self.room(stream, bytes).await {
                Err(StoreError::OutOfSpace) if which == Which::Moved => {
                    self.give_up(&items);
                    return Ok(());
                }
                room => room?,
            };
            let started = match self.append(stream, block, &items) {
                Ok(started) => started,
                Err(error) => {
                    self.note_failure(stream, block, &error);
                    last = Some(error);
                    continue;
                }
            };
            let Started { places, pages, outcome, open } = started;
            let (written, _) = outcome.await;
            let failed = written.err().or_else(|| {
                // Another block would have both copies.
                open.lacks_copy().filter(|_| attempt < MAX_ATTEMPTS)
            });
            if let Some(error) = failed {
                self.note_failure(stream, block, &error);
                self.note_complete(stream, block, &pages);
                last = Some(error);
                continue;
            }
            let counter = match which {
                Which::Fresh => &self.written_bytes,
                Which::Moved => &self.moved_bytes,
            };
            counter.set(counter.get() + (pages.len() * self.blocks.page_bytes()) as u64);
            self.note_places(&items, &places);
            let queue = self.queue(which);
            queue.bytes.set(queue.bytes.get() - bytes);
            self.note_complete(stream, block, &pages);
            return Ok(());
        }
        let last = last.map(|error: FtlError| error.to_string()).unwrap_or_default();
        Err(StoreError::DataLoss(format!(
            "values could not be written to {MAX_ATTEMPTS} blocks, the last time with: {last}"
        )))
    }

    /// The flash is full: the values stay where they are.
    fn give_up(&self, items: &[Item]) {
        let bytes: usize = items.iter().map(|item| item.stored.stored_len()).sum();
        self.moved.bytes.set(self.moved.bytes.get() - bytes);
        items.iter().for_each(|item| item.owner.is_given_up.set(true));
        self.progress.notify_all();
    }

    /// Records the places of values that are written.
    fn note_places(&self, items: &[Item], places: &[Reference]) {
        for (item, place) in items.iter().zip(places) {
            let owner = &item.owner;
            let is_dead = owner.is_superseded.get() && !planted::bug(Bug::SupersededValueLive);
            if !is_dead {
                self.ledger.borrow_mut().insert(place, owner.expires_at_ms);
            }
            let is_whole = owner.place(item.stored.fragment.into(), *place);
            if is_whole && is_dead {
                // Fragments that were written before the version was superseded.
                self.ledger.borrow_mut().supersede(owner);
            }
        }
    }

    fn note_failure(&self, stream: ValueStream, block: BlockId, error: &FtlError) {
        tracing::warn!(shard = self.shard.0, %block, %error, "values could not be written; trying another block");
        self.abandon(stream, block);
    }
}
