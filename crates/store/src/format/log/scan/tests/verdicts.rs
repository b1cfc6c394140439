//! The end of a log by the pages behind its last frame: cases that random damage seldom produces.

use super::*;

/// A page to feed.
enum Fed<'a> {
    Bytes(&'a [u8]),
    Unreadable,
}
use Fed::{Bytes as Page, Unreadable};

/// Scans a segment of which all pages are fed before any frame is taken.
fn scan_at_once(pages: &[Fed<'_>], first: Option<u64>) -> (usize, End) {
    let mut scanner = LogScanner::new(SHARD, PAGE, first);
    scanner.begin_segment(10, identity_of(10), None);
    for page in pages {
        match page {
            Page(bytes) => scanner.feed(Bytes::copy_from_slice(bytes)),
            Unreadable => scanner.feed_unreadable(),
        }
    }
    let frames = std::iter::from_fn(|| scanner.next_frame().unwrap()).count();
    scanner.end_segment().unwrap();
    (frames, scanner.finish())
}

fn sequences(log: &Written, first: Option<u64>) -> (Vec<(u64, u64)>, End) {
    let (frames, end) = scan_in(log, PAGE, first);
    (frames.iter().map(|frame| (frame.at.segment, frame.header.sequence)).collect(), end)
}

fn begun(number: u64) -> Written {
    let mut log = Written::default();
    log.begin_segment(number);
    log
}

/// A page without marks of a log.
fn add_foreign_page(log: &mut Written) {
    log.segments.last_mut().unwrap().1.extend_from_slice(&[0x5a; PAGE]);
}

const fn at(segment: u64, page: u32) -> Position {
    Position { segment, page }
}

#[test]
fn the_rest_behind_the_last_frame_is_classified_page_by_page() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    let frame = log.segments[0].1.clone();
    let clean = |rest| End::Clean { next_sequence: Some(101), rest };
    let blank = [0; PAGE];
    let one_byte = |at: usize| {
        let mut page = [0; PAGE];
        page[at] = 1;
        page
    };
    let two_alike = {
        let mut page = [0; PAGE];
        (page[300], page[301]) = (5, 5);
        page
    };
    let (early, late) = (one_byte(1), one_byte(PAGE - 1));
    let cases: [(&[Fed<'_>], Rest); 7] = [
        (&[Page(&blank), Page(&[0xff; PAGE])], Rest::Blank),
        (&[Unreadable, Page(&blank)], Rest::Unreadable),
        (&[Unreadable, Unreadable, Page(&blank)], Rest::Unreadable),
        (&[Page(&blank), Page(&early)], Rest::Foreign),
        (&[Page(&late)], Rest::Foreign),
        (&[Page(&two_alike)], Rest::Foreign),
        (&[Unreadable, Page(&late), Page(&blank)], Rest::Foreign),
    ];
    for (number, (behind, rest)) in cases.iter().enumerate() {
        let mut pages = vec![Page(&frame)];
        pages.extend(behind.iter().map(|page| match page {
            Page(bytes) => Page(bytes),
            Unreadable => Unreadable,
        }));
        assert_eq!(scan_at_once(&pages, Some(100)), (1, clean(*rest)), "case {number}");
    }
    // Unreadable pages in front of everything else.
    let pages = [Unreadable, Unreadable, Page(&blank)];
    let end = End::Clean { next_sequence: Some(100), rest: Rest::Unreadable };
    assert_eq!(scan_at_once(&pages, Some(100)), (0, end));
}

#[test]
fn a_copy_behind_the_end_of_the_frames_in_its_segment_replaces_no_frame() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    log.begin_segment(11);
    add_foreign_page(&mut log);
    log.write_as(FrameRole::Copy, 101, 101, b"b");
    let end = End::Clean { next_sequence: Some(101), rest: Rest::Foreign };
    assert_eq!(sequences(&log, Some(100)), (vec![(10, 100)], end));
}

#[test]
fn a_log_whose_start_is_torn_does_not_begin_with_the_next_segment() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    log.begin_segment(11);
    log.write(101, 101, b"b");
    // Magic number, shard and segment are intact: a write was begun.
    log.bytes_at(at(10, 0))[HEADER_BYTES] ^= 1;
    let corrupt = End::Corrupt { at: at(10, 0), lost: 100..101 };
    assert_eq!(sequences(&log, None), (vec![], corrupt));
}

#[test]
fn a_log_may_begin_behind_blank_segments() {
    let mut log = begun(10);
    log.segments[0].1.extend_from_slice(&[0; 3 * PAGE]);
    log.begin_segment(11);
    log.write(101, 101, b"b");
    let clean = End::Clean { next_sequence: Some(102), rest: Rest::Nothing };
    assert_eq!(sequences(&log, None), (vec![(11, 101)], clean));
}

#[test]
fn a_log_may_begin_with_an_opening_behind_a_copy_that_is_torn() {
    let mut log = begun(11);
    log.write_as(FrameRole::Copy, 101, 101, b"b");
    log.write_as(FrameRole::Opening, 102, 101, b"opening");
    log.bytes_at(at(11, 0))[HEADER_BYTES] ^= 1;
    let clean = End::Clean { next_sequence: Some(103), rest: Rest::Nothing };
    assert_eq!(sequences(&log, None), (vec![(11, 102)], clean));
}

#[test]
fn a_later_segment_continues_only_at_its_first_page_or_its_opening() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    log.write(101, 100, b"torn");
    log.bytes_at(at(10, 1))[HEADER_BYTES] ^= 1;
    log.begin_segment(11);
    add_foreign_page(&mut log);
    let mut opened = log.clone();
    log.write(101, 100, b"b");
    let torn = End::Torn { at: at(10, 1), next_sequence: Some(101) };
    assert_eq!(sequences(&log, Some(100)), (vec![(10, 100)], torn));
    opened.write_as(FrameRole::Opening, 101, 100, b"b");
    let clean = End::Clean { next_sequence: Some(102), rest: Rest::Nothing };
    assert_eq!(sequences(&opened, Some(100)), (vec![(10, 100), (11, 101)], clean));
}

#[test]
fn a_repeated_sequence_is_corruption_only_in_a_later_segment() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    log.write(101, 100, b"b");
    add_foreign_page(&mut log);
    let mut later = log.clone();
    log.write(100, 100, b"a");
    let torn = End::Torn { at: at(10, 2), next_sequence: Some(102) };
    assert_eq!(sequences(&log, Some(100)), (vec![(10, 100), (10, 101)], torn));
    later.begin_segment(11);
    later.write(100, 100, b"another generation");
    let corrupt = End::Corrupt { at: at(10, 2), lost: 100..102 };
    assert_eq!(sequences(&later, Some(100)), (vec![(10, 100), (10, 101)], corrupt));
}

#[test]
fn pages_of_a_superseded_segment_do_not_end_the_log() {
    let mut log = begun(10);
    log.write(100, 100, b"a");
    log.write(101, 100, b"cut off");
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
    scanner.begin_segment(10, identity_of(10), Some(101));
    scanner.feed(Bytes::copy_from_slice(&log.segments[0].1));
    assert_eq!(scanner.next_frame().unwrap().unwrap().header.sequence, 100);
    assert_eq!(scanner.next_frame(), Ok(None));
    scanner.feed_unreadable();
    assert_eq!(scanner.next_frame(), Ok(None));
    scanner.feed(Bytes::from(vec![0x5a; 2 * PAGE]));
    assert_eq!(scanner.next_frame(), Ok(None));
    scanner.end_segment().unwrap();
    let end = End::Clean { next_sequence: Some(101), rest: Rest::Nothing };
    assert_eq!(scanner.finish(), end);
}

#[test]
fn skipping_losses_takes_no_copy_and_no_lower_sequence() {
    let passing = |log: &Written| {
        let mut scanner = LogScanner::new(SHARD, PAGE, Some(100)).passing_losses();
        let read = sequences_read(&mut scanner, log);
        (read, scanner.losses().to_vec())
    };
    let mut log = begun(10);
    log.write(100, 100, b"a");
    let mut copied = log.clone();
    copied.write_as(FrameRole::Copy, 105, 100, b"b");
    assert_eq!(passing(&copied), (vec![100], vec![]));
    // Behind a gap in its segment, a writer never writes the next sequence.
    add_foreign_page(&mut log);
    log.write(101, 100, b"b");
    log.write(99, 99, b"older");
    assert_eq!(passing(&log), (vec![100], vec![]));
}
