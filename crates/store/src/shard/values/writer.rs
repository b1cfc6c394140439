//! Writes values to the open blocks of their streams, and the task that writes clients' values.

use super::frontier::Started;
use super::{Inner, Item, ValueLog, ValueStream};
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::value::ValueBytes;
use crate::options::Durability;
use futures_util::StreamExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use futures_util::stream::FuturesUnordered;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
use softflash_ftl::FtlError;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

/// The most bytes of one device write.
const CHUNK_BYTES: usize = 1 << 20;
/// Device writes under way.
const DEPTH: usize = 4;
/// Blocks tried for one write before the value log fails, as for a frame of the log.
const MAX_ATTEMPTS: usize = 8;

/// Values that one device write has put into a block.
pub(super) struct Placed {
    pub(super) block: BlockId,
    pub(super) pages: Range<u32>,
    /// The places, in the order of the values.
    pub(super) places: Vec<Reference>,
}

impl ValueLog {
    /// Starts the task that writes clients' values.
    pub fn start(&self) {
        let inner = Rc::clone(&self.inner);
        self.inner.runtime.spawn(Box::pin(async move {
            if let Err(error) = Rc::clone(&inner).write_forever().await
                && !matches!(error, StoreError::Closed)
            {
                tracing::error!(shard = inner.shard.0, %error, "values could not be written");
                inner.fail(error);
            }
        }));
    }
}

impl Inner {
    async fn write_forever(self: Rc<Self>) -> Result<()> {
        let queue = &self.fresh;
        let mut under_way: FuturesUnordered<LocalBoxFuture<'static, Result<()>>> =
            FuturesUnordered::new();
        loop {
            while under_way.len() < DEPTH && self.has_chunk(under_way.is_empty()) {
                let Some((stream, items)) = self.next_chunk() else { break };
                let writer = Rc::clone(&self);
                under_way.push(Box::pin(async move { writer.write(stream, items).await }));
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
    fn has_chunk(&self, is_idle: bool) -> bool {
        let queue = &self.fresh;
        let bytes = queue.queued_bytes.get();
        let at_once = is_idle || self.durability == Durability::Flash || self.is_closed.get();
        !queue.items.borrow().is_empty() && (at_once || bytes >= CHUNK_BYTES)
    }

    /// Takes the values of the next device write: the oldest one, and others of its stream.
    fn next_chunk(&self) -> Option<(ValueStream, Vec<Item>)> {
        let queue = &self.fresh;
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

    /// Writes clients' values: as many as fit the open block of their stream, and the others to the
    /// next one.
    async fn write(&self, stream: ValueStream, mut items: Vec<Item>) -> Result<()> {
        while !items.is_empty() {
            let lens = items.iter().map(|item| item.stored.stored_len());
            let count = self.fitting(stream, lens).await?;
            let part: Vec<Item> = items.drain(..count).collect();
            let values: Vec<_> = part.iter().map(|item| item.stored.as_bytes()).collect();
            let Placed { block, pages, places } = self.place(stream, &values).await?;
            let of_pages = (pages.len() * self.blocks.page_bytes()) as u64;
            self.written_bytes.set(self.written_bytes.get() + of_pages);
            self.note_places(&part, &places);
            let bytes: usize = values.iter().map(ValueBytes::stored_len).sum();
            self.fresh.bytes.set(self.fresh.bytes.get() - bytes);
            let space: usize = part.iter().map(|item| item.space).sum();
            self.fresh.space.set(self.fresh.space.get() - space);
            self.note_complete(stream, block, &pages);
        }
        Ok(())
    }

    /// How many of the next values of a stream, of these lengths, fit its open block: at least one.
    pub(super) async fn fitting(
        &self,
        stream: ValueStream,
        lens: impl Iterator<Item = usize> + Clone,
    ) -> Result<usize> {
        let first = lens.clone().next().unwrap_or(0);
        let (_, room) = self.room(stream, first, first).await?;
        let mut bytes = 0;
        let fits = |len: &usize| {
            bytes += len;
            bytes <= room
        };
        Ok(lens.take_while(fits).count().max(1))
    }

    /// Writes values in one device write. The caller enters their places into the ledger and then
    /// calls [`note_complete`](Inner::note_complete).
    pub(super) async fn place(
        &self,
        stream: ValueStream,
        values: &[ValueBytes<'_>],
    ) -> Result<Placed> {
        let bytes: usize = values.iter().map(ValueBytes::stored_len).sum();
        let next = values.first().map_or(0, ValueBytes::stored_len);
        let mut last = None;
        for attempt in 1..=MAX_ATTEMPTS {
            let (block, _) = self.room(stream, bytes, next).await?;
            let started = match self.append(stream, block, values) {
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
            let Some(error) = failed else { return Ok(Placed { block, pages, places }) };
            self.note_failure(stream, block, &error);
            self.note_complete(stream, block, &pages);
            last = Some(error);
        }
        let last = last.map(|error: FtlError| error.to_string()).unwrap_or_default();
        Err(StoreError::DataLoss(format!(
            "values could not be written to {MAX_ATTEMPTS} blocks, the last time with: {last}"
        )))
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
