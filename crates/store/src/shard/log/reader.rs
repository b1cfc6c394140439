//! Reading a log back: pages of its segments become frames, and a verdict on how they end.

use super::chain::Segment;
use super::kept::{KeptPieces, Pages};
use super::piece::{Piece, Readings};
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
use softflash_ftl::{FtlError, Hint, Superblock};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces read at the same time: as segments lie on different units, they come from several of them.
const PIECES_AHEAD: usize = 32;
/// Pages read for the first frame of a segment, where they are enough; most often they are.
const FIRST_STEP_PAGES: u32 = 2;
/// Segments' worth of pages that is kept: what recovery looks at again is the last segment and the one before.
const KEPT_SEGMENTS: u32 = 2;
/// Pages read one by one, after a read that failed, at the same time.
const SINGLE_READS: usize = 32;

/// A segment, the first page of a piece of it, and how many pages that has at most.
type PieceOf<'s> = (&'s Segment, u32, u32);

/// Reads the log of a shard.
pub struct LogReader {
    blocks: BlockLayer,
    shard: ShardId,
    hint: Hint,
    pieces_ahead: usize,
    kept: KeptPieces,
    /// The page from which on nothing is read.
    end: Option<Position>,
    /// Frames that were passed over by the last scan, where that is wanted.
    losses: RefCell<Option<Vec<Range<u64>>>>,
    /// Frames that not all copies had whole in any scan.
    uneven: RefCell<BTreeSet<Position>>,
    /// A page where the log's frames stop was passed over though it was whole once.
    lost_end: Cell<bool>,
}

impl LogReader {
    /// A reader of the log of `shard`.
    pub fn new(blocks: BlockLayer, shard: ShardId) -> LogReader {
        let segment_pages = (blocks.capacity_bytes() / blocks.page_bytes()) as u32;
        LogReader {
            blocks,
            shard,
            hint: Hint::FOREGROUND,
            pieces_ahead: PIECES_AHEAD,
            kept: KeptPieces::of_pages(KEPT_SEGMENTS * segment_pages),
            end: None,
            losses: RefCell::default(),
            uneven: RefCell::default(),
            lost_end: Cell::default(),
        }
    }

    /// A reader of a log that is in use, of the pages before `end`, with as little trouble to others as can be.
    pub fn patrolling(blocks: BlockLayer, shard: ShardId, end: Position) -> LogReader {
        let reader = LogReader::new(blocks, shard);
        let kept = KeptPieces::default();
        LogReader { hint: Hint::COMPACTION, pieces_ahead: 1, kept, end: Some(end), ..reader }
    }

    /// From now on everything is read anew: a read can go wrong once.
    pub fn read_anew(&self) {
        self.kept.forget();
    }

    /// From now on goes on behind frames that are lost.
    pub fn pass_losses(&self) {
        *self.losses.borrow_mut() = Some(Vec::new());
        self.read_anew();
    }

    /// The frames that the last scan has passed over.
    pub fn losses(&self) -> Vec<Range<u64>> {
        self.losses.borrow().clone().unwrap_or_default()
    }

    /// The frames that were read and that not all copies have whole.
    pub fn uneven(&self) -> BTreeSet<Position> {
        self.uneven.borrow().clone()
    }

    /// Whether frames behind the last one are lost and were passed over; nobody knows how many.
    pub fn has_lost_end(&self) -> bool {
        self.lost_end.get()
    }

    /// Hands the frames of a run of segments, in order, to `sink`, and says how they end.
    ///
    /// # Errors
    /// Those of `sink` and of the device, pages that cannot be read excepted: they are judged like damage.
    /// [`StoreError::Unusable`] where a newer program wrote to the log.
    pub async fn scan(
        &self,
        segments: &[Segment],
        mut sink: impl FnMut(Frame) -> Result<()>,
    ) -> Result<End> {
        let mut scanner = self.scanner();
        if self.losses.borrow().is_some() {
            scanner = scanner.passing_losses();
        }
        if let Some((last, before)) = segments.split_last() {
            let pieces = before.iter().flat_map(|segment| self.pieces(segment));
            self.scan_pieces(pieces, self.pieces_ahead, &mut scanner, &mut sink).await?;
            // In a log that was closed, the frame that says so stands near the beginning: one piece after the other, or most of
            // what is read was never written.
            let is_short = |(.., step): &PieceOf<'_>| *step < self.longest_step();
            let begins = self.pieces(last).take_while(is_short);
            let found = self.scan_pieces(begins, 1, &mut scanner, &mut sink).await?;
            if found != Some(FrameRole::End) {
                let goes_on = self.pieces(last).skip_while(is_short);
                self.scan_pieces(goes_on, self.pieces_ahead, &mut scanner, &mut sink).await?;
            }
        }
        scanner.end_segment().map_err(|error| self.refuse(error))?;
        if let Some(losses) = self.losses.borrow_mut().as_mut() {
            *losses = scanner.losses().to_vec();
        }
        for at in scanner.uneven() {
            self.uneven.borrow_mut().insert(*at);
            let uneven = segments.iter().filter(|segment| segment.number == at.segment);
            uneven.for_each(|segment| self.blocks.note_degraded(segment.block));
        }
        Ok(scanner.finish())
    }

    /// Reads pieces, some at a time, and hands their frames to `sink`. Returns what the last frame is.
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

    /// The sequence of the frame with which a segment starts, copies left aside, if that frame is whole.
    ///
    /// # Errors
    /// As for [`scan`](LogReader::scan).
    pub async fn first_sequence(&self, segment: &Segment) -> Result<Option<u64>> {
        let mut scanner = self.scanner();
        self.begin(&mut scanner, segment);
        // A copy may come before it.
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

    /// What the announcement in front of a segment's frames says, where there is one: frames below this sequence were durable
    /// when it was written.
    ///
    /// # Errors
    /// Those of the device, unreadable pages excepted.
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

    /// Where the frames of a segment stop, if nothing can rely on the segment yet: its opening is not whole, or no event
    /// stands behind it. Of a log that is in use all is relied on.
    ///
    /// # Errors
    /// As for [`scan`](LogReader::scan).
    pub async fn stops_unproved(&self, segment: &Segment) -> Result<Option<Position>> {
        let first_page = u32::from(self.announcement(segment).await?.is_some());
        let mut stop = Position { segment: segment.number, page: first_page };
        for attempt in 0..2 {
            if attempt > 0 {
                self.read_anew();
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

    /// Whether, read once more, the page where frames stop begins the next one.
    ///
    /// # Errors
    /// Those of the device, unreadable pages excepted.
    pub async fn goes_on(&self, segments: &[Segment], at: Position, sequence: u64) -> Result<bool> {
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

    /// Makes sure that a page where frames stop is one where a power cut may have stopped them.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where the page was whole once and cannot be read any more: what it held may have been
    /// durable, with all that came behind it. Those of the device.
    pub async fn refuse_lost_page(&self, segments: &[Segment], at: Position) -> Result<()> {
        let lost = match self.block_at(segments, at) {
            Some(block) => self.blocks.has_lost(block, at.page, self.hint).await?,
            None => false,
        };
        let passes = self.losses.borrow().is_some();
        self.lost_end.set(lost && passes || self.lost_end.get());
        if !lost || passes {
            return Ok(());
        }
        let what = format!("page {} was written as it should be, and cannot be read", at.page);
        Err(self.damage(at.segment, &what))
    }

    /// The error for log bytes that are whole and yet cannot be used.
    pub fn refuse(&self, error: FormatError) -> StoreError {
        let shard = self.shard;
        match error {
            FormatError::Version { .. } | FormatError::UnknownEvent { .. } => {
                StoreError::Unusable(format!("log of shard {shard}: {error}"))
            }
            _ => StoreError::DataLoss(format!("log of shard {shard}: {error}")),
        }
    }

    /// The error for a segment that has lost what was acknowledged.
    pub fn damage(&self, segment: u64, what: &str) -> StoreError {
        StoreError::DataLoss(format!(
            "segment {segment} of the log of shard {}: {what}",
            self.shard
        ))
    }

    /// Looks into a superblock whose opening header is damaged for a segment behind `end`, the last one that was
    /// found. Most such superblocks were just being opened when the power went.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where frames in it say that they were durable, and where its die is dead.
    pub async fn refuse_lost_segment(&self, superblock: &Superblock, end: u64) -> Result<()> {
        let mut first: Option<u64> = None;
        for page in 0..self.pages() {
            let hint = Hint::FOREGROUND;
            let bytes = match self.blocks.read_unknown(superblock, page, hint).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(()),
                // What a cut leaves behind is damaged; this was whole, and may have been a segment of the log.
                Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                    return Err(StoreError::DataLoss(format!(
                        "superblock {superblock} is on a die that is dead, and with it what the log may have had there"
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
                let what = format!(
                    "it holds what was durable, and the opening header of its superblock {superblock} is damaged"
                );
                return Err(self.damage(header.segment, &what));
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

    /// The page behind the last one of a segment that is read.
    fn end(&self, segment: &Segment) -> u32 {
        let end = self.end.filter(|end| end.segment == segment.number);
        let pages = self.pages() - u32::from(planted::bug(Bug::LastPageUnread));
        end.map_or(pages, |end| end.page.min(pages))
    }

    /// A segment in pieces, each twice as long as the one before up to some length: most who look only want to know how it begins.
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

    /// The next pages, at most `step`, as they were read before or as they are read now.
    async fn piece(&self, segment: &Segment, first: u32, step: u32) -> Result<Rc<Piece>> {
        let count = step.min(self.end(segment).saturating_sub(first));
        let pages = (segment.block, first, count);
        if let Some(piece) = self.kept.get(pages) {
            return Ok(piece);
        }
        let piece = Rc::new(self.read_piece(pages).await?);
        self.kept.keep(pages, &piece);
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
        // Real flash refuses to read pages that were never programmed. Those that were can still be read.
        let pages = stream::iter(first..first + count).map(|page| self.read(block, page, 1));
        let pages: Vec<Readings> = pages.buffered(SINGLE_READS).try_collect().await?;
        Ok(Piece::of_pages(pages))
    }

    /// Reads pages; nothing where the flash does not give them all.
    async fn read(&self, block: BlockId, first: u32, count: u32) -> Result<Readings> {
        match self.blocks.search_each(block, first, count, self.hint).await {
            Err(BlockError::DataLoss(_)) if self.losses.borrow().is_some() => Ok(Readings::new()),
            read => Ok(read?),
        }
    }
}
