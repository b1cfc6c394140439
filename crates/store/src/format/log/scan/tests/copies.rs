//! Two copies of a log with pages that differ.

use super::*;

/// The pages of one segment; `None` for an unreadable page.
type Pages = Vec<Option<Bytes>>;

/// A log of one segment, with a frame of each of these numbers of pages.
fn of_pages(pages: &[usize]) -> Written {
    let mut log = Written::default();
    log.begin_segment(10);
    for (sequence, pages) in (100..).zip(pages) {
        let payload = noise(&mut rng(90 + sequence), pages * PAGE - HEADER_BYTES - 3);
        log.write(sequence, sequence.saturating_sub(1).max(100), &payload);
    }
    log
}

fn pages_of(log: &Written) -> Pages {
    log.segments[0].1.chunks(PAGE).map(|page| Some(Bytes::copy_from_slice(page))).collect()
}

fn damage(pages: &mut Pages, page: usize) {
    pages[page] = Some(Bytes::from(noise(&mut rng(500 + page as u64), PAGE)));
}

/// Scans both copies, and feeds `at_once` pages before it takes frames.
fn scan_copies(one: &Pages, other: &Pages, at_once: usize) -> (Vec<Frame>, Vec<Position>, End) {
    let mut scanner = LogScanner::new(SHARD, PAGE, Some(100));
    scanner.begin_segment(10, identity_of(10), None);
    let mut frames = Vec::new();
    for (page, (one, other)) in one.iter().zip(other).enumerate() {
        match one {
            Some(bytes) if one == other => scanner.feed(bytes.clone()),
            _ => scanner.feed_disputed(one.clone(), other.clone()),
        }
        if (page + 1) % at_once == 0 {
            while let Some(frame) = scanner.next_frame().unwrap() {
                frames.push(frame);
            }
        }
    }
    while let Some(frame) = scanner.next_frame().unwrap() {
        frames.push(frame);
    }
    scanner.end_segment().unwrap();
    let uneven = scanner.uneven().keys().copied().collect();
    (frames, uneven, scanner.finish())
}

const CLEAN: fn(u64) -> End = |next| End::Clean { next_sequence: Some(next), rest: Rest::Nothing };

#[test]
fn a_frame_that_is_whole_in_one_copy_is_read_and_reported() {
    // Pages 0; 1 and 2; 3 to 5; 6; 7 to 10.
    let log = of_pages(&[1, 2, 3, 1, 4]);
    for at_once in [1, 2, 3, 100] {
        for bad in 0..11 {
            for unreadable in [false, true] {
                let (whole, mut broken) = (pages_of(&log), pages_of(&log));
                damage(&mut broken, bad);
                if unreadable {
                    broken[bad] = None;
                }
                let holds = |frame: &&Frame| frame.at.page as usize <= bad;
                let expected = [log.frames.iter().rfind(holds).unwrap().at];
                for (one, other) in [(&whole, &broken), (&broken, &whole)] {
                    let (frames, uneven, end) = scan_copies(one, other, at_once);
                    assert_eq!(frames, log.frames, "page {bad}, {at_once} at once");
                    assert_eq!(uneven, expected, "page {bad}, {at_once} at once");
                    assert_eq!(end, CLEAN(105));
                }
            }
        }
    }
}

#[test]
fn a_frame_is_assembled_from_both_copies() {
    let log = of_pages(&[2, 6, 1]);
    for mask in 1..63_usize {
        let (mut one, mut other) = (pages_of(&log), pages_of(&log));
        for page in 0..6 {
            let broken = if mask >> page & 1 == 1 { &mut one } else { &mut other };
            damage(broken, 2 + page);
        }
        let (frames, uneven, end) = scan_copies(&one, &other, 4);
        assert_eq!(frames, log.frames, "mask {mask:b}");
        assert_eq!((uneven, end), (vec![log.frames[1].at], CLEAN(103)));
    }
}

#[test]
fn with_many_differing_pages_only_whole_copies_are_tried() {
    for pages in [7, 70] {
        let log = of_pages(&[1, pages, 1]);
        let (whole, mut broken) = (pages_of(&log), pages_of(&log));
        (1..1 + pages).for_each(|page| damage(&mut broken, page));
        for (one, other) in [(&whole, &broken), (&broken, &whole)] {
            let (frames, uneven, end) = scan_copies(one, other, 100);
            assert_eq!(frames, log.frames);
            assert_eq!((uneven, end), (vec![log.frames[1].at], CLEAN(103)));
        }
    }
    let (log, mut one) = (of_pages(&[1, 7, 1]), pages_of(&of_pages(&[1, 7, 1])));
    let mut other = one.clone();
    for page in 0..7 {
        damage(if page % 2 == 0 { &mut one } else { &mut other }, 1 + page);
    }
    let (frames, uneven, end) = scan_copies(&one, &other, 100);
    assert_eq!((frames, uneven), (log.frames[..1].to_vec(), vec![]));
    assert!(matches!(end, End::Torn { next_sequence: Some(101), .. }), "{end:?}");
}

#[test]
fn a_frame_that_no_copy_has_is_damaged() {
    let log = of_pages(&[2, 3, 1, 1]);
    for bad in 2..5 {
        for unreadable in [false, true] {
            let (mut one, mut other) = (pages_of(&log), pages_of(&log));
            if unreadable {
                (one[bad], other[bad]) = (None, None);
            } else {
                damage(&mut one, bad);
                other[bad] = Some(Bytes::from(vec![7; PAGE]));
            }
            let (frames, uneven, end) = scan_copies(&one, &other, 3);
            assert_eq!((frames, uneven), (log.frames[..1].to_vec(), vec![]), "page {bad}");
            // The last frame was written when frame 101 was durable.
            assert_eq!(end, End::Corrupt { at: log.frames[1].at, lost: 101..102 }, "page {bad}");
        }
    }
}

#[test]
fn every_combination_of_few_pages_is_tried_once() {
    let tried = |pages: usize| -> Vec<Vec<bool>> {
        choices(pages).map(|choice| choice.take(pages).collect()).collect()
    };
    assert_eq!(tried(0), Vec::<Vec<bool>>::new());
    assert_eq!(tried(1), [[true]]);
    assert_eq!(tried(2), [[true, true], [true, false], [false, true]]);
    let all: std::collections::BTreeSet<_> = tried(6).into_iter().collect();
    assert_eq!((tried(6).len(), all.len()), (63, 63));
    assert!(!all.contains(&vec![false; 6]), "the buffer itself has been tried");
    assert_eq!(tried(7), [[true; 7]]);
    assert_eq!(tried(70), [[true; 70]]);
}
