//! Finds the frames of a log and judges where they end: cleanly, torn by a power cut, or by damage.
//!
//! A frame is followed by the frame with the next sequence, on the next page or at the start of the
//! next segment. Where that is not so, frame `e`, which should be there, is missing. It is *proved*
//! to have been durable if a whole frame behind says so: a frame whose `durable_before` is above
//! `e` was written when all frames below `durable_before`, so `e` too, had been reported durable.
//! Then something acknowledged is lost: the log is corrupt. Without such a frame nothing behind was
//! acknowledged either, as frames are acknowledged in order: the log was torn, and ends before `e`.
//! Only at the very end, where nothing was written after `e`, does damage look like a torn write.

use super::VERSION;
use super::frame::{self, FrameHeader, FrameRole, HEADER_BYTES, MAGIC, Slot};
use crate::format::FormatError;
use bytes::{Bytes, BytesMut};
use softflash_base::cast::{index, saturating_u32};
use std::collections::BTreeMap;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// Pages of a frame on which copies may disagree until only one copy or the other is tried.
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
    /// A place behind everything that is in front of this one.
    pub fn before(self) -> Position {
        match self.page.checked_sub(1) {
            Some(page) => Position { page, ..self },
            None => Position { segment: self.segment.saturating_sub(1), page: u32::MAX },
        }
    }
}

/// A whole frame, in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Where it starts.
    pub at: Position,
    /// What it says of itself.
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

/// What follows the last frame of a log that ends cleanly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// No further page.
    Nothing,
    /// Pages of zeros or ones: erased.
    Blank,
    /// Pages that cannot be read: most likely never written.
    Unreadable,
    /// Pages that do not claim to be of this log: most likely left from an earlier life of the
    /// superblock.
    Foreign,
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Behind the last frame nothing was begun.
    Clean {
        /// The sequence of the next frame; `None` where there was no frame at all.
        next_sequence: Option<u64>,
        /// What follows the last frame.
        rest: Rest,
    },
    /// A write was under way and is not whole. Nothing behind was acknowledged.
    Torn {
        /// Where the first frame is not whole.
        at: Position,
        /// The sequence of the next frame; `None` where there was no whole frame at all.
        next_sequence: Option<u64>,
    },
    /// Frames that were durable are missing.
    Corrupt {
        /// Where the first of them should be.
        at: Position,
        /// They were durable; at least the first is lost.
        lost: Range<u64>,
    },
}

/// Where the frames stopped, and what was found behind.
#[derive(Debug)]
struct Cut {
    at: Position,
    rest: Rest,
    /// Something behind claims to be of this log.
    begun: bool,
    /// The highest `durable_before` of a whole frame behind.
    durable_before: u64,
    /// A frame behind has a sequence that was already read: the lower bound of those that disagree.
    repeated: Option<u64>,
}

/// Reads the segments of a log in order.
///
/// For each segment call [`begin_segment`](LogScanner::begin_segment), [`feed`](LogScanner::feed)
/// it page by page or in larger pieces, taking the frames with
/// [`next_frame`](LogScanner::next_frame) after each, and [`end_segment`](LogScanner::end_segment).
#[derive(Debug)]
pub struct LogScanner {
    shard: u16,
    page_bytes: usize,
    /// The sequence of the next frame, once one is known.
    expected: Option<u64>,
    cut: Option<Cut>,
    segment: u64,
    identity: u64,
    superseded_from: u64,
    superseded: bool,
    /// The page that `buffer` starts at.
    page: u32,
    buffer: Bytes,
    /// Pages of the segment that cannot be read; zeros stand for them in the buffer.
    unreadable: Vec<u32>,
    /// Pages behind the buffer that cannot be read either: most often the unwritten rest of a
    /// segment.
    unreadable_rest: u32,
    /// Pages of the segment of which two copies give different things: what was not put into the
    /// buffer, if anything.
    disputed: BTreeMap<u32, Option<Bytes>>,
    /// Frames on such pages that one copy has whole.
    uneven: Vec<Position>,
    /// Frames that were passed over, where that is wanted.
    losses: Option<Vec<Range<u64>>>,
}

impl LogScanner {
    /// A scanner of the log of `shard`. `first_sequence` is that of the first frame, where it is
    /// known; without it, damage at the very start can only be noticed by what follows.
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
            uneven: Vec::new(),
            losses: None,
        }
    }

    /// Goes on behind frames that are lost, for a repair. What was given up before stays so.
    pub fn passing_losses(mut self) -> LogScanner {
        self.losses = Some(Vec::new());
        self
    }

    /// The frames that were passed over.
    pub fn losses(&self) -> &[Range<u64>] {
        self.losses.as_deref().unwrap_or_default()
    }

    /// Goes on with the first page of a segment, whose superblock has this identity.
    ///
    /// `superseded_from` is the lowest sequence with which a later segment starts, if any is known.
    /// It matters after a recovery that could not read the last frame and went on in a new segment:
    /// should the frame be readable this time, it must not come back.
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

    /// Adds a page of the segment that cannot be read. Call it between whole pages.
    pub fn feed_unreadable(&mut self) {
        self.unreadable_rest += 1;
    }

    /// Adds a page of the segment of which two copies give different things; nothing, where one
    /// cannot be read. Call it between whole pages.
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

    /// What is left in the buffer is copied, which is at most the beginning of a frame, but not
    /// what comes.
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

    /// Appends zeros, up to a length.
    fn pad_to(&mut self, len: usize) {
        let missing = len.saturating_sub(self.buffer.len());
        if missing > 0 {
            self.append(Bytes::from(vec![0; missing]));
        }
    }

    /// The frames that not all copies have whole.
    pub fn uneven(&self) -> &[Position] {
        &self.uneven
    }

    /// Puts zeros into the buffer for pages that cannot be read.
    fn fill_unreadable(&mut self) {
        let unreadable = std::mem::take(&mut self.unreadable_rest);
        let first = self.buffer.len().div_ceil(self.page_bytes);
        self.unreadable
            .extend((0..unreadable).map(|page| self.page + saturating_u32(first) + page));
        if unreadable > 0 {
            self.pad_to((first + index(unreadable)) * self.page_bytes);
        }
    }

    /// Passes over pages that cannot be read and that nothing in front reaches into.
    fn pass_unreadable(&mut self) {
        let pages = std::mem::take(&mut self.unreadable_rest);
        if !self.superseded {
            let at = Position { segment: self.segment, page: self.page };
            let cut = self.cut.get_or_insert_with(|| Cut::new(at));
            cut.rest = cut.rest.max(Rest::Unreadable);
        }
        self.page += pages;
    }

    /// The next frame of the log, as far as the segment was fed.
    ///
    /// # Errors
    /// [`FormatError::Version`] where a newer program wrote to the log.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FormatError> {
        self.advance(false)
    }

    /// The segment has no more pages, or none that were written.
    ///
    /// # Errors
    /// [`FormatError::Version`] where a newer program wrote to the log.
    pub fn end_segment(&mut self) -> Result<(), FormatError> {
        // A part of a page is a torn page.
        let whole = self.buffer.len().next_multiple_of(self.page_bytes);
        self.pad_to(whole);
        while self.advance(true)?.is_some() {}
        Ok(())
    }

    /// How the log ends.
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

    /// Looks at page after page up to the next frame to hand out, or to the end of what can be
    /// judged.
    fn advance(&mut self, complete: bool) -> Result<Option<Frame>, FormatError> {
        let frame = self.advance_in_buffer(complete)?;
        if frame.is_some() || self.unreadable_rest == 0 {
            return Ok(frame);
        }
        if self.buffer.is_empty() {
            self.pass_unreadable();
            return Ok(None);
        }
        // What may be a frame reaches into them.
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

    /// Judges what starts at the current page, by whichever copies of its pages make a frame.
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

    /// A whole frame: the next one, or evidence.
    fn take_frame(&mut self, header: FrameHeader) -> Option<Frame> {
        let at = Position { segment: self.segment, page: self.page };
        let len = HEADER_BYTES + index(header.payload_len);
        let pages = self.frame_bytes(&header) / self.page_bytes;
        if header.role == FrameRole::Announcement {
            // It is of another time than the frames around it.
            self.skip_pages(pages);
            return None;
        }
        if header.sequence >= self.superseded_from {
            self.superseded = true;
            return None;
        }
        if !self.continues(at, &header) && !self.passes_a_loss(&header) {
            // A copy of what was read is no evidence of anything.
            if header.role != FrameRole::Copy {
                self.note_frame_behind(at, &header);
            }
            self.skip_pages(pages);
            return None;
        }
        self.cut = None;
        if self.disputed.range(at.page..at.page + saturating_u32(pages)).next().is_some() {
            self.uneven.push(at);
        }
        self.expected = header.sequence.checked_add(1);
        let bytes = self.skip_pages(pages);
        let payload = bytes.slice(HEADER_BYTES.min(bytes.len())..len.min(bytes.len()));
        Some(Frame { at, header, payload })
    }

    /// Whether the frame is the one that comes next.
    fn continues(&self, at: Position, header: &FrameHeader) -> bool {
        if header.role == FrameRole::Copy {
            // It stands in for a frame that could be read once, by the recovery that began this
            // segment, and no longer.
            let stopped = self.cut.as_ref().is_none_or(|cut| cut.at.segment < at.segment);
            return stopped && self.expected == Some(header.sequence);
        }
        let next = self.expected.is_none_or(|expected| expected == header.sequence);
        let opens = header.role == FrameRole::Opening;
        match &self.cut {
            None => next,
            // A later segment goes on where the frames stopped: a recovery has judged that end
            // before. Nothing but a copy can be missing in front of its opening.
            Some(cut) if self.expected.is_some() => {
                next && (opens || at.page == 0 && cut.at.segment < at.segment)
            }
            // Where no frame is known yet, only blank segments may come before the first.
            Some(cut) => (opens || at.page == 0) && (cut.at.segment == at.segment || !cut.begun),
        }
    }

    /// Whether frames in front of this one are lost and passed over.
    fn passes_a_loss(&mut self, header: &FrameHeader) -> bool {
        let (Some(losses), Some(expected)) = (&mut self.losses, self.expected) else {
            return false;
        };
        let passes = header.role != FrameRole::Copy && header.sequence > expected;
        losses.extend(passes.then_some(expected..header.sequence));
        passes
    }

    fn note_frame_behind(&mut self, at: Position, header: &FrameHeader) {
        // Before a frame that does not start the log there was another one.
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

    /// Whether a page that starts no whole frame looks like the start of one of this log. Two of
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
    // In parts without a branch, which the processor compares many bytes at a time.
    let differs = |part: &[u8]| part.iter().fold(0, |differs, byte| differs | (byte ^ fill)) != 0;
    !page.chunks(256).any(differs)
}

/// Which of so many pages to take from the other copy: all; then each combination, where those are
/// not too many.
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
