//! Positions in a log, and missing pages inside a frame.

use super::*;

#[test]
fn the_position_before_is_on_the_previous_page_or_in_the_previous_segment() {
    let at = |segment, page| Position { segment, page };
    assert_eq!(at(5, 3).before(), at(5, 2));
    assert_eq!(at(5, 0).before(), at(4, u32::MAX));
    assert_eq!(at(0, 0).before(), at(0, u32::MAX));
}

#[test]
fn the_position_behind_a_frame_is_the_page_after_its_last_page() {
    let mut log = Written::default();
    log.begin_segment(10);
    for payload in [0, PAGE - HEADER_BYTES, PAGE, 5 * PAGE] {
        log.write(100, 100, &vec![1; payload]);
    }
    let behind: Vec<_> = log.frames.iter().map(|frame| frame.behind(PAGE).page).collect();
    assert_eq!(behind, [1, 2, 4, 10]);
    assert!(log.frames.iter().all(|frame| frame.behind(PAGE).segment == 10));
}

#[test]
fn frames_behind_an_unreadable_page_inside_a_frame_keep_their_positions() {
    let mut log = Written::default();
    log.begin_segment(10);
    for (sequence, pages) in (100..).zip([1, 4, 1, 1]) {
        log.write(sequence, sequence, &noise(&mut rng(7), pages * PAGE - HEADER_BYTES));
    }
    for lost in 2..5 {
        for at_once in [1, 2, 100] {
            let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
            scanner.begin_segment(10, identity_of(10), None);
            let mut read = 0;
            for (page, bytes) in log.segments[0].1.chunks(PAGE).enumerate() {
                match page == lost {
                    true => scanner.feed_unreadable(),
                    false => scanner.feed(Bytes::copy_from_slice(bytes)),
                }
                while (page + 1) % at_once == 0 && scanner.next_frame().unwrap().is_some() {
                    read += 1;
                }
            }
            while scanner.next_frame().unwrap().is_some() {
                read += 1;
            }
            scanner.end_segment().unwrap();
            assert_eq!(read, 1);
            let at = log.frames[1].at;
            assert_eq!(scanner.finish(), End::Corrupt { at, lost: 101..103 }, "page {lost}");
        }
    }
}

#[test]
fn a_partial_page_is_a_torn_page() {
    let mut log = Written::default();
    log.begin_segment(10);
    log.write(100, 100, b"a");
    log.write(101, 101, b"b");
    for bytes in [HEADER_BYTES, PAGE / 2, PAGE - 1] {
        let mut log = log.clone();
        // Without the missing bytes it is not a frame.
        log.segments[0].1.truncate(PAGE + bytes);
        log.segments[0].1[PAGE + HEADER_BYTES - 1] ^= 1;
        let (frames, end) = scan(&log);
        assert_eq!(frames, log.frames[..1]);
        let at = Position { segment: 10, page: 1 };
        assert_eq!(end, End::Torn { at, next_sequence: Some(101) });
    }
}

#[test]
fn a_repair_skips_lost_frames_and_reports_them() {
    let mut log = Written::default();
    log.begin_segment(10);
    (100..108).for_each(|sequence| log.write(sequence, sequence, &[1; 600]));
    for sequence in [2, 3, 6] {
        let at = log.frames[sequence].at;
        log.bytes_at(at)[..PAGE].fill(3);
    }
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100)).passing_losses();
    assert_eq!(scanner.losses(), []);
    let read = sequences_read(&mut scanner, &log);
    assert_eq!(read, [100, 101, 104, 105, 107]);
    assert_eq!(scanner.losses(), [102..104, 106..107]);
    let end = End::Clean { next_sequence: Some(108), rest: Rest::Nothing };
    assert_eq!(scanner.finish(), end);
}
