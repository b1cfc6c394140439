//! Replies to reads, whole and in parts.

use crate::client::*;
use softflash_nbd::{
    ByteRange, Command, Cookie, ErrorCode, Export, MustDisconnect, Output, ReadReply, Replies,
    Request,
};

const RANGE: ByteRange = ByteRange { offset: 1 << 16, bytes: 4096 };
const OFFSET: u64 = 1 << 16;

fn read(dont_fragment: bool) -> Request {
    let command = Command::Read { range: RANGE, dont_fragment };
    Request { cookie: Cookie(6), fua: false, command }
}

fn encoder(structured: bool) -> Replies {
    session(export("vol"), structured).replies()
}

fn decode(output: &[u8]) -> Vec<Reply> {
    replies(output, |_| 4096)
}

fn data(reply: &mut ReadReply, bytes: u32, output: &mut Vec<u8>) {
    reply.data(bytes, output);
    output.put(&vec![7; usize::try_from(bytes).unwrap()]);
}

fn chunk(is_done: bool, kind: u16, payload: &[&[u8]]) -> Reply {
    Reply::Chunk { is_done, kind, cookie: 6, payload: payload.concat() }
}

fn data_chunk(is_done: bool, offset: u64, data: &[u8]) -> Reply {
    chunk(is_done, 1, &[&offset.to_be_bytes(), data])
}

fn hole_chunk(offset: u64, bytes: u32) -> Reply {
    chunk(false, 2, &[&offset.to_be_bytes(), &bytes.to_be_bytes()])
}

fn none_chunk() -> Reply {
    chunk(true, 0, &[])
}

/// Data, a hole and data.
fn three_parts(structured: bool, dont_fragment: bool) -> Vec<Reply> {
    let mut output = Vec::new();
    let mut reply = encoder(structured).read(&read(dont_fragment));
    data(&mut reply, 1024, &mut output);
    reply.hole(2048, &mut output);
    data(&mut reply, 1024, &mut output);
    assert_eq!(reply.finish(&mut output), Ok(()));
    decode(&output)
}

fn mixed() -> Vec<u8> {
    [vec![7; 1024], vec![0; 2048], vec![7; 1024]].concat()
}

#[test]
fn a_whole_read_is_one_reply() {
    for (structured, dont_fragment) in [(false, false), (true, false), (true, true)] {
        let mut output = Vec::new();
        encoder(structured).whole_read(&read(dont_fragment), &mut output);
        output.extend(mixed());
        let expected = match structured {
            true => data_chunk(true, OFFSET, &mixed()),
            false => Reply::Simple { error: 0, cookie: 6, data: mixed() },
        };
        assert_eq!(decode(&output), [expected]);
    }
}

#[test]
fn a_simple_reply_has_all_data_with_zeroes_for_holes() {
    assert_eq!(three_parts(false, false), [Reply::Simple { error: 0, cookie: 6, data: mixed() }]);
}

#[test]
fn a_structured_reply_has_chunks_that_cover_the_request_and_an_end() {
    let expected = [
        data_chunk(false, OFFSET, &[7; 1024]),
        hole_chunk(OFFSET + 1024, 2048),
        data_chunk(false, OFFSET + 3072, &[7; 1024]),
        none_chunk(),
    ];
    assert_eq!(three_parts(true, false), expected);
}

#[test]
fn an_unfragmented_reply_has_one_chunk_with_zeroes_for_holes() {
    assert_eq!(three_parts(true, true), [data_chunk(false, OFFSET, &mixed()), none_chunk()]);
}

#[test]
fn a_hole_of_the_whole_length_is_one_chunk_also_if_unfragmented() {
    for dont_fragment in [false, true] {
        let mut output = Vec::new();
        let mut reply = encoder(true).read(&read(dont_fragment));
        reply.hole(4096, &mut output);
        assert_eq!(reply.finish(&mut output), Ok(()));
        assert_eq!(decode(&output), [hole_chunk(OFFSET, 4096), none_chunk()]);
    }
    let mut output = Vec::new();
    let mut reply = encoder(false).read(&read(false));
    reply.hole(4096, &mut output);
    assert_eq!(reply.finish(&mut output), Ok(()));
    assert_eq!(decode(&output), [Reply::Simple { error: 0, cookie: 6, data: vec![0; 4096] }]);
}

#[test]
fn unfragmented_reads_of_the_maximum_payload_are_possible() {
    let smallest = softflash_nbd::BlockSizes::new(1, 512, 1 << 16).unwrap();
    let session = session(Export { block_sizes: smallest, ..export("vol") }, true);
    let mut disk = crate::disk::Disk::with_session(session);
    let output = disk.feed(&request(READ, DF, 6, 0, 1 << 16));
    assert_eq!(decode(&output), [data_chunk(true, 0, &[0; 1 << 16])]);
}

#[test]
fn an_error_before_any_data_has_no_data() {
    for (structured, dont_fragment) in [(false, false), (true, false), (true, true)] {
        let mut output = Vec::new();
        let reply = encoder(structured).read(&read(dont_fragment));
        assert_eq!(reply.fail(ErrorCode::Io, "bad", &mut output), Ok(()));
        let expected = match structured {
            true => chunk(true, 0x8001, &[&[0, 0, 0, 5, 0, 3], b"bad"]),
            false => Reply::Simple { error: EIO, cookie: 6, data: vec![] },
        };
        assert_eq!(decode(&output), [expected]);
    }
}

#[test]
fn an_error_after_the_beginning_of_a_simple_reply_ends_the_connection_and_sends_nothing() {
    let mut output = Vec::new();
    let mut reply = encoder(false).read(&read(false));
    data(&mut reply, 1024, &mut output);
    let sent = output.len();
    assert_eq!(reply.fail(ErrorCode::Io, "bad", &mut output), Err(MustDisconnect));
    assert_eq!(output.len(), sent);
}

#[test]
fn an_error_after_chunks_names_the_offset_after_them() {
    let mut output = Vec::new();
    let mut reply = encoder(true).read(&read(false));
    data(&mut reply, 1024, &mut output);
    assert_eq!(reply.fail(ErrorCode::Io, "bad", &mut output), Ok(()));
    let offset = (OFFSET + 1024).to_be_bytes();
    let error = chunk(true, 0x8002, &[&[0, 0, 0, 5, 0, 3], b"bad", &offset]);
    assert_eq!(decode(&output), [data_chunk(false, OFFSET, &[7; 1024]), error]);
}

#[test]
fn an_error_after_all_data_has_no_offset() {
    let mut output = Vec::new();
    let mut reply = encoder(true).read(&read(false));
    data(&mut reply, 4096, &mut output);
    assert_eq!(reply.fail(ErrorCode::Io, "", &mut output), Ok(()));
    assert_eq!(decode(&output)[1], chunk(true, 0x8001, &[&[0, 0, 0, 5, 0, 0]]));
}

#[test]
fn an_error_in_an_unfragmented_reply_completes_the_chunk_with_zeroes() {
    let mut output = Vec::new();
    let mut reply = encoder(true).read(&read(true));
    data(&mut reply, 1024, &mut output);
    assert_eq!(reply.fail(ErrorCode::Io, "bad", &mut output), Ok(()));
    let padded = [vec![7; 1024], vec![0; 3072]].concat();
    let offset = (OFFSET + 1024).to_be_bytes();
    let error = chunk(true, 0x8002, &[&[0, 0, 0, 5, 0, 3], b"bad", &offset]);
    assert_eq!(decode(&output), [data_chunk(false, OFFSET, &padded), error]);
}

#[test]
fn a_reply_that_ends_early_is_an_error() {
    let mut output = Vec::new();
    let mut reply = encoder(true).read(&read(false));
    reply.hole(512, &mut output);
    assert_eq!(reply.finish(&mut output), Ok(()));
    let found = decode(&output);
    assert!(matches!(found[1], Reply::Chunk { is_done: true, kind: 0x8002, .. }), "{found:?}");
    let mut output = Vec::new();
    let mut reply = encoder(false).read(&read(false));
    data(&mut reply, 512, &mut output);
    assert_eq!(reply.finish(&mut output), Err(MustDisconnect));
    let mut output = Vec::new();
    assert_eq!(encoder(false).read(&read(false)).finish(&mut output), Ok(()));
    assert_eq!(decode(&output), [Reply::Simple { error: EIO, cookie: 6, data: vec![] }]);
}

#[test]
fn chunks_of_several_replies_can_be_mixed() {
    let mut output = Vec::new();
    let other = Request { cookie: Cookie(8), ..read(false) };
    let mut first = encoder(true).read(&read(false));
    let mut second = encoder(true).read(&other);
    data(&mut first, 1024, &mut output);
    assert!(first.is_divisible());
    second.hole(4096, &mut output);
    data(&mut first, 3072, &mut output);
    assert_eq!(second.finish(&mut output), Ok(()));
    assert_eq!(first.finish(&mut output), Ok(()));
    let cookies: Vec<(u64, bool)> = decode(&output)
        .iter()
        .map(|reply| match reply {
            Reply::Chunk { cookie, is_done, .. } => (*cookie, *is_done),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(cookies, [(6, false), (8, false), (6, false), (8, true), (6, true)]);
}
