use super::*;
use crate::format::testing::{cases, noise, rng};
use proptest::prelude::*;
use softflash_base::random::Rng;

mod copies;
mod places;
mod verdicts;

const PAGE: usize = 512;
const SHARD: u16 = 3;

fn identity_of(segment: u64) -> u64 {
    segment * 1_000 + 7
}

/// Reads segment 10, the first of the log; returns the sequences of its frames.
fn sequences_read(scanner: &mut LogScanner, log: &Written) -> Vec<u64> {
    scanner.begin_segment(10, identity_of(10), None);
    scanner.feed(Bytes::copy_from_slice(&log.segments[0].1));
    let mut read = Vec::new();
    while let Some(frame) = scanner.next_frame().unwrap() {
        read.push(frame.header.sequence);
    }
    scanner.end_segment().unwrap();
    read
}

/// Segments as a writer leaves them, and the frames that it wrote.
#[derive(Clone, Default)]
struct Written {
    /// Segment number and bytes.
    segments: Vec<(u64, Vec<u8>)>,
    frames: Vec<Frame>,
}

impl Written {
    fn begin_segment(&mut self, number: u64) {
        self.segments.push((number, Vec::new()));
    }

    fn write(&mut self, sequence: u64, durable_before: u64, payload: &[u8]) {
        self.write_as(FrameRole::Stream, sequence, durable_before, payload);
    }

    fn write_as(&mut self, role: FrameRole, sequence: u64, durable_before: u64, payload: &[u8]) {
        let (segment, bytes) = self.segments.last_mut().unwrap();
        let header = FrameHeader {
            shard: SHARD,
            role,
            payload_len: payload.len() as u32,
            segment: *segment,
            sequence,
            durable_before,
            clock_ms: 5,
            ..FrameHeader::default()
        };
        let page = (bytes.len() / PAGE) as u32;
        let mut frame = vec![0; frame::pages(payload.len(), PAGE) * PAGE];
        frame[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
        frame::seal(&mut frame, &header, identity_of(*segment), page);
        bytes.extend_from_slice(&frame);
        let at = Position { segment: *segment, page };
        self.frames.push(Frame { at, header, payload: Bytes::copy_from_slice(payload) });
    }

    /// `frames` frames over segments of about 20 pages; each frame is durable before the next but
    /// one is written.
    fn some(rng: &mut Rng, frames: u64) -> Written {
        let mut log = Written::default();
        log.begin_segment(10);
        for sequence in 0..frames {
            if log.segments.last().unwrap().1.len() > 20 * PAGE {
                log.begin_segment(10 + log.segments.len() as u64);
            }
            let len = rng.below(4 * PAGE as u64) as usize;
            let payload = noise(rng, len);
            log.write(100 + sequence, (100 + sequence).saturating_sub(1).max(100), &payload);
        }
        log
    }

    fn bytes_at(&mut self, at: Position) -> &mut [u8] {
        let (_, bytes) =
            self.segments.iter_mut().find(|(number, _)| *number == at.segment).unwrap();
        &mut bytes[at.page as usize * PAGE..]
    }
}

fn scan_in(log: &Written, piece: usize, first: Option<u64>) -> (Vec<Frame>, End) {
    let mut scanner = LogScanner::new(SHARD, PAGE, first);
    let mut frames = Vec::new();
    for (number, bytes) in &log.segments {
        scanner.begin_segment(*number, identity_of(*number), None);
        for piece in bytes.chunks(piece) {
            scanner.feed(Bytes::copy_from_slice(piece));
            while let Some(frame) = scanner.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        scanner.end_segment().unwrap();
    }
    (frames, scanner.finish())
}

fn scan(log: &Written) -> (Vec<Frame>, End) {
    scan_in(log, 4 * PAGE, Some(100))
}

#[test]
fn frames_are_read_back_over_segments() {
    let mut rng = rng(81);
    let log = Written::some(&mut rng, 60);
    assert!(log.segments.len() > 3);
    for piece in [100, PAGE, 3 * PAGE, 1 << 20] {
        for first in [None, Some(100)] {
            let (frames, end) = scan_in(&log, piece, first);
            assert_eq!(frames, log.frames, "pieces of {piece} bytes");
            assert_eq!(end, End::Clean { next_sequence: Some(160), rest: Rest::Nothing });
        }
    }
}

#[test]
fn a_log_without_frames_is_clean() {
    let mut log = Written::default();
    assert_eq!(scan(&log).1, End::Clean { next_sequence: Some(100), rest: Rest::Nothing });
    log.segments.push((10, vec![0xff; 5 * PAGE]));
    let blank = End::Clean { next_sequence: None, rest: Rest::Blank };
    assert_eq!(scan_in(&log, PAGE, None), (vec![], blank));
}

#[test]
fn a_log_cut_at_any_page_is_torn_or_ends_with_a_frame() {
    let mut rng = rng(82);
    let mut log = Written::some(&mut rng, 30);
    while let Some((number, bytes)) = log.segments.last_mut() {
        let number = *number;
        if bytes.is_empty() {
            log.segments.pop();
            continue;
        }
        bytes.truncate(bytes.len() - PAGE);
        let pages = (bytes.len() / PAGE) as u32;
        let end_of = |frame: &Frame| frame.at.page + frame::pages(frame.payload.len(), PAGE) as u32;
        let whole = |frame: &&Frame| frame.at.segment < number || end_of(frame) <= pages;
        let expected: Vec<Frame> = log.frames.iter().take_while(whole).cloned().collect();
        let next_sequence = Some(100 + expected.len() as u64);
        let started = log
            .frames
            .get(expected.len())
            .filter(|frame| frame.at.segment == number && frame.at.page < pages);
        let verdict = match started {
            Some(frame) => End::Torn { at: frame.at, next_sequence },
            None => End::Clean { next_sequence, rest: Rest::Nothing },
        };
        for fill in [None, Some(0), Some(0xff)] {
            let mut log = log.clone();
            if let (Some(fill), Some((_, bytes))) = (fill, log.segments.last_mut()) {
                bytes.extend_from_slice(&[fill; 7 * PAGE]);
            }
            let (frames, end) = scan(&log);
            assert_eq!(frames, expected, "{pages} pages of segment {number}");
            match (fill, &verdict) {
                (Some(_), End::Clean { .. }) => {
                    assert_eq!(end, End::Clean { next_sequence, rest: Rest::Blank });
                }
                _ => assert_eq!(end, verdict, "{pages} pages of segment {number}"),
            }
        }
    }
}

#[test]
fn frames_behind_a_gap_distinguish_damage_from_a_torn_write() {
    let mut rng = rng(83);
    for _ in 0..300 {
        let log = Written::some(&mut rng, 40);
        let damaged = rng.below(40) as usize;
        let mut broken = log.clone();
        let frame = &log.frames[damaged];
        let covered = HEADER_BYTES + frame.payload.len();
        let byte = rng.below(covered as u64) as usize;
        broken.bytes_at(frame.at)[byte] ^= 1 << rng.below(8);
        let (frames, end) = scan(&broken);
        assert_eq!(frames, log.frames[..damaged]);
        let missing = 100 + damaged as u64;
        let proof = log.frames[damaged + 1..].iter().map(|f| f.header.durable_before).max();
        let expected = match proof {
            Some(durable) if durable > missing => {
                End::Corrupt { at: frame.at, lost: missing..durable }
            }
            _ => End::Torn { at: frame.at, next_sequence: Some(missing) },
        };
        assert_eq!(end, expected, "frame {damaged}, byte {byte}");
    }
}

#[test]
fn damage_of_the_first_frame_is_detected_without_its_sequence() {
    let mut rng = rng(84);
    let mut log = Written::some(&mut rng, 10);
    let at = log.frames[0].at;
    log.bytes_at(at)[20] ^= 1;
    let (frames, end) = scan_in(&log, PAGE, None);
    assert!(frames.is_empty());
    assert_eq!(end, End::Corrupt { at, lost: 100..108 });
}

#[test]
fn frames_of_many_in_flight_are_torn_where_the_first_is_missing() {
    let mut log = Written::default();
    log.begin_segment(10);
    for sequence in 100..110 {
        // No frame since 103 was reported durable.
        log.write(sequence, sequence.min(103), &[sequence as u8; 700]);
    }
    let at = log.frames[4].at;
    log.bytes_at(at)[..2 * PAGE].fill(0);
    let (frames, end) = scan(&log);
    assert_eq!(frames, log.frames[..4]);
    assert_eq!(end, End::Torn { at, next_sequence: Some(104) });
    let at = log.frames[2].at;
    log.bytes_at(at)[70] ^= 1;
    assert_eq!(scan(&log).1, End::Corrupt { at, lost: 102..103 });
}

#[test]
fn a_missing_segment_is_corruption_if_its_frames_were_durable() {
    let mut rng = rng(85);
    let mut log = Written::some(&mut rng, 60);
    let (lost, _) = log.segments.remove(1);
    let first = log.frames.iter().find(|frame| frame.at.segment == lost).unwrap().header.sequence;
    let (frames, end) = scan(&log);
    assert_eq!(frames.last().unwrap().header.sequence + 1, first);
    let at = Position { segment: lost + 1, page: 0 };
    assert_eq!(end, End::Corrupt { at, lost: first..158 });
}

#[test]
fn a_tail_lost_before_it_was_durable_is_torn_though_a_later_segment_survived() {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    log.write(101, 101, b"b");
    log.begin_segment(11);
    // Written without waiting: no frame records that frame 101 was durable.
    log.write(102, 101, b"c");
    log.segments[0].1.truncate(PAGE);
    let (frames, end) = scan(&log);
    assert_eq!(frames, log.frames[..1]);
    let at = Position { segment: 11, page: 0 };
    assert_eq!(end, End::Torn { at, next_sequence: Some(101) });
}

#[test]
fn after_a_torn_write_the_log_continues_in_a_new_segment() {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    log.write(101, 100, &[1; 900]);
    log.write(102, 100, b"never acknowledged");
    let torn = log.frames[1].at;
    log.bytes_at(torn)[PAGE] ^= 1;
    log.frames.truncate(1);
    assert_eq!(scan(&log).1, End::Torn { at: torn, next_sequence: Some(101) });
    log.begin_segment(11);
    for sequence in 101..106 {
        log.write(sequence, sequence, b"next generation");
    }
    let (frames, end) = scan(&log);
    assert_eq!(frames, log.frames);
    assert_eq!(end, End::Clean { next_sequence: Some(106), rest: Rest::Nothing });
}

#[test]
fn a_dropped_frame_stays_dropped_when_it_becomes_readable() {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    log.write(101, 101, b"unreadable at the last recovery");
    log.begin_segment(11);
    log.write(101, 101, b"next generation");
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
    let mut frames = Vec::new();
    for (number, bytes) in &log.segments {
        let superseded_from = (*number == 10).then_some(101);
        scanner.begin_segment(*number, identity_of(*number), superseded_from);
        scanner.feed(Bytes::copy_from_slice(bytes));
        while let Some(frame) = scanner.next_frame().unwrap() {
            frames.push(frame);
        }
        scanner.end_segment().unwrap();
    }
    assert_eq!(frames, [log.frames[0].clone(), log.frames[2].clone()]);
    assert_eq!(scanner.finish(), End::Clean { next_sequence: Some(102), rest: Rest::Nothing });
    // Without `superseded_from` the scanner has returned the dropped frame, and reports the
    // conflict.
    let at = Position { segment: 11, page: 0 };
    assert_eq!(scan(&log).1, End::Corrupt { at, lost: 101..102 });
}

/// A log whose frame 101 was the last one that a recovery read; segment 11 repeats it and
/// continues.
fn with_a_copy() -> Written {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    log.write(101, 100, b"b");
    log.begin_segment(11);
    log.write_as(FrameRole::Copy, 101, 101, b"b");
    log.write_as(FrameRole::Opening, 102, 101, b"opening");
    log.write(103, 103, b"c");
    log
}

#[test]
fn a_copy_replaces_a_frame_that_has_become_unreadable() {
    let log = with_a_copy();
    let sequences = |log: &Written, first| {
        let (frames, end) = scan_in(log, PAGE, first);
        let read: Vec<_> = frames.iter().map(|f| (f.at.segment, f.header.sequence)).collect();
        (read, end)
    };
    let clean = End::Clean { next_sequence: Some(104), rest: Rest::Nothing };
    let undamaged = vec![(10, 100), (10, 101), (11, 102), (11, 103)];
    assert_eq!(sequences(&log, Some(100)), (undamaged.clone(), clean.clone()));
    let lost = |at: Position| {
        let mut log = log.clone();
        log.bytes_at(at)[..PAGE].fill(0x5a);
        log
    };
    let (last, copy) = (log.frames[1].at, log.frames[2].at);
    let stand_in = vec![(10, 100), (11, 101), (11, 102), (11, 103)];
    assert_eq!(sequences(&lost(last), Some(100)), (stand_in, clean.clone()));
    assert_eq!(sequences(&lost(copy), Some(100)), (undamaged, clean.clone()));
    // In a scan that starts with its segment, a copy is ignored, whole or not.
    for mut log in [log.clone(), lost(copy)] {
        log.segments.remove(0);
        assert_eq!(sequences(&log, None), (vec![(11, 102), (11, 103)], clean.clone()));
    }
    // Both are lost, and frame 103 proves that they were durable.
    let mut log = lost(last);
    log.bytes_at(copy)[..PAGE].fill(0x5a);
    assert!(
        matches!(sequences(&log, Some(100)).1, End::Corrupt { lost, .. } if lost == (101..103))
    );
}

#[test]
fn a_copy_without_an_opening_proves_nothing() {
    let mut log = with_a_copy();
    log.segments[1].1.truncate(PAGE);
    let (frames, end) = scan(&log);
    assert_eq!(frames, log.frames[..2]);
    assert_eq!(end, End::Clean { next_sequence: Some(102), rest: Rest::Nothing });
}

#[test]
fn pages_of_an_earlier_generation_are_not_a_torn_write() {
    let mut rng = rng(86);
    let mut log = Written::some(&mut rng, 3);
    let mut earlier = Written::default();
    earlier.begin_segment(4);
    (0..20).for_each(|n| earlier.write(40 + n, 40, &[8; 100]));
    let (_, bytes) = log.segments.last_mut().unwrap();
    let left = earlier.segments[0].1.get(bytes.len()..).unwrap_or_default();
    assert!(!left.is_empty());
    bytes.extend_from_slice(left);
    bytes.extend_from_slice(&noise(&mut rng, 5 * PAGE));
    let (frames, end) = scan(&log);
    assert_eq!(frames, log.frames);
    assert_eq!(end, End::Clean { next_sequence: Some(103), rest: Rest::Foreign });
}

#[test]
fn frames_of_another_generation_shard_or_segment_are_refused() {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    for (shard, segment, identity) in [(4, 10, 10_007), (SHARD, 11, 10_007), (SHARD, 10, 10_008)] {
        let mut scanner = LogScanner::new(shard, PAGE, None);
        scanner.begin_segment(segment, identity, None);
        scanner.feed(Bytes::copy_from_slice(&log.segments[0].1));
        assert_eq!(scanner.next_frame(), Ok(None));
    }
}

#[test]
fn unreadable_pages_count_as_damage() {
    let mut rng = rng(87);
    let log = Written::some(&mut rng, 12);
    let (number, bytes) = &log.segments[0];
    let frames: Vec<_> = log.frames.iter().filter(|frame| frame.at.segment == *number).collect();
    let lost = frames[2];
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
    scanner.begin_segment(*number, identity_of(*number), None);
    let mut read = 0;
    for (page, bytes) in bytes.chunks(PAGE).enumerate() {
        if page == lost.at.page as usize {
            scanner.feed_unreadable()
        } else {
            scanner.feed(Bytes::copy_from_slice(bytes))
        }
        while scanner.next_frame().unwrap().is_some() {
            read += 1;
        }
    }
    scanner.end_segment().unwrap();
    assert_eq!(read, 2);
    let durable = frames.last().unwrap().header.durable_before;
    assert_eq!(scanner.finish(), End::Corrupt { at: lost.at, lost: 102..durable });
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
    scanner.begin_segment(10, 1, None);
    scanner.feed_unreadable();
    scanner.end_segment().unwrap();
    let unwritten = End::Clean { next_sequence: Some(100), rest: Rest::Unreadable };
    assert_eq!(scanner.finish(), unwritten);
}

proptest! {
    #![proptest_config(cases(600, 88))]

    #[test]
    fn with_any_damage_only_whole_frames_are_returned_in_order(
        seed in any::<u64>(),
        damages in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 1usize..900),
            0..5,
        ),
        piece in 1usize..3_000,
    ) {
        let log = Written::some(&mut Rng::seeded(seed), 25);
        let mut broken = log.clone();
        for (segment, place, byte, len) in damages {
            let at = segment.index(broken.segments.len());
            let bytes = &mut broken.segments[at].1;
            let start = place.index(bytes.len());
            let end = (start + len).min(bytes.len());
            bytes[start..end].fill(byte);
        }
        let (frames, end) = scan_in(&broken, piece, Some(100));
        prop_assert_eq!(&frames[..], &log.frames[..frames.len()]);
        let next = 100 + frames.len() as u64;
        let proved = log.frames.iter().skip(frames.len()).any(|frame| {
            let bytes = broken.clone().bytes_at(frame.at).to_vec();
            let whole = frame::open(&bytes, identity_of(frame.at.segment), frame.at.page);
            whole == Slot::Frame(frame.header) && frame.header.durable_before > next
        });
        let corrupt = matches!(end, End::Corrupt { .. });
        prop_assert_eq!(corrupt, proved, "{:?} after {} frames", end, frames.len());
    }

    #[test]
    fn scanning_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..3_000), piece in 1usize..900) {
        let log = Written { segments: vec![(0, bytes.clone()), (1, bytes)], frames: Vec::new() };
        let (frames, end) = scan_in(&log, piece, None);
        let corrupt = matches!(end, End::Corrupt { .. });
        prop_assert!(frames.is_empty() && !corrupt);
    }
}
