//! Write frontiers: the open blocks of the streams. Each takes appends at its end.

use super::{Inner, ValueLog, ValueStream};
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::format::value::ValueBytes;
use crate::options::Durability;
use crate::shard::values::block::ValueBlock;
use smallvec::SmallVec;
use softflash_base::cast::{self, saturating_u32, wide};
use softflash_base::planted::{self, Bug};
use softflash_blocks::space::{BLOCKS_OF_LOG, KEPT_BY_BACKGROUND, SPARES_OF_LOG};
use softflash_blocks::{BlockError, BlockId, BlockKind, OpenBlock};
use softflash_flash::Outcome;
use softflash_ftl::{FtlError, Hint};
use softflash_policy::PlacementPolicy;
use softflash_policy::placement::{self, Candidates};
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Attempts to open a block on a full device, for clients' values and for moves, and the pause
/// between them. A move gives up early: the collector also deletes empty blocks.
const SPACE_ATTEMPTS: usize = 1_000;
const SPACE_ATTEMPTS_OF_MOVES: usize = 10;
const SPACE_WAIT: Duration = Duration::from_millis(20);
/// Attempts after which clients' values take the blocks of flushes and of the collector too: the
/// log waits for these values, and the blocks that a merge or the collector has emptied wait for
/// the log.
const PATIENT_ATTEMPTS: usize = 10;
/// The most open blocks of a stream: blocks on different units are written in parallel.
const MAX_WIDTH: u32 = 4;
/// A stream has another open block for each so many blocks of the shard.
const BLOCKS_PER_WIDTH: u32 = 512;
/// Free blocks that values leave to the log, to a flush and to the collector.
const FREE_FOR_OTHERS: u32 = FREE_FOR_LOG + 2;
/// Free blocks that clients' values leave after [`PATIENT_ATTEMPTS`]: those of the log.
const FREE_FOR_LOG_ALONE: u32 = BLOCKS_OF_LOG + SPARES_OF_LOG;
/// Free blocks that the collector leaves to the log, and to the flush of its moves.
const FREE_FOR_LOG: u32 = KEPT_BY_BACKGROUND;

/// An open block.
pub(super) struct Frontier {
    block: Rc<OpenBlock>,
    next_page: u32,
    /// The first pages of appends that are not complete.
    under_way: BTreeSet<u32>,
    /// The end of the last append that is complete.
    written_end: u32,
    /// It takes no more appends, and is sealed once those under way are complete.
    is_full: bool,
}

/// An append that was started.
pub(super) struct Started<F> {
    /// The places of the values.
    pub(super) places: Vec<Reference>,
    /// The pages of the append.
    pub(super) pages: Range<u32>,
    pub(super) outcome: F,
    /// The block, to ask for failed copies.
    pub(super) open: Rc<OpenBlock>,
}

impl ValueLog {
    /// Ends those of these blocks that take values: they take no more.
    pub(crate) fn end_blocks(&self, blocks: &[BlockId]) {
        let open: Vec<(ValueStream, BlockId)> = {
            let frontiers = self.inner.frontiers.borrow();
            let of_stream = |(stream, all): (&ValueStream, &Vec<Frontier>)| {
                let ids = all.iter().map(|frontier| frontier.block.id());
                let ended = ids.filter(|id| blocks.contains(id));
                ended.map(|id| (*stream, id)).collect::<Vec<_>>()
            };
            frontiers.iter().flat_map(of_stream).collect()
        };
        open.into_iter().for_each(|(stream, block)| self.inner.abandon(stream, block));
    }

    /// Whether a block for moved values can be opened.
    pub(super) fn has_room_for_moves(&self) -> bool {
        self.inner.blocks.free_blocks() > self.inner.kept_by_collector()
    }

    /// Bytes left in the open blocks of clients' values, and of moved ones.
    pub(crate) fn open_bytes(&self) -> (u64, u64) {
        let (mut fresh, mut moved) = (0, 0);
        for (stream, of_stream) in self.inner.frontiers.borrow().iter() {
            let taking = of_stream.iter().filter(|frontier| !frontier.is_full);
            let left = taking.map(|frontier| wide(self.inner.left(frontier))).sum::<u64>();
            match stream {
                ValueStream::Moved(_) => moved += left,
                _ => fresh += left,
            }
        }
        (fresh, moved)
    }
}

impl Inner {
    /// Free blocks that the collector leaves to others: also those of the clients' values that were
    /// taken. The log waits for these, and the blocks that the collector empties wait for the log.
    fn kept_by_collector(&self) -> u32 {
        FREE_FOR_LOG + saturating_u32(self.fresh.space.get().div_ceil(self.capacity()))
    }

    /// The hint of writes to a stream.
    pub(super) fn hint(&self, stream: ValueStream) -> Hint {
        let hint = match (stream, self.durability) {
            (ValueStream::Moved(_), _) => Hint::COLLECTION,
            (_, Durability::Flash) => Hint::FOREGROUND,
            (_, Durability::Interval(_)) => Hint::HOST_SOON,
        };
        hint.lasting(stream.lifetime())
    }

    /// Open blocks that a stream may have.
    fn width(&self) -> usize {
        let units = self.blocks.flash().units().len() as u32;
        let share = self.blocks.total_blocks() / BLOCKS_PER_WIDTH;
        share.clamp(1, units.clamp(1, MAX_WIDTH)) as usize
    }

    /// Bytes left in the frontier that takes the next append of a stream: the idlest one with room
    /// for `bytes`. Ends those that have no room for the `next` value; others stay open for a
    /// shorter append. Opens a block if there is none. Waits for free space.
    pub(super) async fn room(
        &self,
        stream: ValueStream,
        bytes: usize,
        next: usize,
    ) -> Result<(BlockId, usize)> {
        let attempts = match stream {
            ValueStream::Moved(_) => SPACE_ATTEMPTS_OF_MOVES,
            _ => SPACE_ATTEMPTS,
        };
        for attempt in 0..attempts {
            self.seal_without_room(stream, next);
            let open = {
                let frontiers = self.frontiers.borrow();
                let of_stream = frontiers.get(&stream).map_or(&[][..], Vec::as_slice);
                let taking = of_stream.iter().filter(|frontier| !frontier.is_full).count();
                let may_open = taking < self.width();
                self.idlest(of_stream, bytes)
                    .filter(|idlest| idlest.under_way.is_empty() || !may_open)
                    .map(|frontier| (frontier.block.id(), self.left(frontier)))
            };
            if let Some(open) = open {
                return Ok(open);
            }
            let kept = match stream {
                ValueStream::Moved(_) => self.kept_by_collector(),
                _ if attempt < PATIENT_ATTEMPTS => FREE_FOR_OTHERS,
                _ => FREE_FOR_LOG_ALONE,
            };
            match self.open(stream, kept) {
                Ok(opened) => return Ok((opened, self.capacity())),
                Err(StoreError::OutOfSpace) => {
                    // With other open blocks the stream goes on in one of them.
                    if let Some(open) = self.idlest_of(stream, bytes) {
                        return Ok(open);
                    }
                    if self.is_closed.get() {
                        return Err(StoreError::Closed);
                    }
                    self.progress.notify_all();
                    self.runtime.sleep_until(self.runtime.now() + SPACE_WAIT).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::OutOfSpace)
    }

    /// The idlest frontier of a stream with room for `bytes`.
    fn idlest_of(&self, stream: ValueStream, bytes: usize) -> Option<(BlockId, usize)> {
        let frontiers = self.frontiers.borrow();
        let idlest = self.idlest(frontiers.get(&stream)?, bytes)?;
        Some((idlest.block.id(), self.left(idlest)))
    }

    /// The one with the fewest appends under way of those with room for `bytes`.
    fn idlest<'f>(&self, frontiers: &'f [Frontier], bytes: usize) -> Option<&'f Frontier> {
        let column = |of: &dyn Fn(&Frontier) -> u32| -> SmallVec<[u32; MAX_WIDTH as usize]> {
            frontiers.iter().map(of).collect()
        };
        let is_full = |frontier: &Frontier| frontier.is_full || self.left(frontier) < bytes;
        let candidates = Candidates {
            occupied: &column(&|frontier| u32::from(is_full(frontier))),
            most: 1,
            erases: &column(&|_| 0),
            die: &(0..saturating_u32(frontiers.len())).collect::<SmallVec<[u32; 4]>>(),
            waiting: &column(&|frontier| saturating_u32(frontier.under_way.len())),
            cursor: 0,
        };
        let chosen = placement::choose(PlacementPolicy::LEAST_QUEUE, &candidates)?;
        frontiers.get(cast::index(chosen))
    }

    fn left(&self, frontier: &Frontier) -> usize {
        self.capacity() - frontier.next_page as usize * self.blocks.page_bytes()
    }

    /// Ends the frontiers of a stream that have no room for the next value, of so many bytes.
    fn seal_without_room(&self, stream: ValueStream, next: usize) {
        let mut full = Vec::new();
        if let Some(of_stream) = self.frontiers.borrow_mut().get_mut(&stream) {
            for frontier in of_stream.iter_mut() {
                if self.left(frontier) < next {
                    frontier.is_full = true;
                    full.push(frontier.block.id());
                }
            }
        }
        full.into_iter().for_each(|block| self.seal_if_done(stream, block));
    }

    /// Ends a frontier: its block has failed, or leaves its unit.
    pub(super) fn abandon(&self, stream: ValueStream, block: BlockId) {
        if let Some(of_stream) = self.frontiers.borrow_mut().get_mut(&stream) {
            let failed = of_stream.iter_mut().filter(|frontier| frontier.block.id() == block);
            failed.for_each(|frontier| frontier.is_full = true);
        }
        self.seal_if_done(stream, block);
    }

    /// An append of these pages is complete.
    pub(super) fn note_complete(&self, stream: ValueStream, block: BlockId, pages: &Range<u32>) {
        if let Some(of_stream) = self.frontiers.borrow_mut().get_mut(&stream) {
            for frontier in of_stream.iter_mut().filter(|frontier| frontier.block.id() == block) {
                frontier.under_way.remove(&pages.start);
                frontier.written_end = frontier.written_end.max(pages.end);
            }
        }
        self.seal_if_done(stream, block);
        self.progress.notify_all();
    }

    /// Seals a full block without appends under way. Not earlier: until then the ledger does not
    /// list all of its values, and the collector must not take it.
    fn seal_if_done(&self, stream: ValueStream, block: BlockId) {
        let mut frontiers = self.frontiers.borrow_mut();
        let Some(of_stream) = frontiers.get_mut(&stream) else { return };
        let early = planted::bug(Bug::ValueBlockSealedEarly);
        let is_done = |frontier: &mut Frontier| {
            let is_idle = frontier.under_way.is_empty() || early;
            frontier.block.id() == block && frontier.is_full && is_idle
        };
        for done in of_stream.extract_if(.., is_done) {
            done.block.seal();
            self.ledger.borrow_mut().seal(block.0);
        }
    }

    /// Opens a block, and leaves `kept` blocks free.
    fn open(&self, stream: ValueStream, kept: u32) -> Result<BlockId> {
        if self.blocks.free_blocks() <= kept {
            return Err(self.blocks.lack_of_space().into());
        }
        let id = self.blocks.new_id();
        let opened = self.blocks.open(id, BlockKind::Value, self.hint(stream));
        let block = Rc::new(opened.map_err(|error| match error {
            BlockError::OutOfSpace => StoreError::OutOfSpace,
            other => other.into(),
        })?);
        let handle = ValueBlock::new(id, self.blocks.clone());
        let is_short = stream == ValueStream::Short;
        self.ledger.borrow_mut().open(handle, self.clock.get(), is_short);
        let frontier = Frontier {
            block,
            next_page: 0,
            under_way: BTreeSet::new(),
            written_end: 0,
            is_full: false,
        };
        self.frontiers.borrow_mut().entry(stream).or_default().push(frontier);
        Ok(id)
    }

    /// Appends values to a frontier in one device write.
    ///
    /// # Errors
    /// The error of the flash, where it refuses the append.
    pub(super) fn append(
        &self,
        stream: ValueStream,
        block: BlockId,
        values: &[ValueBytes<'_>],
    ) -> Result<Started<impl Future<Output = Outcome> + use<>>, FtlError> {
        let page = self.blocks.page_bytes();
        let bytes: usize = values.iter().map(ValueBytes::stored_len).sum();
        let mut buffer = self.blocks.flash().buffer(bytes.next_multiple_of(page));
        let pages = (buffer.len() / page) as u32;
        let mut frontiers = self.frontiers.borrow_mut();
        let of_stream = frontiers.get_mut(&stream).map_or(&mut [][..], Vec::as_mut_slice);
        let frontier = of_stream.iter_mut().find(|frontier| frontier.block.id() == block);
        let Some(frontier) = frontier else {
            return Err(FtlError::NoSpace { unit: Default::default() });
        };
        let taken = frontier.next_page..frontier.next_page + pages;
        let start = frontier.next_page as usize * page;
        let places = encode(values, block, self.blocks.identity(block), start, &mut buffer);
        let is_durable = self.durability == Durability::Flash && !planted::bug(Bug::ValueNotForced);
        let appended = frontier.block.append(buffer, is_durable, self.hint(stream));
        let (first, outcome) = appended.map_err(|(error, _)| error)?;
        assert_eq!(
            first, taken.start,
            "shard {}: values go to the page of {block} that their references name",
            self.shard
        );
        frontier.next_page = taken.end;
        frontier.under_way.insert(taken.start);
        let open = Rc::clone(&frontier.block);
        Ok(Started { places, pages: taken, outcome, open })
    }

    /// Closes the word lines of all values that are written: on flash with several bits in a cell a
    /// power cut in a later program can destroy pages of open word lines. Appends that are under
    /// way, or padding, program the rest of the word lines; waits for them.
    pub(super) async fn close_word_lines(&self) -> Result<()> {
        let mut to_close = Vec::new();
        for (stream, of_stream) in self.frontiers.borrow_mut().iter_mut() {
            for frontier in of_stream.iter_mut() {
                to_close.extend(self.pad(*stream, frontier));
            }
        }
        for open in to_close {
            if let Some((pages, outcome)) = open.padding {
                let (written, _) = outcome.await;
                if let Err(error) = written {
                    // A failed program ends the block, so that no later program can reach its word
                    // lines.
                    tracing::debug!(shard = self.shard.0, %error, "a value block could not be padded");
                    self.abandon(open.stream, open.block);
                }
                self.note_complete(open.stream, open.block, &pages);
            }
            while self.is_under_way(open.stream, open.block, open.end) {
                if let Some(error) = self.failure.borrow().as_ref() {
                    return Err(error.clone());
                }
                self.progress.notified().await;
            }
            // Where it took no padding.
            self.seal_if_done(open.stream, open.block);
        }
        Ok(())
    }

    /// Pads the open word lines of a frontier, as far as no append under way programs them. `None`
    /// where there are none.
    fn pad(
        &self,
        stream: ValueStream,
        frontier: &mut Frontier,
    ) -> Option<OpenWordLines<impl Future<Output = Outcome> + use<>>> {
        let (flash, page) = (self.blocks.flash(), self.blocks.page_bytes());
        let last = (self.capacity() / page) as u32;
        let end = flash.safe_after(frontier.written_end).min(last);
        if end <= frontier.written_end || planted::bug(Bug::ValueWordLinesOpen) {
            return None;
        }
        let pages = frontier.next_page..end;
        let block = frontier.block.id();
        let mut padding = None;
        if !pages.is_empty() {
            let mut zeros = flash.buffer(pages.len() * page);
            zeros.fill(0);
            let is_durable = self.durability == Durability::Flash;
            match frontier.block.append(zeros, is_durable, self.hint(stream)) {
                Ok((_, outcome)) => {
                    frontier.next_page = pages.end;
                    frontier.under_way.insert(pages.start);
                    padding = Some((pages, outcome));
                }
                // Its failure ends the block, so that no later program can reach its word lines.
                Err((error, _)) => {
                    tracing::debug!(shard = self.shard.0, %error, "a value block took no padding");
                    frontier.is_full = true;
                }
            }
        }
        Some(OpenWordLines { stream, block, end, padding })
    }

    /// Whether an append to pages before `end` of a block is under way.
    fn is_under_way(&self, stream: ValueStream, block: BlockId, end: u32) -> bool {
        let frontiers = self.frontiers.borrow();
        let mut of_stream = frontiers.get(&stream).into_iter().flatten();
        let frontier = of_stream.find(|frontier| frontier.block.id() == block);
        frontier.is_some_and(|frontier| frontier.under_way.range(..end).next().is_some())
    }
}

/// The open word lines of a block.
struct OpenWordLines<F> {
    stream: ValueStream,
    block: BlockId,
    /// The page up to which the block must be programmed to close them.
    end: u32,
    /// Padding that was started: its pages and their outcome.
    padding: Option<(Range<u32>, F)>,
}

/// Encodes values one behind the other into `buffer`, which goes to byte `start` of the block;
/// returns their references.
fn encode(
    values: &[ValueBytes<'_>],
    block: BlockId,
    identity: u64,
    start: usize,
    buffer: &mut [u8],
) -> Vec<Reference> {
    let mut at = 0;
    let mut places = Vec::with_capacity(values.len());
    for value in values {
        let (offset, len) = ((start + at) as u32, value.stored_len());
        let place = buffer.get_mut(at..at + len).unwrap_or_default();
        value.encode(identity, offset, place);
        places.push(Reference::new(block.0, offset, len as u32, value.checksum));
        at += len;
    }
    if let Some(rest) = buffer.get_mut(at..) {
        rest.fill(0);
    }
    places
}
