//! Helpers for the tests of the formats: seeds that are printed and can be set, and arbitrary
//! records.

use super::record::{Body, Record};
use super::reference::Reference;
use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use softflash_base::random::Rng;

/// The seed of a randomised test: `SOFTFLASH_TEST_SEED`, or `default`. Printed, so that a failure
/// can be replayed.
pub fn seed_or(default: u64) -> u64 {
    let given = std::env::var("SOFTFLASH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(default);
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    seed
}

/// A generator with that seed.
pub fn rng(default_seed: u64) -> Rng {
    Rng::seeded(seed_or(default_seed))
}

/// A proptest configuration with that seed.
pub fn cases(cases: u32, default_seed: u64) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(seed_or(default_seed)),
        failure_persistence: None,
        ..Config::default()
    }
}

/// `len` bytes that do not compress.
pub fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// A record of a whole value.
pub fn put(key: &[u8], seq: u64, value: &[u8]) -> Record {
    fragment(key, seq, value, 0, 1)
}

/// A record of a fragment.
pub fn fragment(key: &[u8], seq: u64, value: &[u8], fragment: u16, fragments: u16) -> Record {
    let body = Body::Put {
        value: Bytes::copy_from_slice(value),
        expires_at_ms: seq % 3 * 1_000,
        fragment,
        fragments,
    };
    Record::seal(Bytes::copy_from_slice(key), seq, body).unwrap()
}

/// Any record with a small key and value.
pub fn any_record() -> impl Strategy<Value = Record> {
    let body = prop_oneof![
        1 => Just(None),
        4 => (
            prop::collection::vec(any::<u8>(), 0..200),
            prop_oneof![Just(0), any::<u64>()],
            (1..=u16::MAX).prop_flat_map(|count| (0..count, Just(count))),
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(Some),
    ];
    (prop::collection::vec(any::<u8>(), 0..40), any::<u64>(), body).prop_map(|(key, seq, body)| {
        let body = match body {
            None => Body::Delete,
            Some((value, expires_at_ms, (fragment, fragments), cut, true)) => Body::Reference {
                reference: Reference::new(
                    seq,
                    fragment.into(),
                    fragments.into(),
                    value.len() as u64,
                ),
                expires_at_ms,
                fragment: if cut { fragment } else { 0 },
                fragments: if cut { fragments } else { 1 },
            },
            Some((value, expires_at_ms, (fragment, fragments), cut, false)) => Body::Put {
                value: value.into(),
                expires_at_ms,
                fragment: if cut { fragment } else { 0 },
                fragments: if cut { fragments } else { 1 },
            },
        };
        Record::seal(key.into(), seq, body).unwrap()
    })
}
