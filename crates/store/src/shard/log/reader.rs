//! Reads a log: turns pages of its segments into frames, and classifies their end.

use super::chain::Segment;
use super::piece::{Piece, Readings};
use super::piece_cache::{Pages, PieceCache};
use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::log::frame::{self, FrameRole, MAX_FRAME_BYTES, Slot};
use crate::format::log::{End, Frame, LogScanner, Position};
use futures_util::stream;
use futures_util::{StreamExt, TryStreamExt};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, ShardId};
use softflash_blocks::{BlockError, BlockId, BlockLayer};
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Priority, Superblock};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Range;
use std::rc::Rc;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces read in parallel: consecutive segments lie on different units.
const PIECES_AHEAD: usize = 32;
/// Pages of the first read in a segment, which usually cover its first frame.
const FIRST_STEP_PAGES: u32 = 2;
/// Capacity of the cache in segments: recovery reads the last two segments again.
const CACHED_SEGMENTS: u32 = 2;
/// Single-page reads in parallel, after a read of several pages failed.
const SINGLE_READS: usize = 32;

/// A segment, the first page of a piece of it, and the maximum number of pages of the piece.
type PieceOf<'s> = (&'s Segment, u32, u32);

/// Reads the log of a shard.
pub struct LogReader {
    blocks: BlockLayer,
    shard: ShardId,
    hint: Hint,
    pieces_ahead: usize,
    cache: PieceCache,
    /// The end of the part to read.
    end: Option<Position>,
    /// Lost frames that the last scan has skipped, if losses are accepted.
    losses: RefCell<Option<Vec<Range<u64>>>>,
    /// Frames that a scan found in one of two copies only, with their sequences.
    uneven: RefCell<BTreeMap<Position, u64>>,
    /// The log ends at a page that was once programmed completely, and the loss was accepted.
    lost_end: Cell<bool>,
}

impl LogReader {
    /// A reader of the log of `shard`.
    pub fn new(blocks: BlockLayer, shard: ShardId) -> LogReader {
        let segment_pages = (blocks.capacity_bytes() / blocks.page_bytes()) as u32;
        LogReader {
            blocks,
            shard,
            hint: Hint::LOG,
            pieces_ahead: PIECES_AHEAD,
            cache: PieceCache::of_pages(CACHED_SEGMENTS * segment_pages),
            end: None,
            losses: RefCell::default(),
            uneven: RefCell::default(),
            lost_end: Cell::default(),
        }
    }

    /// A reader of the pages before `end` of a log in use. It reads at low priority, one piece at a
    /// time, without a cache.
    pub fn for_scrub(blocks: BlockLayer, shard: ShardId, end: Position) -> LogReader {
        let reader = LogReader::new(blocks, shard);
        let cache = PieceCache::default();
        LogReader {
            hint: Hint::LOG.at(Priority::Background),
            pieces_ahead: 1,
            cache,
            end: Some(end),
            ..reader
        }
    }

    /// Drops the cached pages, so that the next reads go to the flash: a read error may be
    /// transient.
    pub fn clear_cache(&self) {
        self.cache.clear();
    }

    /// Accepts losses: later scans continue after lost frames.
    pub fn accept_losses(&self) {
        *self.losses.borrow_mut() = Some(Vec::new());
        self.clear_cache();
    }

    /// The lost frames that the last scan has skipped.
    pub fn losses(&self) -> Vec<Range<u64>> {
        self.losses.borrow().clone().unwrap_or_default()
    }

    /// The frames that are in one of two copies only, with their sequences.
    pub fn uneven(&self) -> BTreeMap<Position, u64> {
        self.uneven.borrow().clone()
    }

    /// Whether the log has lost an unknown number of frames at its end, and the loss was accepted.
    pub fn has_lost_end(&self) -> bool {
        self.lost_end.get()
    }

    /// Passes the frames of consecutive segments to `sink`, and returns how they end.
    ///
    /// # Errors
    /// Errors of `sink` and of the device. Unreadable pages are no error but damage.
    /// [`StoreError::Unusable`] where the log has a newer format version.
    pub async fn scan(
        &self,
        segments: &[Segment],
        mut sink: impl FnMut(Frame) -> Result<()>,
    ) -> Result<End> {
        let lone = self.lone(segments);
        let mut sink = |frame: Frame| {
            if lone.contains(&frame.at.segment) {
                self.uneven.borrow_mut().insert(frame.at, frame.header.sequence);
            }
            sink(frame)
        };
        let mut scanner = self.scanner();
        if self.losses.borrow().is_some() {
            scanner = scanner.passing_losses();
        }
        if let Some((last, before)) = segments.split_last() {
            let pieces = before.iter().flat_map(|segment| self.pieces(segment));
            self.scan_pieces(pieces, self.pieces_ahead, &mut scanner, &mut sink).await?;
            // A log that was closed has its end frame near the beginning of the last segment.
            // Reading piece by piece avoids reads of pages that were never programmed.
            let is_short = |(.., step): &PieceOf<'_>| *step < self.longest_step();
            let begins = self.pieces(last).take_while(is_short);
            let found = self.scan_pieces(begins, 1, &mut scanner, &mut sink).await?;
            if found != Some(FrameRole::End) {
                let rest = self.pieces(last).skip_while(is_short);
                self.scan_pieces(rest, self.pieces_ahead, &mut scanner, &mut sink).await?;
            }
        }
        scanner.end_segment().map_err(|error| self.refuse(error))?;
        if let Some(losses) = self.losses.borrow_mut().as_mut() {
            *losses = scanner.losses().to_vec();
        }
        for (at, sequence) in scanner.uneven() {
            self.uneven.borrow_mut().insert(*at, *sequence);
            let uneven = segments.iter().filter(|segment| segment.number == at.segment);
            uneven.for_each(|segment| self.blocks.note_degraded(segment.block));
        }
        Ok(scanner.finish())
    }

    /// The numbers of the segments that have one of two copies.
    fn lone(&self, segments: &[Segment]) -> BTreeSet<u64> {
        let has_one = |segment: &&Segment| self.blocks.superblocks(segment.block).len() == 1;
        let copied = segments.iter().filter(|_| self.blocks.keeps_log_copies());
        copied.filter(has_one).map(|segment| segment.number).collect()
    }

    /// Reads up to `ahead` pieces in parallel and passes their frames to `sink`. Returns the role
    /// of the last frame.
    async fn scan_pieces<'s>(
        &self,
        pieces: impl Iterator<Item = PieceOf<'s>>,
        ahead: usize,
        scanner: &mut LogScanner,
        sink: &mut impl FnMut(Frame) -> Result<()>,
    ) -> Result<Option<FrameRole>> {
        let read =
            async |(segment, first, step)| (segment, first, self.piece(segment, first, step).await);
        let mut pieces = stream::iter(pieces).map(read).buffered(ahead);
        let mut last = None;
        while let Some((segment, first, piece)) = pieces.next().await {
            if first == 0 {
                scanner.end_segment().map_err(|error| self.refuse(error))?;
                self.begin(scanner, segment);
            }
            piece?.feed(scanner);
            while let Some(frame) = scanner.next_frame().map_err(|error| self.refuse(error))? {
                last = Some(frame.header.role);
                sink(frame)?;
            }
        }
        Ok(last)
    }

    /// The sequence of the first frame of a segment, if that frame is undamaged. Repeated frames
    /// are not considered.
    ///
    /// # Errors
    /// As for [`scan`](LogReader::scan).
    pub async fn first_sequence(&self, segment: &Segment) -> Result<Option<u64>> {
        let mut scanner = self.scanner();
        self.begin(&mut scanner, segment);
        // A repeated frame may precede it.
        let longest = 2 * MAX_FRAME_BYTES.div_ceil(self.blocks.page_bytes()) as u32;
        for (_, page, step) in self.pieces(segment).take_while(|(_, page, _)| *page < longest) {
            let piece = self.piece(segment, page, step).await?;
            piece.feed(&mut scanner);
            if let Some(frame) = scanner.next_frame().map_err(|error| self.refuse(error))? {
                return Ok(Some(frame.header.sequence));
            }
        }
        Ok(None)
    }

    /// The announcement at the start of a segment, if it has one: frames below the returned
    /// sequence were durable.
    ///
    /// # Errors
    /// Errors of the device other than unreadable pages.
    pub async fn announcement(&self, segment: &Segment) -> Result<Option<u64>> {
        let identity = self.blocks.identity(segment.block);
        let announced = |page: &IoBuf| match frame::open(page, identity, 0) {
            Slot::Frame(header) if header.role == FrameRole::Announcement => {
                (header.shard == self.shard.0 && header.segment == segment.number)
                    .then_some(header.durable_before)
            }
            _ => None,
        };
        let readings = self.read(segment.block, 0, 1).await?;
        Ok(readings.iter().flatten().find_map(announced))
    }

    /// The end of the frames of a segment that is not proved: its opening is incomplete, or no
    /// event follows it. In a log in use every segment is proved.
    ///
    /// # Errors
    /// As for [`scan`](LogReader::scan).
    pub async fn unproved_end(&self, segment: &Segment) -> Result<Option<Position>> {
        let first_page = u32::from(self.announcement(segment).await?.is_some());
        let mut stop = Position { segment: segment.number, page: first_page };
        for attempt in 0..2 {
            if attempt > 0 {
                self.clear_cache();
            }
            let mut proved = false;
            let end = self.scan(std::slice::from_ref(segment), |frame| {
                stop = stop.max(frame.behind(self.page_bytes()));
                proved |= frame.header.role == FrameRole::Stream || self.end.is_some();
                Ok(())
            });
            if matches!(end.await?, End::Corrupt { .. }) || proved {
                return Ok(None);
            }
        }
        Ok(Some(stop))
    }

    /// Reads the page at the end of the frames again. Returns whether the next frame starts there.
    ///
    /// # Errors
    /// Errors of the device other than unreadable pages.
    pub async fn continues_at(
        &self,
        segments: &[Segment],
        at: Position,
        sequence: u64,
    ) -> Result<bool> {
        let Some(block) = self.block_at(segments, at) else { return Ok(false) };
        let is_next = |page: &IoBuf| {
            frame::claimed_header(page, at.page).is_some_and(|header| {
                let ours = header.shard == self.shard.0 && header.segment == at.segment;
                ours && header.sequence == sequence
            })
        };
        Ok(self.read(block, at.page, 1).await?.iter().flatten().any(is_next))
    }

    fn block_at(&self, segments: &[Segment], at: Position) -> Option<BlockId> {
        let segment = segments.iter().find(|segment| segment.number == at.segment)?;
        (at.page < self.end(segment)).then_some(segment.block)
    }

    /// Checks that a power cut can explain the end of the frames at this page.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where the page was once programmed completely and is unreadable: it
    /// and all later pages may have held durable frames. Errors of the device.
    pub async fn refuse_lost_page(&self, segments: &[Segment], at: Position) -> Result<()> {
        let lost = match self.block_at(segments, at) {
            Some(block) => self.blocks.has_lost(block, at.page, self.hint).await?,
            None => false,
        };
        let accepts = self.losses.borrow().is_some();
        self.lost_end.set(lost && accepts || self.lost_end.get());
        if !lost || accepts {
            return Ok(());
        }
        let reason = format!("page {} was programmed completely, and cannot be read", at.page);
        Err(self.damage(at.segment, &reason))
    }

    /// The error for log bytes that are undamaged and cannot be decoded.
    pub fn refuse(&self, error: FormatError) -> StoreError {
        let shard = self.shard;
        match error {
            FormatError::Version { .. } | FormatError::UnknownEvent { .. } => {
                StoreError::Unusable(format!("log of shard {shard}: {error}"))
            }
            _ => StoreError::DataLoss(format!("log of shard {shard}: {error}")),
        }
    }

    /// The error for a segment that has lost acknowledged events.
    pub fn damage(&self, segment: u64, reason: &str) -> StoreError {
        StoreError::DataLoss(format!(
            "segment {segment} of the log of shard {}: {reason}",
            self.shard
        ))
    }

    /// Checks whether a superblock with a damaged opening header holds a segment after `end`, the
    /// last one found. Most such superblocks were just being opened at a power cut.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where its frames record that they were durable, and where its die
    /// is dead.
    pub async fn refuse_lost_segment(&self, superblock: &Superblock, end: u64) -> Result<()> {
        let mut first: Option<u64> = None;
        for page in 0..self.pages() {
            let hint = Hint::LOG;
            let bytes = match self.blocks.read_unknown(superblock, page, hint).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(()),
                // A power cut leaves damaged pages, not a dead die: this superblock may have been a
                // segment.
                Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                    return Err(StoreError::DataLoss(format!(
                        "superblock {superblock} is on a dead die and may have been a segment of the log"
                    )));
                }
                Err(_) => continue,
            };
            let Some(header) = frame::claimed_header(&bytes, page) else { continue };
            let is_announcement = header.role == FrameRole::Announcement;
            if header.shard != self.shard.0 || header.segment <= end || is_announcement {
                continue;
            }
            if header.durable_before > *first.get_or_insert(header.sequence) {
                let reason = format!(
                    "it holds durable frames, and the opening header of its superblock {superblock} is damaged"
                );
                return Err(self.damage(header.segment, &reason));
            }
        }
        Ok(())
    }

    fn scanner(&self) -> LogScanner {
        LogScanner::new(self.shard.0, self.blocks.page_bytes(), None)
    }

    fn begin(&self, scanner: &mut LogScanner, segment: &Segment) {
        let identity = self.blocks.identity(segment.block);
        scanner.begin_segment(segment.number, identity, segment.superseded_from);
    }

    pub(super) fn blocks(&self) -> &BlockLayer {
        &self.blocks
    }

    pub(super) fn shard(&self) -> ShardId {
        self.shard
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.blocks.page_bytes()
    }

    fn pages(&self) -> u32 {
        (self.blocks.capacity_bytes() / self.blocks.page_bytes()) as u32
    }

    /// The end of the pages of a segment to read.
    fn end(&self, segment: &Segment) -> u32 {
        let end = self.end.filter(|end| end.segment == segment.number);
        let pages = self.pages() - u32::from(planted::bug(Bug::LastPageUnread));
        end.map_or(pages, |end| end.page.min(pages))
    }

    /// Splits a segment into pieces. Each piece is twice as long as the one before, up to a limit:
    /// most callers need only the first frames.
    fn pieces<'s>(&self, segment: &'s Segment) -> impl Iterator<Item = PieceOf<'s>> + use<'s> {
        let (end, longest) = (self.end(segment), self.longest_step());
        let next = move |(first, step): &(u32, u32)| Some((first + step, (2 * step).min(longest)));
        let steps = iter::successors(Some((0, FIRST_STEP_PAGES.min(longest))), next);
        steps
            .take_while(move |(first, _)| *first < end)
            .map(move |(first, step)| (segment, first, step))
    }

    /// Pages of the longest piece.
    fn longest_step(&self) -> u32 {
        (PIECE_BYTES / self.blocks.page_bytes()).max(1) as u32
    }

    /// The next pages, at most `step`, from the cache or from the flash.
    async fn piece(&self, segment: &Segment, first: u32, step: u32) -> Result<Rc<Piece>> {
        let count = step.min(self.end(segment).saturating_sub(first));
        let pages = (segment.block, first, count);
        if let Some(piece) = self.cache.get(pages) {
            return Ok(piece);
        }
        let piece = Rc::new(self.read_piece(pages).await?);
        self.cache.insert(pages, &piece);
        Ok(piece)
    }

    async fn read_piece(&self, (block, first, count): Pages) -> Result<Piece> {
        let mut readings = self.read(block, first, count).await?;
        let agree = match &readings[..] {
            [Some(one), Some(other)] => one[..] == other[..],
            readings => readings.len() == 1,
        };
        if let Some(Some(pages)) = readings.drain(..).next().filter(|_| agree) {
            return Ok(Piece::whole(&pages));
        }
        // Real flash fails reads of pages that were never programmed. Read the pages one by one to
        // get the programmed ones.
        let pages = stream::iter(first..first + count).map(|page| self.read(block, page, 1));
        let pages: Vec<Readings> = pages.buffered(SINGLE_READS).try_collect().await?;
        Ok(Piece::of_pages(pages))
    }

    /// Reads pages from every copy; a copy is `None` where one of its pages cannot be read.
    async fn read(&self, block: BlockId, first: u32, count: u32) -> Result<Readings> {
        match self.blocks.search_each(block, first, count, self.hint).await {
            Err(BlockError::DataLoss(_)) if self.losses.borrow().is_some() => Ok(Readings::new()),
            read => Ok(read?),
        }
    }
}
