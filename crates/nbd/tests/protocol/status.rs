//! Replies with the block status.

use crate::client::*;
use softflash_nbd::{
    BlockSizes, ByteRange, Command, Cookie, ErrorCode, Export, Extent, Replies, Request,
};

fn encoder() -> Replies {
    session(export("vol"), true).replies()
}

fn asks(bytes: u32, one_extent: bool) -> Request {
    let range = ByteRange { offset: 4096, bytes };
    Request { cookie: Cookie(3), fua: false, command: Command::BlockStatus { range, one_extent } }
}

fn extent(bytes: u64, is_hole: bool, is_zero: bool) -> Extent {
    Extent { bytes, is_hole, is_zero }
}

/// Lengths and flags in the one chunk of the reply, whose context is the selected one.
fn descriptors(encoder: Replies, request: &Request, extents: &[Extent]) -> Vec<(u32, u32)> {
    let mut output = Vec::new();
    encoder.block_status(request, extents.iter().copied(), &mut output);
    let found = replies(&output, |_| 0);
    let [Reply::Chunk { is_done: true, kind: 5, cookie: 3, payload }] = &found[..] else {
        panic!("{found:?}")
    };
    let numbers: Vec<u32> =
        payload.chunks(4).map(|number| u32::from_be_bytes(number.try_into().unwrap())).collect();
    assert_eq!((numbers[0], numbers.len() % 2), (1, 1));
    numbers[1..].chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn a_reply_is_one_chunk_with_the_selected_context_and_the_extents_from_the_offset_on() {
    let extents = [
        extent(512, false, false),
        extent(512, true, true),
        extent(512, false, true),
        extent(512, true, false),
    ];
    let found = descriptors(encoder(), &asks(2048, false), &extents);
    assert_eq!(found, [(512, 0), (512, 3), (512, 2), (512, 1)]);
}

#[test]
fn one_extent_is_not_longer_than_the_request() {
    let extents = [extent(1 << 18, true, true), extent(512, false, false)];
    assert_eq!(descriptors(encoder(), &asks(1024, true), &extents), [(1024, 3)]);
    let extents = [extent(512, true, true), extent(512, false, false)];
    assert_eq!(descriptors(encoder(), &asks(1024, true), &extents), [(512, 3)]);
}

#[test]
fn only_the_last_of_several_extents_reaches_beyond_the_request() {
    let extents =
        [extent(512, false, false), extent(1 << 18, true, true), extent(512, false, true)];
    let found = descriptors(encoder(), &asks(1024, false), &extents);
    assert_eq!(found, [(512, 0), (1 << 18, 3)]);
    let found = descriptors(encoder(), &asks(512, false), &extents);
    assert_eq!(found, [(512, 0)]);
}

#[test]
fn nothing_reaches_beyond_the_export() {
    let found = descriptors(encoder(), &asks(512, false), &[extent(u64::MAX, true, true)]);
    assert_eq!(found, [((1 << 20) - 4096, 3)]);
}

#[test]
fn extents_without_length_are_left_out_and_fewer_than_requested_are_enough() {
    let extents = [extent(0, true, true), extent(512, false, false), extent(0, false, true)];
    assert_eq!(descriptors(encoder(), &asks(4096, false), &extents), [(512, 0)]);
}

#[test]
fn a_chunk_is_not_longer_than_the_maximum_payload() {
    let block_sizes = BlockSizes::new(1, 512, 1 << 16).unwrap();
    let encoder = session(Export { block_sizes, ..export("vol") }, true).replies();
    let extents: Vec<Extent> = (0..100_000).map(|at| extent(1, at % 2 == 0, true)).collect();
    assert_eq!(descriptors(encoder, &asks(500_000, false), &extents).len(), (1 << 16) / 8);
}

#[test]
fn an_unknown_status_and_an_error_are_error_chunks() {
    let (mut none, mut failed) = (Vec::new(), Vec::new());
    encoder().block_status(&asks(512, false), [], &mut none);
    encoder().fail(&asks(512, false), ErrorCode::Io, "bad", &mut failed);
    for output in [none, failed] {
        let found = replies(&output, |_| 0);
        let [Reply::Chunk { is_done: true, kind: 0x8001, cookie: 3, payload }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(payload[..4], [0, 0, 0, 5]);
    }
}

#[test]
fn the_status_of_written_blocks_is_told_end_to_end() {
    let mut disk = crate::disk::Disk::with_session(session(export("vol"), true));
    let write = [request(WRITE, 0, 1, 1024, 512), vec![1; 512]].concat();
    let output = disk.feed(&[write, request(BLOCK_STATUS, 0, 2, 0, 4096)].concat());
    let found = replies(&output, |_| 0);
    let Reply::Chunk { is_done: true, kind: 5, payload, .. } = &found[1] else {
        panic!("{found:?}")
    };
    let expected = [1, 1024, 2, 512, 0, 2560, 2].map(u32::to_be_bytes).concat();
    assert_eq!(*payload, expected);
}
