use super::*;
use crate::format::testing::{any_record, cases, put};
use crate::value::{MAX_KEY_BYTES, Value};
use proptest::prelude::*;

fn encode(record: &Record, base_seq: u64) -> Bytes {
    let mut out = Vec::new();
    record.fields().encode(record.checksum(), base_seq, &mut out);
    assert_eq!(out.len(), record.fields().encoded_len(base_seq));
    assert!(out.len() >= MIN_ENCODED_BYTES);
    out.into()
}

proptest! {
    #![proptest_config(cases(400, 11))]

    #[test]
    fn records_are_read_back(record in any_record(), base in any::<u64>(), junk in 0usize..9) {
        let base_seq = base.min(record.seq);
        let mut bytes = vec![7; junk];
        bytes.extend_from_slice(&encode(&record, base_seq));
        let end = bytes.len();
        bytes.extend_from_slice(&[9, 9]);
        let bytes = Bytes::from(bytes);
        let parsed = Parsed::at(&bytes, junk, base_seq).unwrap();
        prop_assert_eq!(parsed.end(), end);
        prop_assert_eq!(parsed.record(&bytes).unwrap(), record);
    }

    #[test]
    fn any_bytes_are_refused_or_are_a_record(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        at in 0usize..90,
    ) {
        if let Ok(parsed) = Parsed::at(&bytes, at, 0) {
            prop_assert!(parsed.record(&Bytes::from(bytes)).is_err(), "no checksum was computed");
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(record in any_record()) {
        let whole = encode(&record, 0);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << bit;
                let bytes = Bytes::from(bytes);
                let read = Parsed::at(&bytes, 0, 0).and_then(|parsed| parsed.record(&bytes));
                prop_assert!(read.is_err(), "byte {at}, bit {bit}: {read:?}");
            }
        }
    }
}

#[test]
fn limits_are_checked_when_a_record_is_sealed() {
    let body = |len: usize, fragment, fragments| Body::Put {
        value: vec![1; len].into(),
        expires_at_ms: 0,
        fragment,
        fragments,
    };
    let seal = |key: usize, body| Record::seal(vec![2; key].into(), 1, body);
    assert!(seal(MAX_KEY_BYTES, body(MAX_FRAGMENT_BYTES, 0, 1)).is_ok());
    assert!(seal(0, body(0, 0, 1)).is_ok());
    assert!(matches!(
        seal(MAX_KEY_BYTES + 1, body(0, 0, 1)),
        Err(FormatError::TooLarge { what: "a key", .. })
    ));
    assert!(matches!(
        seal(1, body(MAX_FRAGMENT_BYTES + 1, 0, 1)),
        Err(FormatError::TooLarge { what: "a fragment", .. })
    ));
    assert!(seal(1, body(1, 1, 1)).is_err());
    assert!(seal(1, body(1, 0, 0)).is_err());
}

#[test]
fn the_newest_version_of_a_key_comes_first() {
    let (a, b) = (put(b"a", 5, b"x"), put(b"a", 4, b"x"));
    assert_eq!(a.order(&b), Ordering::Less);
    assert_eq!(put(b"a", 1, b"").order(&put(b"aa", 9, b"")), Ordering::Less);
    assert_eq!(a.order(&a), Ordering::Equal);
}

#[test]
fn a_changed_record_fails_verification() {
    let mut record = put(b"key", 5, b"value");
    assert_eq!(record.verify(), Ok(()));
    record.seq = 6;
    assert_eq!(record.verify(), Err(FormatError::Checksum { what: "a record" }));
}

#[test]
fn values_are_cut_into_fragments_and_joined_again() {
    let mib = MAX_FRAGMENT_BYTES;
    for (pieces, fragments) in [
        (vec![], 1),
        (vec![0], 1),
        (vec![0, 0], 1),
        (vec![mib], 1),
        (vec![mib + 1], 2),
        (vec![3 * mib], 3),
        (vec![mib, mib, 5], 3),
        (vec![10, 20], 2),
        (vec![1; 9], 1),
    ] {
        let bytes = pieces.iter().enumerate().map(|(i, len)| Bytes::from(vec![i as u8; *len]));
        let entry = Entry { value: Value::from_fragments(bytes), expires_at_ms: 0 };
        let cut = fragments_of(&entry, mib).unwrap();
        assert_eq!(cut.len(), fragments, "{pieces:?}");
        assert!(cut.iter().all(|piece| piece.len() <= mib));
        assert_eq!(Value::from_fragments(cut).to_bytes(), entry.value.to_bytes());
    }
    let long = Entry::new(Bytes::from(vec![0; MAX_VALUE_BYTES + 1]));
    assert!(matches!(fragments_of(&long, mib), Err(FormatError::TooLarge { what: "a value", .. })));
}

#[test]
fn the_writer_chooses_the_longest_fragment() {
    let cut = |pieces: &[usize], longest| {
        let pieces = pieces.iter().map(|len| Bytes::from(vec![7; *len]));
        let entry = Entry { value: Value::from_fragments(pieces), expires_at_ms: 0 };
        let fragments = fragments_of(&entry, longest).unwrap();
        assert_eq!(Value::from_fragments(fragments.clone()).to_bytes(), entry.value.to_bytes());
        fragments.iter().map(Bytes::len).collect::<Vec<_>>()
    };
    assert_eq!(cut(&[1000], 1000), [1000]);
    assert_eq!(cut(&[1001], 1000), [1000, 1]);
    assert_eq!(cut(&[1500, 400], 1000), [1000, 500, 400]);
    assert_eq!(cut(&[2, 2, 2, 2, 2], 4), [2, 2, 2, 2, 2]);
    assert_eq!(
        cut(&[1, 1, 1, 1, 1], 4),
        [4, 1],
        "joined: there are more than twice as many as needed"
    );
    let mib = MAX_FRAGMENT_BYTES;
    assert_eq!(cut(&[mib + 1], usize::MAX), [mib, 1]);
    // The number of fragments fits 16 bits for any input pieces.
    let most = usize::from(u16::MAX);
    for pieces in [vec![1 << 20], vec![300; 3500], vec![50; 20_000]] {
        let len: usize = pieces.iter().sum();
        let fragments = cut(&pieces, 1).len();
        assert!(fragments <= most && fragments >= most / 6, "{fragments} of {len} bytes");
    }
}
