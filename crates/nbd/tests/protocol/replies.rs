//! Replies without contents, and errors.

use crate::client::*;
use softflash_nbd::{
    ByteRange, Command, Cookie, ErrorCode, Event, Rejection, Replies, Request, Transmission,
};

const RANGE: ByteRange = ByteRange { offset: 4096, bytes: 1024 };
const CODES: [(ErrorCode, u32); 7] = [
    (ErrorCode::NotPermitted, EPERM),
    (ErrorCode::Io, EIO),
    (ErrorCode::NoMemory, 12),
    (ErrorCode::Invalid, EINVAL),
    (ErrorCode::NoSpace, ENOSPC),
    (ErrorCode::Overflow, EOVERFLOW),
    (ErrorCode::ShuttingDown, ESHUTDOWN),
];

fn encoder(structured: bool) -> Replies {
    session(export("vol"), structured).replies()
}

fn of(command: Command) -> Request {
    Request { cookie: Cookie(0xfeed_0000_0000_beef), fua: false, command }
}

fn commands() -> [Command; 7] {
    [
        Command::Read { range: RANGE, dont_fragment: false },
        Command::Write { range: RANGE },
        Command::Flush,
        Command::Trim { range: RANGE },
        Command::Cache { range: RANGE },
        Command::WriteZeroes { range: RANGE, no_hole: false, fast: false },
        Command::BlockStatus { range: RANGE, one_extent: false },
    ]
}

fn one(encode: impl FnOnce(&mut Vec<u8>)) -> Reply {
    let mut output = Vec::new();
    encode(&mut output);
    let mut found = replies(&output, |_| 0);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// Error, message, and what follows it.
fn parts(payload: &[u8]) -> (u32, &str, &[u8]) {
    let length = usize::from(u16::from_be_bytes([payload[4], payload[5]]));
    let error = u32::from_be_bytes(payload[..4].try_into().unwrap());
    (error, str::from_utf8(&payload[6..6 + length]).unwrap(), &payload[6 + length..])
}

#[test]
fn success_without_contents_is_a_simple_reply_with_the_cookie() {
    for structured in [false, true] {
        for command in &commands()[1..6] {
            let found = one(|output| encoder(structured).done(&of(*command), output));
            let cookie = 0xfeed_0000_0000_beef;
            assert_eq!(found, Reply::Simple { error: 0, cookie, data: vec![] });
        }
    }
}

#[test]
fn without_negotiation_all_errors_are_simple_replies_without_data() {
    for command in commands() {
        for (code, error) in CODES {
            let found = one(|output| encoder(false).fail(&of(command), code, "why", output));
            let cookie = 0xfeed_0000_0000_beef;
            assert_eq!(found, Reply::Simple { error, cookie, data: vec![] });
            let at = one(|output| encoder(false).fail_at(&of(command), 4096, code, "", output));
            assert_eq!(at, found);
        }
    }
}

#[test]
fn after_negotiation_errors_are_chunks_with_a_message() {
    for command in commands() {
        for (code, error) in CODES {
            let found = one(|output| encoder(true).fail(&of(command), code, "why", output));
            let Reply::Chunk { is_done: true, kind: 0x8001, cookie, payload } = found else {
                panic!("{found:?}")
            };
            assert_eq!(cookie, 0xfeed_0000_0000_beef);
            assert_eq!(parts(&payload), (error, "why", &[][..]));
        }
    }
}

#[test]
fn an_error_can_name_an_offset_within_the_request() {
    let fail_at = |command, offset| {
        one(|output| {
            encoder(true).fail_at(&of(command), offset, ErrorCode::Io, "bad block", output)
        })
    };
    let found = fail_at(commands()[1], 4608);
    let Reply::Chunk { is_done: true, kind: 0x8002, payload, .. } = found else {
        panic!("{found:?}")
    };
    assert_eq!(parts(&payload), (EIO, "bad block", &4608_u64.to_be_bytes()[..]));
    for (command, offset) in [(commands()[1], 4095), (commands()[1], 5120), (Command::Flush, 0)] {
        let found = fail_at(command, offset);
        assert!(matches!(found, Reply::Chunk { kind: 0x8001, .. }), "{found:?}");
    }
}

#[test]
fn a_message_is_at_most_4096_bytes_and_has_no_zero() {
    let longest = |text: &str| {
        let found = one(|out| encoder(true).fail(&of(Command::Flush), ErrorCode::Io, text, out));
        let Reply::Chunk { payload, .. } = found else { panic!("{found:?}") };
        parts(&payload).1.to_owned()
    };
    assert_eq!(longest(&"m".repeat(5000)), "m".repeat(4096));
    assert_eq!(longest("a\0b"), "a");
    assert_eq!(longest(""), "");
}

#[test]
fn not_supported_is_only_said_about_fast_zeroes() {
    for structured in [false, true] {
        for command in commands() {
            let code = ErrorCode::NotSupported;
            let found = one(|output| encoder(structured).fail(&of(command), code, "", output));
            assert_eq!(number(&found), EINVAL);
        }
        let fast = Command::WriteZeroes { range: RANGE, no_hole: false, fast: true };
        let code = ErrorCode::NotSupported;
        let found = one(|output| encoder(structured).fail(&of(fast), code, "", output));
        assert_eq!(number(&found), ENOTSUP);
    }
}

fn number(reply: &Reply) -> u32 {
    match reply {
        Reply::Simple { error, .. } => *error,
        Reply::Chunk { payload, .. } => parts(payload).0,
    }
}

#[test]
fn an_early_error_of_a_read_is_structured_if_that_was_negotiated() {
    for structured in [false, true] {
        let mut transmission = Transmission::new(session(export("vol"), structured));
        let bytes = request(READ, 0x8000, 5, 0, 512);
        let found = transmission.next(&mut &bytes[..]);
        let Ok(Event::Rejected(rejection)) = found else { panic!("{found:?}") };
        let Rejection { cookie, error, .. } = rejection;
        assert_eq!((cookie, error), (Cookie(5), ErrorCode::Invalid));
        match one(|output| encoder(structured).reject(&rejection, output)) {
            Reply::Simple { error: EINVAL, cookie: 5, .. } => assert!(!structured),
            Reply::Chunk { is_done: true, kind: 0x8001, cookie: 5, .. } => assert!(structured),
            other => panic!("{other:?}"),
        }
    }
}
