//! The request parser: the same requests however the bytes are split, and memory only for admitted
//! bytes.

use crate::support::encode;
use bytes::BufMut;
use proptest::collection::vec;
use proptest::prelude::*;
use softflash_protocol::{Parsed, ProtocolError, RequestParser};

type Words = Vec<Vec<u8>>;

/// All results of the parser for input in pieces, and the error that ended it.
fn parse(pieces: &[&[u8]], authenticated: bool) -> (Vec<Words>, Option<ProtocolError>) {
    let mut parser = RequestParser::new();
    let mut requests = Vec::new();
    for piece in pieces {
        parser.feed(piece);
        loop {
            match parser.next(authenticated) {
                Ok(Parsed::Request(request)) => {
                    requests.push(request.args.iter().map(|word| word.to_vec()).collect());
                }
                Ok(Parsed::Need { bytes }) => {
                    assert!(bytes > 0);
                    parser.admit();
                }
                Ok(Parsed::Incomplete) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

/// The input, split at places given as fractions of its length.
fn cut<'a>(input: &'a [u8], cuts: &[f64]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| (cut * input.len() as f64) as usize).collect();
    places.extend([0, input.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..20),
        2 => vec(any::<u8>(), 0..2000),
        1 => (60_000usize..70_000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        1 => (130_000usize..200_000).prop_map(|length| (0..length).map(|n| n as u8).collect()),
    ]
}

fn requests() -> impl Strategy<Value = Vec<Words>> {
    vec(vec(word(), 1..6), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_the_same_however_they_are_cut(
        requests in requests(),
        cuts in vec(0.0..1.0f64, 0..20),
    ) {
        let input: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
        prop_assert_eq!(parse(&[&input], true), (requests.clone(), None));
        prop_assert_eq!(parse(&cut(&input, &cuts), true), (requests, None));
    }

    #[test]
    fn a_socket_may_read_one_byte_at_a_time(requests in vec(vec(vec(any::<u8>(), 0..10), 1..4), 1..4)) {
        let input: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        prop_assert_eq!(parse(&bytes, true), (requests, None));
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut(
        lines in vec("[a-z\"' \\\\x0-9]{0,40}\r?\n", 1..5),
        cuts in vec(0.0..1.0f64, 0..10),
    ) {
        let input = lines.concat().into_bytes();
        prop_assert_eq!(parse(&[&input], true), parse(&cut(&input, &cuts), true));
    }

    #[test]
    fn no_input_makes_the_parser_panic(
        input in prop_oneof![
            vec(any::<u8>(), 0..200),
            vec(prop::sample::select(b"*$:+-0123456789\r\n\"' x".to_vec()), 0..200),
        ],
        cuts in vec(0.0..1.0f64, 0..10),
        authenticated in any::<bool>(),
    ) {
        prop_assert_eq!(
            parse(&[&input], authenticated),
            parse(&cut(&input, &cuts), authenticated)
        );
    }

    #[test]
    fn damaged_requests_make_no_panic(
        requests in vec(vec(vec(any::<u8>(), 0..20), 1..5), 1..4),
        place in 0.0..1.0f64,
        byte in any::<u8>(),
        cuts in vec(0.0..1.0f64, 0..10),
    ) {
        let mut input: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
        let place = (place * input.len() as f64) as usize;
        input[place] = byte;
        prop_assert_eq!(parse(&[&input], true), parse(&cut(&input, &cuts), true));
    }
}

#[test]
fn a_large_argument_waits_until_it_is_admitted_and_lands_in_its_own_buffer() {
    let length = 10 << 20;
    let mut parser = RequestParser::new();
    parser.feed(format!("*2\r\n$4\r\nECHO\r\n${length}\r\nxyz").as_bytes());
    let Ok(Parsed::Need { bytes }) = parser.next(true) else { panic!("it is announced") };
    assert!(bytes >= length - (64 << 10), "all but the free allowance: {bytes}");
    assert_eq!(parser.next(true), Ok(Parsed::Need { bytes }), "asking again changes nothing");
    assert_eq!(parser.admitted_bytes(), 0);
    parser.admit();
    assert_eq!(parser.admitted_bytes(), bytes);
    assert_eq!(parser.next(true), Ok(Parsed::Incomplete));

    // The socket now reads directly into the argument, up to its last byte.
    let mut rest = length as usize + 2 - 3;
    let first = parser.read_target().chunk_mut().as_mut_ptr();
    while rest > 0 {
        let mut target = parser.read_target();
        assert_eq!(target.remaining_mut(), rest);
        let step = rest.min(1 << 20);
        target.put_bytes(b'z', step);
        rest -= step;
    }
    parser.feed(b"PING\r\n");
    let Ok(Parsed::Request(request)) = parser.next(true) else { panic!("it is whole") };
    let argument = &request.args[1];
    assert_eq!(argument.len(), length as usize);
    assert!(argument.starts_with(b"xyzz"));
    assert_eq!(argument[3..].as_ptr(), first.cast_const(), "it was not copied");
    assert_eq!(request.admitted_bytes, bytes);
    assert_eq!(parser.admitted_bytes(), 0);
    let Ok(Parsed::Request(ping)) = parser.next(true) else { panic!("what follows is not lost") };
    assert_eq!(&ping.args[0][..], b"PING");
}

#[test]
fn many_small_arguments_must_be_admitted_too() {
    let words: Words = (0..20_000).map(|_| b"0123456789".to_vec()).collect();
    let input = encode(&words);
    let mut parser = RequestParser::new();
    let (mut admitted, mut fed) = (0, 0);
    let request = loop {
        match parser.next(true).unwrap() {
            Parsed::Request(request) => break request,
            Parsed::Need { bytes } => {
                admitted += bytes;
                parser.admit();
            }
            Parsed::Incomplete => {
                let end = (fed + 1000).min(input.len());
                parser.feed(&input[fed..end]);
                fed = end;
            }
        }
    };
    assert_eq!(request.args.len(), 20_000);
    assert_eq!(request.admitted_bytes, admitted);
    assert!(
        admitted >= 20_000 * 40 - (64 << 10),
        "words and their headers are counted: {admitted}"
    );
}

#[test]
fn little_is_taken_from_clients_that_have_not_authenticated() {
    let many = encode(&["x"; 11]);
    assert_eq!(parse(&[&many], false).1, Some(ProtocolError::UnauthenticatedMultibulkLength));
    assert_eq!(parse(&[&many], true).0.len(), 1);
    let long = encode(&["AUTH".to_owned(), "x".repeat(16_385)]);
    assert_eq!(parse(&[&long], false).1, Some(ProtocolError::UnauthenticatedBulkLength));
    let together = encode(&["AUTH".to_owned(), "x".repeat(8_191), "x".repeat(8_190)]);
    assert_eq!(parse(&[&together], false).1, Some(ProtocolError::UnauthenticatedBulkLength));
    assert_eq!(parse(&[&together], true).0.len(), 1);
    let allowed = encode(&["AUTH".to_owned(), "x".repeat(16_380)]);
    assert_eq!(parse(&[&allowed], false).0.len(), 1);
}

#[test]
fn there_are_limits_to_everything() {
    assert_eq!(parse(&[b"*1048577\r\n"], true).1, Some(ProtocolError::InvalidMultibulkLength));
    assert_eq!(parse(&[b"*1048576\r\n"], true).1, None);
    assert_eq!(parse(&[b"*1\r\n$4294967296\r\n"], true).1, Some(ProtocolError::InvalidBulkLength));
    assert_eq!(parse(&[b"*1\r\n$4294967295\r\n"], true).1, None);
    let line = vec![b'x'; (64 << 10) + 1];
    assert_eq!(parse(&[&line], true).1, Some(ProtocolError::InlineTooLong));
    assert_eq!(parse(&[&line[1..]], true).1, None);
}

#[test]
fn a_word_that_is_too_long_is_discarded_and_the_requests_around_it_run() {
    let input = [
        encode(&["GET", "a"]),
        encode(&["SET".to_owned(), "k".to_owned(), "x".repeat(300_001), "EX".to_owned()]),
        encode(&["x".repeat(400_000)]),
        encode(&["SET".to_owned(), "k".to_owned(), "x".repeat(300_000)]),
    ]
    .concat();
    for piece in [1, 7, 1000, 65_536, input.len()] {
        let mut parser = RequestParser::new().with_max_argument_bytes(300_000);
        let mut requests = Vec::new();
        for piece in input.chunks(piece) {
            parser.feed(piece);
            loop {
                match parser.next(true) {
                    Ok(Parsed::Request(request)) => requests.push(request),
                    Ok(Parsed::Need { .. }) => parser.admit(),
                    Ok(Parsed::Incomplete) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(parser.buffered_bytes() <= 300_002);
        }
        let refused: Vec<Option<&str>> =
            requests.iter().map(|request| request.refused.as_deref()).collect();
        assert_eq!(requests.len(), 4);
        assert!(refused[0].is_none() && refused[3].is_none());
        assert!(refused[1].unwrap().contains("300001 bytes, at most 300000"), "{refused:?}");
        assert!(refused[2].unwrap().contains("proto-max-bulk-len"), "{refused:?}");
        assert_eq!(requests[1].args[..], [&b"SET"[..]], "its name stays");
        assert!(requests[2].args.is_empty());
        assert_eq!(requests[1].admitted_bytes, 0, "nothing is held for it");
        assert_eq!(requests[3].args[2].len(), 300_000);
    }
}

#[test]
fn a_request_without_memory_is_discarded_as_well() {
    let input =
        [encode(&["SET".to_owned(), "k".to_owned(), "x".repeat(200_000)]), encode(&["PING"])];
    let mut parser = RequestParser::new();
    let (first, rest) = input[0].split_at(1000);
    parser.feed(first);
    assert!(matches!(parser.next(true), Ok(Parsed::Need { .. })));
    parser.refuse("ERR no".to_owned());
    assert_eq!(parser.next(true), Ok(Parsed::Incomplete));
    parser.feed(rest);
    let Ok(Parsed::Request(request)) = parser.next(true) else { panic!("it ends") };
    assert_eq!(request.refused.as_deref(), Some("ERR no"));
    parser.feed(&input[1]);
    let Ok(Parsed::Request(request)) = parser.next(true) else { panic!("the next one") };
    assert!(request.refused.is_none() && request.args[..] == [&b"PING"[..]]);
}

/// Receives whole pipelines as a socket does: each read takes what has come, as far as it has room.
/// Returns the number of reads for each pipeline.
fn reads_for(parser: &mut RequestParser, pipeline: &[u8], count: usize) -> Vec<usize> {
    let mut reads = Vec::new();
    for _ in 0..count {
        let (mut rest, mut number) = (pipeline, 0);
        while !rest.is_empty() {
            let mut target = parser.read_target();
            let length = rest.len().min(target.remaining_mut());
            target.put_slice(&rest[..length]);
            rest = &rest[length..];
            number += 1;
            while let Ok(Parsed::Request(_)) = parser.next(true) {}
        }
        reads.push(number);
        if pipeline.len() < 1000 {
            parser.free_buffer();
        }
    }
    reads
}

#[test]
fn reads_become_as_large_as_the_pipelines_of_a_client_and_small_again() {
    let request = |length: usize| {
        let mut bytes = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${length}\r\n").into_bytes();
        bytes.resize(bytes.len() + length, b'v');
        bytes.extend_from_slice(b"\r\n");
        bytes
    };
    let mut parser = RequestParser::new();
    let pipeline = request(1024).repeat(16);
    assert!(pipeline.len() > 16 << 10, "a little more than the first read");
    let reads = reads_for(&mut parser, &pipeline, 10);
    assert_eq!(reads, [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    reads_for(&mut parser, &request(10), 100);
    assert_eq!(reads_for(&mut parser, &pipeline, 1), [2], "small reads shrink it again");
}
