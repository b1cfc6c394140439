use super::*;
use crate::format::FormatError;
use crate::format::codec::put_at;
use crate::format::patch::block::write_checksum;
use crate::format::testing::cases;
use proptest::prelude::*;

fn small_image(compression: Compression) -> PatchImage {
    let mut records = vec![put(b"", 3, b"empty key")];
    for n in 0..60u64 {
        let value = [b"some text that compresses ".to_vec(), vec![n as u8; 40]].concat();
        records.push(put(format!("key{n:03}").as_bytes(), 100 - n, &value));
        records.push(Record::delete(Bytes::from(format!("key{n:03}")), 5));
    }
    let mut config = config(compression);
    config.block_bytes = 1000;
    build(config, &records)
}

#[test]
fn no_flipped_bit_of_the_metadata_goes_unnoticed() {
    let image = small_image(Compression::None);
    for at in 0..image.metadata.len() {
        for bit in [0, 3, 7] {
            let mut bytes = image.metadata.clone();
            bytes[at] ^= 1 << bit;
            let decoded = decode_metadata(&bytes, IDENTITY);
            assert!(decoded.is_err(), "byte {at}, bit {bit}: {decoded:?}");
        }
    }
}

#[test]
fn no_flipped_bit_of_a_block_goes_unnoticed() {
    for compression in ALL {
        let image = small_image(compression);
        for number in 0..image.index.block_count() {
            let offset = image.index.block_range(number).start;
            let whole = block_bytes(&image, number);
            assert_eq!(whole[18] != 0, compression != Compression::None, "compressed");
            for at in 0..whole.len() {
                let mut bytes = whole.to_vec();
                bytes[at] ^= 1 << (at % 8);
                let decoded = decode_block(bytes.into(), IDENTITY, offset);
                assert!(decoded.is_err(), "{compression:?}, byte {at}: {decoded:?}");
            }
        }
    }
}

#[test]
fn intact_bytes_at_a_wrong_place_or_of_an_earlier_generation_fail() {
    let image = small_image(Compression::None);
    let (bytes, range) = (block_bytes(&image, 1), image.index.block_range(1));
    let stale = checksum::identity(&[1, 2, 3, 8]);
    let checksum = Err(FormatError::Checksum { what: "a block of a patch" });
    assert!(decode_block(bytes.clone(), IDENTITY, range.start).is_ok());
    assert_eq!(decode_block(bytes.clone(), stale, range.start).map(|_| ()), checksum);
    assert_eq!(decode_block(bytes, IDENTITY, range.start + 4096).map(|_| ()), checksum);
    let other = Err(FormatError::Checksum { what: "a patch header" });
    assert_eq!(decode_metadata(&image.metadata, stale).map(|_| ()), other);
    assert_eq!(metadata_len(&image.metadata, stale).map(|_| ()), other);
}

#[test]
fn truncated_bytes_are_an_error() {
    let image = small_image(Compression::Zstd);
    for len in 0..image.metadata.len() {
        assert!(decode_metadata(&image.metadata[..len], IDENTITY).is_err(), "{len} bytes");
    }
    let whole = block_bytes(&image, 0);
    for len in 0..whole.len() {
        assert!(decode_block(whole.slice(..len), IDENTITY, 0).is_err(), "{len} bytes");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(decode_block(longer.into(), IDENTITY, 0).is_err());
}

#[test]
fn a_newer_version_is_distinguished_from_damage() {
    let mut bytes = small_image(Compression::None).metadata;
    put_at(&mut bytes, 8, &4u16.to_le_bytes());
    let seed = crate::format::seed(IDENTITY, crate::format::Domain::PatchHeader, 0);
    let sum = softflash_base::checksum64(seed, &bytes[..120]);
    put_at(&mut bytes, 120, &sum.to_le_bytes());
    let newer = Err(FormatError::Version { what: "a patch", found: 4, known: 3 });
    assert_eq!(decode_metadata(&bytes, IDENTITY).map(|_| ()), newer);
    let blank = Err(FormatError::NotFound { what: "patch header" });
    assert_eq!(decode_metadata(&[0; 4096], IDENTITY).map(|_| ()), blank);
}

/// Records that a faulty program changed before the block was written: the checksum of the block
/// matches, the checksums of the records do not.
#[test]
fn a_record_that_changed_in_memory_is_not_returned() {
    let image = small_image(Compression::None);
    let mut bytes = block_bytes(&image, 0).to_vec();
    let last = bytes.len() - 1;
    let records = block(&image, 0).len();
    // The last record of the block may be a deletion, so the last byte is either key or value:
    // damage the value of the first record instead, behind its 11 bytes of numbers.
    bytes[BLOCK_HEADER_BYTES + 14] ^= 4;
    assert!(BLOCK_HEADER_BYTES + 14 < last);
    write_checksum(&mut bytes, IDENTITY, 0);
    let block = decode_block(bytes.into(), IDENTITY, 0).unwrap();
    let read: Vec<_> = block.records().collect();
    assert_eq!(read.len(), records);
    assert_eq!(read[0], Err(FormatError::Checksum { what: "a record" }));
    assert!(read[1..].iter().all(Result::is_ok));
    assert!(block.find(b"", u64::MAX).is_err());
}

/// Calls every lookup of an index; none may panic, for any metadata.
fn use_index(index: &PatchIndex) {
    for key in [&b""[..], b"key", b"key030", b"zzz", &[255; 40]] {
        let hash = checksum::hash64(key);
        let (may, tombstone) = (index.may_contain(hash), index.is_tombstone(hash));
        let block = index.lower_bound(key);
        assert!(block <= index.block_count(), "{may} {tombstone}");
        if let Some(number) = index.locate(key) {
            assert!(number < index.block_count());
            assert!(index.block_range(number).end <= index.data_len());
        }
        let _ = index.block_starts_after(block, key);
    }
    assert_eq!(index.blocks().map(|range| range.len()).sum::<usize>(), index.data_len() as usize);
    assert!(index.memory_bytes() > 0);
}

proptest! {
    #![proptest_config(cases(3_000, 41))]

    /// Damage with valid checksums, as a faulty writer would leave it: an error or a usable result.
    #[test]
    fn metadata_of_a_faulty_writer_does_not_panic(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
    ) {
        let mut bytes = small_image(Compression::None).metadata;
        let used = 1200;
        for (place, byte) in places {
            let at = if in_header { 10 + place.index(102) } else { 128 + place.index(used) };
            bytes[at] = byte;
        }
        let sum = PatchHeader::checksum_of(&bytes[HEADER_BYTES..], IDENTITY);
        put_at(&mut bytes, 112, &sum.to_le_bytes());
        let seed = crate::format::seed(IDENTITY, crate::format::Domain::PatchHeader, 0);
        let sum = softflash_base::checksum64(seed, &bytes[..120]);
        put_at(&mut bytes, 120, &sum.to_le_bytes());
        if let Ok(index) = decode_metadata(&bytes, IDENTITY) {
            use_index(&index);
        }
    }

    #[test]
    fn blocks_of_a_faulty_writer_do_not_panic(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        compression in prop::sample::select(&ALL[..]),
    ) {
        let mut bytes = block_bytes(&small_image(compression), 0).to_vec();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        write_checksum(&mut bytes, IDENTITY, 0);
        if let Ok(block) = decode_block(bytes.into(), IDENTITY, 0) {
            let originals = all_records(&small_image(compression));
            for record in block.records().flatten() {
                prop_assert!(originals.contains(&record), "a record that was never written: {record:?}");
            }
            let _ = (block.find(b"key010", 50), block.last_key().len());
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode_metadata(&bytes, IDENTITY).is_err());
        prop_assert!(decode_block(bytes.clone().into(), IDENTITY, 0).is_err());
        let mut tempting = b"SFPATCH\0\x01\0".to_vec();
        tempting.extend_from_slice(&bytes);
        prop_assert!(decode_metadata(&tempting, IDENTITY).is_err());
    }
}
