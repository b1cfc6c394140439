//! Events, and logs from a short script: frames, torn and stale pages, unreadable pages.

use crate::format::FormatError;
use crate::format::log::event::{self, Event, KeyChange, Replayed};
use crate::format::log::frame::{self, HEADER_BYTES};
use crate::format::log::{End, EventStream, Frame, FrameHeader, FrameRole, LogScanner};
use crate::format::version::Version;
use crate::value::{Entry, Value};
use bytes::{Buf, Bytes};

/// Any bytes as an event: a decoded event is encoded to the same bytes. Then changes made from the
/// bytes: they are encoded, and decoded to equal ones.
pub fn event(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(replayed) = event::decode(&bytes) {
        assert_eq!(encoded(&replayed)[event::LENGTH_BYTES..], *data);
    }
    let mut data = data;
    let entries = changes(&mut data);
    let batch = Replayed::Batch { transaction: None, seq: 5, clear: false, entries };
    let body = Bytes::from(encoded(&batch)).slice(event::LENGTH_BYTES..);
    assert_eq!(event::decode(&body), Ok(batch));
}

fn encoded(replayed: &Replayed) -> Vec<u8> {
    let mut stream = Vec::new();
    let event = match replayed {
        Replayed::Batch { transaction: None, seq, clear, entries } => {
            Event::Batch { seq: *seq, clear: *clear, entries }
        }
        Replayed::Batch { transaction: Some(transaction), seq, clear, entries } => {
            Event::Prepare { transaction: *transaction, seq: *seq, clear: *clear, entries }
        }
        Replayed::Commit(transaction) => Event::Commit(*transaction),
        Replayed::Edit(edit) => Event::Edit(edit),
        Replayed::Checkpoint(checkpoint) => Event::Checkpoint(checkpoint),
        Replayed::Units(units) => Event::Units(units),
        Replayed::Groups(change) => Event::Groups(change),
    };
    event::encode(&event, &mut stream);
    stream
}

/// A few sealed changes.
fn changes(data: &mut &[u8]) -> Vec<KeyChange> {
    let count = byte(data) % 4;
    let one = |_| {
        let (key_len, value_len, kind) = (byte(data) % 32, byte(data), byte(data));
        let key = Bytes::copy_from_slice(taken(data, key_len.into()));
        let value = Value::from_fragments([Bytes::copy_from_slice(taken(data, value_len.into()))]);
        let entry = (kind & 1 == 0).then_some(Entry { value, expires_at_ms: u64::from(kind >> 1) });
        Some((key.clone(), Version::seal(&key, 5, entry).ok()?))
    };
    (0..count).filter_map(one).collect()
}

const PAGE_BYTES: usize = 512;
const IDENTITY: u64 = 77;
const SHARD: u16 = 3;
/// The most pages of a script.
const MOST_PAGES: usize = 128;

/// `None` for an unreadable page.
type Pages = Vec<Option<Vec<u8>>>;

/// A log built by a script.
#[derive(Default)]
struct Script {
    /// Each with the sequence from which on it is superseded.
    segments: Vec<(Option<u64>, Pages)>,
    pages: usize,
    sequence: u64,
    /// Bytes of the event stream that are in no frame, and the starts of events in them.
    stream: Vec<u8>,
    starts: Vec<usize>,
    events: Vec<Replayed>,
    /// The log is one that a writer can write.
    sound: bool,
    repair: bool,
}

/// A script of a log: scans in pieces of any size agree, frames are in order, and a sound log
/// returns the events that were written.
pub fn log(data: &[u8]) {
    let script = Script::read(data);
    let (frames, end) = script.scan(usize::MAX);
    assert_eq!((&frames, &end), (&script.scan(1).0, &script.scan(1).1), "page by page");
    let sequences: Vec<u64> = frames.iter().map(|frame| frame.header.sequence).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    let events = replayed(&frames);
    if script.sound {
        assert!(matches!(end, End::Clean { .. }), "{end:?}");
        assert_eq!(events, Ok(script.events));
    }
    // Any bytes are decoded without a panic.
    let _ = frame::open(data, IDENTITY, 0);
    let _ = frame::claimed_header(data, 0);
}

fn replayed(frames: &[Frame]) -> Result<Vec<Replayed>, FormatError> {
    let (mut stream, mut events) = (EventStream::default(), Vec::new());
    for frame in frames {
        stream.feed(&frame.header, frame.payload.clone(), |event| {
            events.push(event);
            Ok::<(), FormatError>(())
        })?;
    }
    Ok(events)
}

impl Script {
    fn read(mut data: &[u8]) -> Script {
        let first = byte(&mut data);
        let mut script = Script { sound: true, repair: first & 1 != 0, ..Script::default() };
        script.segments.push((None, Vec::new()));
        while data.has_remaining() && script.pages < MOST_PAGES {
            let op = byte(&mut data);
            match op % 8 {
                0 | 1 => script.push_event(&mut data),
                2 | 3 => script.push_frame(op, &mut data),
                4 => {
                    let mut page = taken(&mut data, 64).to_vec();
                    page.resize(PAGE_BYTES, op);
                    script.push_pages(Some(page), false);
                }
                5 => script.push_pages(None, false),
                6 => {
                    let superseded = (op & 8 != 0).then_some(script.sequence);
                    script.sound &= superseded.is_none();
                    script.segments.push((superseded, Vec::new()));
                }
                _ => script.push_pages(Some(vec![0; PAGE_BYTES]), false),
            }
        }
        // Every begun event must end.
        script.sound &= script.stream.is_empty();
        script
    }

    fn push_pages(&mut self, page: Option<Vec<u8>>, sound: bool) {
        self.sound &= sound;
        self.pages += 1;
        self.segments.last_mut().into_iter().for_each(|segment| segment.1.push(page.clone()));
    }

    fn push_event(&mut self, data: &mut &[u8]) {
        let seq = byte(data).into();
        let event = match seq % 3 {
            0 => Replayed::Commit(seq),
            _ => {
                Replayed::Batch { transaction: None, seq: 5, clear: false, entries: changes(data) }
            }
        };
        self.starts.push(self.stream.len());
        self.stream.extend(encoded(&event));
        self.events.push(event);
    }

    /// A frame with all of the pending stream, or a part of it.
    fn push_frame(&mut self, op: u8, data: &mut &[u8]) {
        let (len, twist) = (byte(data), byte(data));
        let role = match twist {
            250 => FrameRole::Opening,
            251 => FrameRole::Checkpoint,
            252 => FrameRole::Copy,
            253 => FrameRole::Padding,
            254 => FrameRole::End,
            _ => FrameRole::Stream,
        };
        let all = op & 8 != 0;
        let len = if all { self.stream.len() } else { self.stream.len().min(len.into()) };
        let payload: Vec<u8> = self.stream.drain(..len).collect();
        let first_event = self.starts.iter().find(|start| **start < len).map(|start| *start as u32);
        self.starts = self.starts.iter().filter_map(|start| start.checked_sub(len)).collect();
        let sequence = match twist {
            240..250 => self.sequence.wrapping_add(twist.into()).wrapping_sub(242),
            _ => self.sequence,
        };
        self.sequence = sequence.wrapping_add(1).min(1 << 40);
        let header = FrameHeader {
            shard: if twist == 239 { 9 } else { SHARD },
            role,
            payload_len: len as u32,
            segment: self.segments.len() as u64,
            sequence,
            durable_before: sequence.saturating_sub(u64::from(op >> 4)),
            clock_ms: 0,
            first_event: if twist == 238 { 3 } else { first_event.unwrap_or(u32::MAX) },
        };
        let mut bytes = vec![0; frame::pages(len, PAGE_BYTES) * PAGE_BYTES];
        bytes[HEADER_BYTES..HEADER_BYTES + len].copy_from_slice(&payload);
        let page = self.segments.last().map_or(0, |segment| segment.1.len() as u32);
        frame::seal(&mut bytes, &header, IDENTITY, page);
        if twist == 237 {
            bytes[usize::from(op)] ^= 1;
        }
        let sound = twist < 237;
        bytes.chunks(PAGE_BYTES).for_each(|page| self.push_pages(Some(page.to_vec()), sound));
    }

    /// The frames and the end of the log, with up to `most` pages fed at once.
    fn scan(&self, most: usize) -> (Vec<Frame>, End) {
        let mut scanner = LogScanner::new(SHARD, PAGE_BYTES, Some(0));
        if self.repair {
            scanner = scanner.passing_losses();
        }
        let mut frames = Vec::new();
        for (number, (superseded, pages)) in self.segments.iter().enumerate() {
            scanner.begin_segment(number as u64 + 1, IDENTITY, *superseded);
            for run in pages.chunk_by(|a, b| a.is_some() && b.is_some()) {
                for piece in run.chunks(most.min(run.len())) {
                    match piece {
                        [None] => scanner.feed_unreadable(),
                        pages => scanner.feed(pages.iter().flatten().flatten().copied().collect()),
                    }
                    while let Ok(Some(frame)) = scanner.next_frame() {
                        frames.push(frame);
                    }
                }
            }
            let _ = scanner.end_segment();
        }
        (frames, scanner.finish())
    }
}

fn byte(data: &mut &[u8]) -> u8 {
    data.try_get_u8().unwrap_or(0)
}

fn taken<'a>(data: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = data.split_at(len.min(data.len()));
    *data = rest;
    taken
}

#[cfg(test)]
pub(super) fn event_seeds() -> Vec<Vec<u8>> {
    use crate::format::log::event::{Checkpoint, Edit, PatchEntry, SliceState};
    use softflash_blocks::{GroupChange, Member, ParityGroup, UnitMark};
    let patches = vec![PatchEntry { block: 4, level: 1, run: 9 }; 2];
    let edit = Edit {
        slice: 1,
        added: patches.clone(),
        removed: vec![3, 4],
        flushed_seq: 5,
        live_keys: 6,
        log_start: 7,
        unlisted_from: 8,
    };
    let states = vec![SliceState { slice: 1, patches, flushed_seq: 2, live_keys: 3 }; 2];
    let checkpoint = Checkpoint {
        shards: 2,
        slices: 4,
        seq: 5,
        commits: vec![1, 2],
        states,
        ..Checkpoint::default()
    };
    let group = ParityGroup { parity: 7, members: vec![Member { block: 4, pages: 3 }; 2] };
    let mut script: &[u8] = b"\x03\x04\x05\x00keyyvalue\x02\x01\x06ke";
    let entries = changes(&mut script);
    let events = [
        Replayed::Batch { transaction: None, seq: 5, clear: true, entries: entries.clone() },
        Replayed::Batch { transaction: Some(8), seq: 5, clear: false, entries },
        Replayed::Commit(8),
        Replayed::Edit(edit),
        Replayed::Checkpoint(checkpoint),
        Replayed::Units(vec![UnitMark { unit: 3, generation: 9 }; 2]),
        Replayed::Checkpoint(Checkpoint { groups: vec![group.clone()], ..Checkpoint::default() }),
        Replayed::Groups(GroupChange { added: vec![group], removed: vec![7, 8] }),
    ];
    events.iter().map(|event| encoded(event)[event::LENGTH_BYTES..].to_vec()).collect()
}

#[cfg(test)]
pub(super) fn log_seeds() -> Vec<Vec<u8>> {
    let sound = b"\0\0\x01\x02\x03\x02\0keval\x02\0k\x0a\0\0\x01\x03\x0a\0\0\x06\x01\x04\x01\x02\x90\0key\x02\x20\0\x02\xff\0\x0a\0\0\x07";
    let torn = b"\x01\0\x03\x0a\0\0\0\x06\x1a\0\xed\0\x09\x1a\0\0\x05\x04SFLG\x02\0\0\0\x0e\0\x0c\x0a\0\0\0\x03\x0a\0\xf5\x05\x07";
    vec![sound.to_vec(), torn.to_vec()]
}
