//! The result does not depend on how the network splits the bytes.

use crate::client::*;
use crate::disk::Disk;
use softflash_base::random::Rng;
use std::hash::{BuildHasher, RandomState};

const ROUNDS: usize = 300;

/// A generator with the seed of `SOFTFLASH_TEST_SEED`, or a new one.
fn rng() -> Rng {
    let given = std::env::var("SOFTFLASH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one("splitting"));
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    Rng::seeded(seed)
}

fn below(rng: &mut Rng, n: usize) -> usize {
    usize::try_from(rng.below(u64::try_from(n).unwrap())).unwrap()
}

/// Everything that a client sends in a connection: options, then requests, valid or not.
fn conversation(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = (FIXED | NO_ZEROES).to_be_bytes().to_vec();
    for _ in 0..rng.below(6) {
        bytes.extend(match rng.below(7) {
            0 => option(LIST, &[]),
            1 => option(STRUCTURED_REPLY, &[]),
            2 => option(SET_META_CONTEXT, &context_data("vol", &["base:allocation"])),
            3 => option(INFO, &info_data("none", &[1, 2, 3])),
            4 => option(77, &vec![1; below(rng, 20_000)]),
            5 => option(LIST_META_CONTEXT, &context_data("vol", &[])),
            _ => option(INFO, &info_data("vol", &[3, 1])),
        });
    }
    bytes.extend(option(GO, &info_data("vol", &[3])));
    for cookie in 0..1 + rng.below(20) {
        let kind = u16::try_from(rng.below(9)).unwrap();
        let kind = if kind == DISC { WRITE } else { kind };
        let flags = if rng.chance(0.2) { 1 << rng.below(16) } else { 0 };
        let offset = rng.below(2200) * 512;
        let length = u32::try_from(rng.below(40)).unwrap() * 512;
        let length = if rng.chance(0.1) { length + 1 } else { length };
        bytes.extend(request(kind, flags, cookie, offset, length));
        if kind == WRITE {
            let payload =
                (0..length).map(|at| u8::try_from((u64::from(at) + cookie) % 256).unwrap());
            bytes.extend(payload);
        }
    }
    if rng.chance(0.3) {
        bytes.extend(request(DISC, 0, 0, 0, 0));
        bytes.extend(b"ignored");
    } else if rng.chance(0.3) {
        let at = below(rng, bytes.len());
        bytes[at] ^= 1 << rng.below(8);
    }
    bytes
}

#[test]
fn a_connection_does_the_same_however_its_bytes_are_split() {
    let mut rng = rng();
    let mut requests = 0;
    for _ in 0..ROUNDS {
        let bytes = conversation(&mut rng);
        let mut whole = Disk::new();
        let expected = whole.feed(&bytes);
        let mut split = Disk::new();
        let (mut rest, mut output) = (&bytes[..], Vec::new());
        let longest = [1, 3, 30, 700, 20_000][below(&mut rng, 5)];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + below(&mut rng, longest)));
            output.extend(split.feed(piece));
            rest = after;
        }
        assert_eq!(output, expected, "{} bytes in pieces up to {longest}", bytes.len());
        assert_eq!(split.requests, whole.requests);
        assert_eq!(split.bytes, whole.bytes);
        assert_eq!((split.is_closed, split.violation), (whole.is_closed, whole.violation));
        requests += whole.requests.len();
    }
    assert!(requests > ROUNDS, "only {requests} valid requests");
}
