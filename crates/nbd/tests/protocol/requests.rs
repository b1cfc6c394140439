//! Requests: what is accepted, and how the stream goes on after what is not.

use crate::client::*;
use crate::disk::Disk;
use softflash_nbd::{
    ByteRange, Command, Cookie, Event, Export, Features, Request, Session, Transmission, Violation,
};

/// The first event of these bytes.
fn event(session: Session, bytes: &[u8]) -> Event<'_> {
    Transmission::new(session).next(&mut &bytes[..]).unwrap()
}

fn command(session: &Session, bytes: &[u8]) -> Command {
    match event(session.clone(), bytes) {
        Event::Request(request) => request.command,
        other => panic!("{other:?}"),
    }
}

fn writable() -> Session {
    session(export("vol"), true)
}

#[test]
fn requests_have_their_cookie_flags_offset_and_length() {
    let range = ByteRange { offset: 0x1_0200, bytes: 0x400 };
    let of = |kind, flags| command(&writable(), &request(kind, flags, 7, 0x1_0200, 0x400));
    assert_eq!(of(READ, 0), Command::Read { range, dont_fragment: false });
    assert_eq!(of(READ, DF), Command::Read { range, dont_fragment: true });
    assert_eq!(of(WRITE, 0), Command::Write { range });
    assert_eq!(of(TRIM, 0), Command::Trim { range });
    assert_eq!(of(CACHE, 0), Command::Cache { range });
    let zeroes = |no_hole, fast| Command::WriteZeroes { range, no_hole, fast };
    assert_eq!(of(WRITE_ZEROES, 0), zeroes(false, false));
    assert_eq!(of(WRITE_ZEROES, NO_HOLE), zeroes(true, false));
    assert_eq!(of(WRITE_ZEROES, FAST_ZERO), zeroes(false, true));
    let status = |one_extent| Command::BlockStatus { range, one_extent };
    assert_eq!(of(BLOCK_STATUS, 0), status(false));
    assert_eq!(of(BLOCK_STATUS, REQ_ONE), status(true));
    assert_eq!(command(&writable(), &request(FLUSH, 0, 7, 0, 0)), Command::Flush);
}

#[test]
fn every_command_accepts_fua_where_it_was_offered() {
    for kind in [READ, WRITE, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS, FLUSH] {
        let length = if kind == FLUSH { 0 } else { 512 };
        for flags in [0, FUA] {
            let bytes = request(kind, flags, u64::MAX, 0, length);
            let found = event(writable(), &bytes);
            let Event::Request(Request { cookie, fua, .. }) = found else { panic!("{found:?}") };
            assert_eq!((cookie, fua), (Cookie(u64::MAX), flags == FUA));
        }
    }
}

#[test]
fn requests_come_in_the_order_in_which_they_were_sent() {
    let mut disk = Disk::with_session(writable());
    let mut bytes = Vec::new();
    for cookie in 0..20 {
        let (kind, length) = if cookie % 3 == 0 { (FLUSH, 0) } else { (TRIM, 512) };
        bytes.extend(request(kind, 0, cookie, 0, length));
    }
    disk.feed(&bytes);
    let cookies: Vec<u64> = disk.requests.iter().map(|request| request.cookie.0).collect();
    assert_eq!(cookies, (0..20).collect::<Vec<u64>>());
}

#[test]
fn written_data_are_read_back() {
    let data: Vec<u8> = (0..1024_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    for structured in [false, true] {
        let mut disk = Disk::with_session(session(export("vol"), structured));
        let write = [request(WRITE, FUA, 1, 4096, 1024), data.clone()].concat();
        let read = request(READ, 0, 2, 4608, 512);
        let output = disk.feed(&[write, read].concat());
        let done = Reply::Simple { error: 0, cookie: 1, data: vec![] };
        let found = replies(&output, |cookie| if cookie == 2 { 512 } else { 0 });
        assert_eq!(found[0], done);
        let data = &data[512..];
        match &found[1] {
            Reply::Simple { error: 0, cookie: 2, data: found } if !structured => {
                assert_eq!(found, data);
            }
            Reply::Chunk { is_done: true, kind: 1, cookie: 2, payload } if structured => {
                assert_eq!(*payload, [&4608_u64.to_be_bytes(), data].concat());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn zeroes_are_written_and_a_fast_write_may_be_refused() {
    let mut disk = Disk::with_session(session(export("vol"), false));
    disk.bytes.fill(1);
    let slow = request(WRITE_ZEROES, 0, 1, 512, 512);
    let fast = request(WRITE_ZEROES, FAST_ZERO, 2, 2048, 512);
    let found = replies(&disk.feed(&[slow, fast].concat()), |_| 0);
    let simple = |error, cookie| Reply::Simple { error, cookie, data: vec![] };
    assert_eq!(found, [simple(0, 1), simple(ENOTSUP, 2)]);
    assert_eq!((disk.bytes[511], disk.bytes[512], disk.bytes[1024]), (1, 0, 1));
    assert_eq!(disk.bytes[2048], 1);
}

#[test]
fn a_refused_write_is_skipped_and_the_next_request_is_understood() {
    let small = Export { size_bytes: 4096, ..export("vol") };
    let mut disk = Disk::with_session(session(small, false));
    // The payload looks like a request.
    let payload = request(DISC, 0, 0, 0, 0).repeat(512 / 28 + 1)[..512].to_vec();
    let beyond = [request(WRITE, 0, 1, 4096, 512), payload].concat();
    let too_long = [request(WRITE, 0, 2, 0, 1 << 18), vec![9; 1 << 18]].concat();
    let next = request(FLUSH, 0, 3, 0, 0);
    let found = replies(&disk.feed(&[beyond, too_long, next].concat()), |_| 0);
    let simple = |error, cookie| Reply::Simple { error, cookie, data: vec![] };
    assert_eq!(found, [simple(ENOSPC, 1), simple(ENOSPC, 2), simple(0, 3)]);
    assert!(!disk.is_closed);
    assert_eq!(disk.bytes, vec![0; 1 << 20]);
}

#[test]
fn a_payload_up_to_32_mib_is_skipped_even_if_it_is_longer_than_the_maximum() {
    let mut transmission = Transmission::new(writable());
    let bytes = request(WRITE, 0, 1, 0, 1 << 25);
    assert!(matches!(transmission.next(&mut &bytes[..]), Ok(Event::Rejected(_))));
    let piece = vec![0; 1 << 20];
    for _ in 0..32 {
        assert_eq!(transmission.next(&mut &piece[..]), Ok(Event::NeedInput));
    }
    let next = request(FLUSH, 0, 2, 0, 0);
    assert!(matches!(transmission.next(&mut &next[..]), Ok(Event::Request(_))));
}

#[test]
fn a_payload_that_is_far_too_long_ends_the_connection() {
    let mut transmission = Transmission::new(writable());
    let bytes = request(WRITE, 0, 1, 0, (1 << 25) + 1);
    let violation = Violation::PayloadTooLong { bytes: (1 << 25) + 1, most: 1 << 25 };
    assert_eq!(transmission.next(&mut &bytes[..]), Err(violation));
    let next = request(FLUSH, 0, 2, 0, 0);
    assert_eq!(transmission.next(&mut &next[..]), Err(violation), "it stays so");
}

#[test]
fn a_long_length_without_a_payload_does_not_end_the_connection() {
    for kind in [READ, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS, FLUSH, 99] {
        let bytes = request(kind, 0, 1, 0, u32::MAX);
        let found = event(writable(), &bytes);
        assert!(matches!(found, Event::Rejected(_)), "{found:?}");
    }
}

#[test]
fn bytes_that_are_not_a_request_end_the_connection() {
    for magic in [0x2560_9514_u32, 0x1256_0953, 0x21e4_1c71, 0] {
        let mut transmission = Transmission::new(writable());
        let mut bytes = request(READ, 0, 1, 0, 512);
        bytes[..4].copy_from_slice(&magic.to_be_bytes());
        for _ in 0..2 {
            let found = transmission.next(&mut &bytes[..]);
            assert_eq!(found, Err(Violation::NotARequest(magic)));
        }
    }
}

#[test]
fn a_disconnect_has_no_reply_and_nothing_after_it_is_understood() {
    let mut disk = Disk::with_session(writable());
    let bytes = [
        request(TRIM, 0, 1, 0, 512),
        request(DISC, 0xffff, 2, 77, 78),
        request(TRIM, 0, 3, 0, 512),
    ];
    let found = replies(&disk.feed(&bytes.concat()), |_| 0);
    assert_eq!(found, [Reply::Simple { error: 0, cookie: 1, data: vec![] }]);
    assert!(disk.is_closed);
    let mut transmission = Transmission::new(writable());
    let bytes = bytes[1..].concat();
    let mut rest = &bytes[..];
    assert_eq!([(); 2].map(|()| transmission.next(&mut rest)), [Ok(Event::Disconnect); 2]);
    assert!(rest.is_empty());
}

#[test]
fn a_command_that_was_not_offered_is_invalid_and_the_connection_goes_on() {
    let features = Features::default();
    let plain = session(Export { features, ..export("vol") }, false);
    let mut disk = Disk::with_session(plain);
    let kinds = [FLUSH, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS, 8, 0xffff];
    for (cookie, kind) in (0..).zip(kinds) {
        let length = if kind == FLUSH { 0 } else { 512 };
        let found = replies(&disk.feed(&request(kind, 0, cookie, 0, length)), |_| 0);
        assert_eq!(found, [Reply::Simple { error: EINVAL, cookie, data: vec![] }]);
    }
    assert!(!disk.is_closed && disk.requests.is_empty());
}
