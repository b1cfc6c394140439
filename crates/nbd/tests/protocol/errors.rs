//! The error for each kind of invalid request.

use crate::client::*;
use crate::disk::Disk;
use softflash_nbd::{Export, Features, Session};

/// The errors for requests with payloads where they belong.
fn error(session: &Session, kind: u16, flags: u16, offset: u64, length: u32) -> u32 {
    let mut disk = Disk::with_session(session.clone());
    let mut bytes = request(kind, flags, 9, offset, length);
    if kind == WRITE {
        bytes.resize(28 + usize::try_from(length).unwrap(), 1);
    }
    let data_bytes = if kind == READ { usize::try_from(length).unwrap() } else { 0 };
    let found = replies(&disk.feed(&bytes), |_| data_bytes);
    assert!(!disk.is_closed);
    match &found[..] {
        [Reply::Simple { error, cookie: 9, .. }] => *error,
        [Reply::Chunk { is_done: true, kind: 0x8001, cookie: 9, payload }] => {
            u32::from_be_bytes(payload[..4].try_into().unwrap())
        }
        [Reply::Chunk { is_done: true, kind, cookie: 9, .. }] if *kind < 0x8000 => 0,
        other => panic!("{other:?}"),
    }
}

fn both() -> [Session; 2] {
    [false, true].map(|structured| session(export("vol"), structured))
}

const SIZE: u64 = 1 << 20;

#[test]
fn requests_beyond_the_end_lack_space_if_they_write_and_are_invalid_otherwise() {
    for session in both() {
        for (offset, length) in [(SIZE, 512), (SIZE - 512, 1024), (u64::MAX - 511, 512)] {
            assert_eq!(error(&session, WRITE, 0, offset, length), ENOSPC);
            assert_eq!(error(&session, WRITE_ZEROES, 0, offset, length), ENOSPC);
            for kind in [READ, TRIM, CACHE, BLOCK_STATUS] {
                assert_eq!(error(&session, kind, 0, offset, length), EINVAL);
            }
        }
        assert_eq!(error(&session, WRITE, 0, SIZE - 512, 512), 0);
        assert_eq!(error(&session, READ, 0, SIZE - 512, 512), 0);
    }
}

#[test]
fn writing_commands_are_not_permitted_on_a_read_only_export() {
    for structured in [false, true] {
        let session = session(Export { read_only: true, ..export("vol") }, structured);
        for kind in [WRITE, TRIM, WRITE_ZEROES] {
            assert_eq!(error(&session, kind, 0, 0, 512), EPERM);
            assert_eq!(error(&session, kind, FUA, SIZE, 512), EPERM);
        }
        assert_eq!(error(&session, READ, FUA, 0, 512), 0);
        assert_eq!(error(&session, FLUSH, FUA, 0, 0), 0);
    }
}

#[test]
fn unaligned_requests_are_invalid() {
    for session in both() {
        for kind in [READ, WRITE, TRIM, CACHE, WRITE_ZEROES] {
            assert_eq!(error(&session, kind, 0, 100, 512), EINVAL);
            assert_eq!(error(&session, kind, 0, 512, 100), EINVAL);
            assert_eq!(error(&session, kind, 0, 512, 512), 0);
        }
    }
}

#[test]
fn requests_of_length_zero_are_invalid() {
    for kind in [READ, WRITE, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS] {
        for session in both() {
            assert_eq!(error(&session, kind, 0, 512, 0), EINVAL);
        }
    }
}

#[test]
fn flags_of_other_commands_and_unknown_flags_are_invalid() {
    let structured = session(export("vol"), true);
    let allowed = [
        (READ, DF),
        (WRITE, 0),
        (FLUSH, 0),
        (TRIM, 0),
        (CACHE, 0),
        (WRITE_ZEROES, NO_HOLE | FAST_ZERO),
        (BLOCK_STATUS, REQ_ONE),
    ];
    for (kind, flags) in allowed {
        let length = if kind == FLUSH { 0 } else { 512 };
        for bit in 1..16 {
            let flag = 1 << bit;
            let expected = match flag & flags {
                0 => EINVAL,
                FAST_ZERO => ENOTSUP,
                _ => 0,
            };
            assert_eq!(error(&structured, kind, flag, 0, length), expected, "{kind} {flag:#x}");
        }
    }
}

#[test]
fn flags_that_were_not_offered_are_invalid() {
    let features = Features { fua: false, fast_zero: false, ..ALL };
    let session = session(Export { features, ..export("vol") }, false);
    for kind in [READ, WRITE, TRIM, CACHE, WRITE_ZEROES] {
        assert_eq!(error(&session, kind, FUA, 0, 512), EINVAL);
    }
    assert_eq!(error(&session, WRITE_ZEROES, FAST_ZERO, 0, 512), EINVAL);
    assert_eq!(error(&session, WRITE_ZEROES, NO_HOLE, 0, 512), 0);
    assert_eq!(error(&session, READ, DF, 0, 512), EINVAL);
}

#[test]
fn too_long_reads_overflow_if_replies_are_structured() {
    let [simple, structured] = both();
    let most = 1 << 17;
    assert_eq!(error(&simple, READ, 0, 0, most), 0);
    assert_eq!(error(&simple, READ, 0, 0, most + 512), EINVAL);
    assert_eq!(error(&structured, READ, DF, 0, most), 0);
    for flags in [0, DF] {
        assert_eq!(error(&structured, READ, flags, 0, most + 512), EOVERFLOW);
    }
    assert_eq!(error(&structured, WRITE, 0, 0, most + 512), EINVAL);
    // Without a payload the length does not matter.
    for kind in [TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS] {
        assert_eq!(error(&structured, kind, 0, 0, 1 << 20), 0);
    }
}

#[test]
fn a_flush_has_neither_offset_nor_length() {
    for session in both() {
        assert_eq!(error(&session, FLUSH, 0, 512, 0), EINVAL);
        assert_eq!(error(&session, FLUSH, 0, 0, 512), EINVAL);
        assert_eq!(error(&session, FLUSH, 0, 0, 0), 0);
    }
}

#[test]
fn the_block_status_needs_a_selected_context() {
    let mut client = Client::new(softflash_nbd::TlsMode::Off);
    client.one(STRUCTURED_REPLY, &[]);
    assert_eq!(error(&client.go("vol"), BLOCK_STATUS, 0, 0, 512), EINVAL);
}
