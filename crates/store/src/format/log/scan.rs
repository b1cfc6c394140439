//! Finds the frames of a log and determines how the log ends: clean, torn by a power cut, or
//! corrupt.
//!
//! A frame is followed by the frame with the next sequence, on the next page or at the start of the
//! next segment. Otherwise the expected frame `e` is missing. A whole frame behind it with
//! `durable_before` above `e` proves that `e` was durable: it was written after all frames below
//! `durable_before` were reported durable. Then acknowledged data is lost: the log is corrupt.
//! Without such a frame nothing behind was acknowledged either, because frames are acknowledged in
//! order: the log is torn, and ends before `e`. Only at the very end, where nothing was written
//! after `e`, does damage look like a torn write.

use super::VERSION;
use super::frame::{self, FrameHeader, FrameRole, HEADER_BYTES, MAGIC, Slot};
use crate::format::FormatError;
use bytes::{Bytes, BytesMut};
use softflash_base::cast::{index, saturating_u32};
use std::collections::BTreeMap;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// The most differing pages of a frame for which all combinations of two copies are tried.
const MOST_MIXED_PAGES: usize = 6;

/// A page of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The segment.
    pub segment: u64,
    /// The page in it.
    pub page: u32,
}

impl Position {
    /// The position directly before this one.
    pub fn before(self) -> Position {
        match self.page.checked_sub(1) {
            Some(page) => Position { page, ..self },
            None => Position { segment: self.segment.saturating_sub(1), page: u32::MAX },
        }
    }
}

/// A whole frame and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The position of its first page.
    pub at: Position,
    /// Its header.
    pub header: FrameHeader,
    /// Its part of the event stream.
    pub payload: Bytes,
}

impl Frame {
    /// The page behind it.
    pub fn behind(&self, page_bytes: usize) -> Position {
        let pages = frame::pages(index(self.header.payload_len), page_bytes);
        Position { page: self.at.page + saturating_u32(pages), ..self.at }
    }
}

/// The pages behind the last frame of a log that ends clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// No further page.
    Nothing,
    /// Pages of zeros or ones: erased.
    Blank,
    /// Pages that cannot be read: most likely never written.
    Unreadable,
    /// Pages without the marks of this log: most likely from an earlier generation of the
    /// superblock.
    Foreign,
}

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// No write was begun behind the last frame.
    Clean {
        /// The sequence of the next frame; `None` without any frame.
        next_sequence: Option<u64>,
        /// The pages behind the last frame.
        rest: Rest,
    },
    /// A write was interrupted. Nothing behind it was acknowledged.
    Torn {
        /// The position of the first frame that is not whole.
        at: Position,
        /// The sequence of the next frame; `None` without any whole frame.
        next_sequence: Option<u64>,
    },
    /// Frames that were durable are missing.
    Corrupt {
        /// The position where the first of them should be.
        at: Position,
        /// The sequences of durable frames of which at least the first is lost.
        lost: Range<u64>,
    },
}

/// The position where the frames stop, and the evidence behind it.
#[derive(Debug)]
struct Cut {
    at: Position,
    rest: Rest,
    /// A page behind has the marks of this log.
    begun: bool,
    /// The highest `durable_before` of the whole frames behind.
    durable_before: u64,
    /// The lowest sequence that a frame behind repeats.
    repeated: Option<u64>,
}

/// Reads the segments of a log in order.
///
/// For each segment call [`begin_segment`](LogScanner::begin_segment), [`feed`](LogScanner::feed)
/// with pages or larger pieces, [`next_frame`](LogScanner::next_frame) after each until it returns
/// none, and [`end_segment`](LogScanner::end_segment).
#[derive(Debug)]
pub struct LogScanner {
    shard: u16,
    page_bytes: usize,
    /// The sequence of the next frame, if it is known.
    expected: Option<u64>,
    cut: Option<Cut>,
    segment: u64,
    identity: u64,
    superseded_from: u64,
    superseded: bool,
    /// The page at the start of `buffer`.
    page: u32,
    buffer: Bytes,
    /// Unreadable pages of the segment; the buffer has zeros for them.
    unreadable: Vec<u32>,
    /// Unreadable pages behind the buffer: most often the unwritten rest of a segment.
    unreadable_rest: u32,
    /// Pages that differ between two copies, with the contents that are not in the buffer, if
    /// readable.
    disputed: BTreeMap<u32, Option<Bytes>>,
    /// Frames on such pages, which are whole in one copy only, with their sequences.
    uneven: BTreeMap<Position, u64>,
    /// Lost frames that were skipped, if the scanner skips them.
    losses: Option<Vec<Range<u64>>>,
}

impl LogScanner {
    /// A scanner of the log of `shard`. `first_sequence` is the sequence of the first frame, if
    /// known; without it only later frames can show damage at the very start.
    pub fn new(shard: u16, page_bytes: usize, first_sequence: Option<u64>) -> LogScanner {
        LogScanner {
            shard,
            page_bytes: page_bytes.max(HEADER_BYTES),
            expected: first_sequence,
            cut: None,
            segment: 0,
            identity: 0,
            superseded_from: u64::MAX,
            superseded: false,
            page: 0,
            buffer: Bytes::new(),
            unreadable: Vec::new(),
            unreadable_rest: 0,
            disputed: BTreeMap::new(),
            uneven: BTreeMap::new(),
            losses: None,
        }
    }

    /// Skips lost frames and continues behind them, for a repair. Superseded frames stay dropped.
    pub fn passing_losses(mut self) -> LogScanner {
        self.losses = Some(Vec::new());
        self
    }

    /// The lost frames that were skipped.
    pub fn losses(&self) -> &[Range<u64>] {
        self.losses.as_deref().unwrap_or_default()
    }

    /// Continues with the first page of a segment, whose block has this identity.
    ///
    /// `superseded_from` is the lowest sequence with which a later segment starts, if known. A
    /// recovery that could not read the last frame continued in a new segment; if that frame is
    /// readable in a later recovery, it must stay dropped.
    pub fn begin_segment(&mut self, segment: u64, identity: u64, superseded_from: Option<u64>) {
        self.segment = segment;
        self.identity = identity;
        self.superseded_from = superseded_from.unwrap_or(u64::MAX);
        self.superseded = false;
        self.page = 0;
        self.buffer.clear();
        self.unreadable.clear();
        self.unreadable_rest = 0;
        self.disputed.clear();
    }

    /// Adds the next bytes of the segment.
    pub fn feed(&mut self, bytes: Bytes) {
        self.fill_unreadable();
        self.append(bytes);
    }

    /// Adds an unreadable page of the segment. Call it between whole pages.
    pub fn feed_unreadable(&mut self) {
        self.unreadable_rest += 1;
    }

    /// Adds a page of the segment that differs between two copies; `None` for an unreadable copy.
    /// Call it between whole pages.
    pub fn feed_disputed(&mut self, one: Option<Bytes>, other: Option<Bytes>) {
        let (bytes, other) = match (one, other) {
            (Some(one), other) => (one, other),
            (None, Some(other)) => (other, None),
            (None, None) => return self.feed_unreadable(),
        };
        self.fill_unreadable();
        let page = self.page + saturating_u32(self.buffer.len() / self.page_bytes);
        self.disputed.insert(page, other);
        self.append(bytes);
    }

    /// Copies only if the buffer holds the beginning of a frame.
    fn append(&mut self, bytes: Bytes) {
        if self.buffer.is_empty() {
            self.buffer = bytes;
            return;
        }
        let mut joined = BytesMut::with_capacity(self.buffer.len() + bytes.len());
        joined.extend_from_slice(&self.buffer);
        joined.extend_from_slice(&bytes);
        self.buffer = joined.freeze();
    }

    /// Appends zeros up to a length.
    fn pad_to(&mut self, len: usize) {
        let missing = len.saturating_sub(self.buffer.len());
        if missing > 0 {
            self.append(Bytes::from(vec![0; missing]));
        }
    }

    /// The frames that are not whole in all copies, with their sequences.
    pub fn uneven(&self) -> &BTreeMap<Position, u64> {
        &self.uneven
    }

    /// Appends zeros to the buffer for unreadable pages.
    fn fill_unreadable(&mut self) {
        let unreadable = std::mem::take(&mut self.unreadable_rest);
        let first = self.buffer.len().div_ceil(self.page_bytes);
        self.unreadable
            .extend((0..unreadable).map(|page| self.page + saturating_u32(first) + page));
        if unreadable > 0 {
            self.pad_to((first + index(unreadable)) * self.page_bytes);
        }
    }

    /// Skips unreadable pages that no frame in front reaches into.
    fn pass_unreadable(&mut self) {
        let pages = std::mem::take(&mut self.unreadable_rest);
        if !self.superseded {
            let at = Position { segment: self.segment, page: self.page };
            let cut = self.cut.get_or_insert_with(|| Cut::new(at));
            cut.rest = cut.rest.max(Rest::Unreadable);
        }
        self.page += pages;
    }

    /// The next frame in the pages fed so far.
    ///
    /// # Errors
    /// [`FormatError::Version`] where a newer program wrote to the log.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FormatError> {
        self.advance(false)
    }

    /// Ends the segment: it has no more written pages.
    ///
    /// # Errors
    /// [`FormatError::Version`] where a newer program wrote to the log.
    pub fn end_segment(&mut self) -> Result<(), FormatError> {
        // A partial page is a torn page.
        let whole = self.buffer.len().next_multiple_of(self.page_bytes);
        self.pad_to(whole);
        while self.advance(true)?.is_some() {}
        Ok(())
    }

    /// The end of the log.
    pub fn finish(self) -> End {
        let next_sequence = self.expected;
        let Some(cut) = self.cut else {
            return End::Clean { next_sequence, rest: Rest::Nothing };
        };
        let missing = next_sequence.unwrap_or(0);
        match cut.repeated {
            Some(repeated) => End::Corrupt { at: cut.at, lost: repeated..missing },
            None if next_sequence.is_some() && cut.durable_before > missing => {
                End::Corrupt { at: cut.at, lost: missing..cut.durable_before }
            }
            None if cut.begun => End::Torn { at: cut.at, next_sequence },
            None => End::Clean { next_sequence, rest: cut.rest },
        }
    }

    /// Scans pages up to the next frame to return, or to the end of the pages that can be decided.
    fn advance(&mut self, complete: bool) -> Result<Option<Frame>, FormatError> {
        let frame = self.advance_in_buffer(complete)?;
        if frame.is_some() || self.unreadable_rest == 0 {
            return Ok(frame);
        }
        if self.buffer.is_empty() {
            self.pass_unreadable();
            return Ok(None);
        }
        // A possible frame reaches into the unreadable pages.
        self.fill_unreadable();
        self.advance_in_buffer(complete)
    }

    fn advance_in_buffer(&mut self, complete: bool) -> Result<Option<Frame>, FormatError> {
        while self.buffer.len() >= self.page_bytes {
            if self.superseded {
                self.buffer.clear();
                break;
            }
            match self.open() {
                Slot::Frame(header)
                    if !complete && self.buffer.len() < self.frame_bytes(&header) =>
                {
                    break;
                }
                Slot::Frame(header) if self.is_ours(&header) => {
                    if let Some(frame) = self.take_frame(header) {
                        return Ok(Some(frame));
                    }
                }
                Slot::NewerVersion(found) => {
                    return Err(FormatError::Version { what: "the log", found, known: VERSION });
                }
                Slot::Incomplete(_) if !complete => break,
                Slot::Frame(_) | Slot::Incomplete(_) | Slot::Nothing => self.pass_page(),
            }
        }
        Ok(None)
    }

    /// Decodes the frame at the current page, from the combination of copies that verifies.
    fn open(&mut self) -> Slot {
        let slot = frame::open(&self.buffer, self.identity, self.page);
        if self.disputed.is_empty() || matches!(slot, Slot::Frame(_) | Slot::NewerVersion(_)) {
            return slot;
        }
        let begins = |bytes: &[u8]| frame::claimed_header(bytes, self.page).is_some();
        let other = self.disputed.get(&self.page).and_then(Option::as_ref);
        if !begins(&self.buffer) && !other.is_some_and(|other| begins(other)) {
            return slot;
        }
        let pages = saturating_u32(self.longest_frame());
        let other = |(page, other): (&u32, &Option<Bytes>)| Some((*page, other.clone()?));
        let others: Vec<(u32, Bytes)> =
            self.disputed.range(self.page..self.page + pages).filter_map(other).collect();
        let mut best = slot;
        for choice in choices(others.len()) {
            let mut buffer = BytesMut::from(&self.buffer[..]);
            for ((page, other), _) in others.iter().zip(choice).filter(|(_, chosen)| *chosen) {
                let start = index(page - self.page) * self.page_bytes;
                if let Some(place) = buffer.get_mut(start..start + other.len()) {
                    place.copy_from_slice(other);
                }
            }
            match frame::open(&buffer, self.identity, self.page) {
                Slot::Nothing => {}
                incomplete @ Slot::Incomplete(_) => best = incomplete,
                found => {
                    self.buffer = buffer.freeze();
                    return found;
                }
            }
        }
        best
    }

    /// Pages of the longest frame.
    fn longest_frame(&self) -> usize {
        frame::MAX_FRAME_BYTES.div_ceil(self.page_bytes)
    }

    /// Bytes of a frame, padding included.
    fn frame_bytes(&self, header: &FrameHeader) -> usize {
        frame::pages(index(header.payload_len), self.page_bytes) * self.page_bytes
    }

    fn is_ours(&self, header: &FrameHeader) -> bool {
        header.shard == self.shard && header.segment == self.segment
    }

    /// Takes a whole frame: returns the next frame, or notes evidence.
    fn take_frame(&mut self, header: FrameHeader) -> Option<Frame> {
        let at = Position { segment: self.segment, page: self.page };
        let len = HEADER_BYTES + index(header.payload_len);
        let pages = self.frame_bytes(&header) / self.page_bytes;
        if header.role == FrameRole::Announcement {
            // It is older or newer than the frames around it.
            self.skip_pages(pages);
            return None;
        }
        if header.sequence >= self.superseded_from {
            self.superseded = true;
            return None;
        }
        if !self.continues(at, &header) && !self.passes_a_loss(&header) {
            // A copy of a frame that was read proves nothing.
            if header.role != FrameRole::Copy {
                self.note_frame_behind(at, &header);
            }
            self.skip_pages(pages);
            return None;
        }
        self.cut = None;
        if self.disputed.range(at.page..at.page + saturating_u32(pages)).next().is_some() {
            self.uneven.insert(at, header.sequence);
        }
        self.expected = header.sequence.checked_add(1);
        let bytes = self.skip_pages(pages);
        let payload = bytes.slice(HEADER_BYTES.min(bytes.len())..len.min(bytes.len()));
        Some(Frame { at, header, payload })
    }

    /// Whether the frame is the next one.
    fn continues(&self, at: Position, header: &FrameHeader) -> bool {
        if header.role == FrameRole::Copy {
            // It replaces a frame that the recovery that began this segment could read.
            let stopped = self.cut.as_ref().is_none_or(|cut| cut.at.segment < at.segment);
            return stopped && self.expected == Some(header.sequence);
        }
        let next = self.expected.is_none_or(|expected| expected == header.sequence);
        let opens = header.role == FrameRole::Opening;
        match &self.cut {
            None => next,
            // A later segment continues where the frames stopped: an earlier recovery decided that
            // end. Only a copy can be missing in front of its opening.
            Some(cut) if self.expected.is_some() => {
                next && (opens || at.page == 0 && cut.at.segment < at.segment)
            }
            // Before the first frame only blank segments may come.
            Some(cut) => (opens || at.page == 0) && (cut.at.segment == at.segment || !cut.begun),
        }
    }

    /// Whether the frames before this one are lost and skipped; notes them.
    fn passes_a_loss(&mut self, header: &FrameHeader) -> bool {
        let (Some(losses), Some(expected)) = (&mut self.losses, self.expected) else {
            return false;
        };
        let passes = header.role != FrameRole::Copy && header.sequence > expected;
        losses.extend(passes.then_some(expected..header.sequence));
        passes
    }

    fn note_frame_behind(&mut self, at: Position, header: &FrameHeader) {
        // A frame that does not start the log has a predecessor.
        let expected = *self.expected.get_or_insert(header.sequence.saturating_sub(1));
        let cut = self.cut.get_or_insert_with(|| Cut::new(at));
        cut.begun = true;
        cut.durable_before = cut.durable_before.max(header.durable_before);
        if header.sequence < expected && (at == cut.at || at.segment > cut.at.segment) {
            let repeated = cut.repeated.map_or(header.sequence, |low| low.min(header.sequence));
            cut.repeated = Some(repeated);
        }
    }

    /// A page where no frame starts.
    fn pass_page(&mut self) {
        let at = Position { segment: self.segment, page: self.page };
        let page = self.buffer.get(..self.page_bytes).unwrap_or_default();
        let unreadable = self.unreadable.contains(&self.page);
        let (rest, begun) = match page.first() {
            _ if unreadable => (Rest::Unreadable, false),
            Some(&fill @ (0 | 0xff)) if is_filled_with(fill, page) => (Rest::Blank, false),
            _ => (Rest::Foreign, self.claims_to_be_ours(page)),
        };
        let cut = self.cut.get_or_insert_with(|| Cut::new(at));
        cut.begun |= begun;
        cut.rest = cut.rest.max(rest);
        self.skip_pages(1);
    }

    /// Whether a page without a whole frame looks like the start of a frame of this log. Two of
    /// three marks are enough, so that damage to one of them does not hide a frame.
    fn claims_to_be_ours(&self, page: &[u8]) -> bool {
        let Some(raw) = frame::raw_header(page) else { return false };
        let marks = [
            raw.magic == MAGIC,
            raw.header.segment == self.segment && raw.header.shard == self.shard,
            self.expected.is_some_and(|expected| raw.header.sequence == expected),
        ];
        marks.iter().filter(|mark| **mark).count() >= 2
    }

    fn skip_pages(&mut self, pages: usize) -> Bytes {
        self.page += saturating_u32(pages);
        self.buffer.split_to((pages * self.page_bytes).min(self.buffer.len()))
    }
}

fn is_filled_with(fill: u8, page: &[u8]) -> bool {
    // Without a branch inside a chunk, so that the compiler vectorises it.
    let differs = |part: &[u8]| part.iter().fold(0, |differs, byte| differs | (byte ^ fill)) != 0;
    !page.chunks(256).any(differs)
}

/// The choices of pages to take from the other copy: all; then each combination, if there are not
/// too many pages.
fn choices(pages: usize) -> impl Iterator<Item = impl Iterator<Item = bool>> {
    let combinations = if pages <= MOST_MIXED_PAGES { 1_u64 << pages } else { 1 };
    let all = (pages > 0).then_some(u64::MAX);
    let masks = all.into_iter().chain(1..combinations.saturating_sub(1).max(1));
    masks.map(|mask| (0..).map(move |page| page >= 64 || mask >> page & 1 == 1))
}

impl Cut {
    fn new(at: Position) -> Cut {
        Cut { at, rest: Rest::Nothing, begun: false, durable_before: 0, repeated: None }
    }
}
