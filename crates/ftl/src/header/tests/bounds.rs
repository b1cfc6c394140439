//! The shortest page, the seed of the checksum, and the stream.

use super::*;

fn opening(stream: Stream) -> Vec<u8> {
    let opening = Some(Purpose { stream, owner: Owner::BLOCKS, tag: OwnerTag([1; 64]), epoch: 0 });
    let header = Header { opening, ..header(HeaderKind::Opening) };
    let mut page = vec![0; 512];
    encode(PLACE, &header, &mut page);
    page
}

#[test]
fn the_smallest_page_that_fits_a_header_decodes() {
    let header = header(HeaderKind::Erase);
    let mut page = vec![0; FIXED_BYTES + 4 * BLOCK_BYTES + CHECKSUM_BYTES];
    encode(PLACE, &header, &mut page);
    assert_eq!(decode(HeaderKind::Erase, PLACE, 4, 16, &page), Decoded::Valid(header));
    let short = decode(HeaderKind::Erase, PLACE, 4, 16, &page[..page.len() - 1]);
    assert_eq!(short, Decoded::Damaged("the page is too short".to_owned()));
}

#[test]
fn the_checksum_is_seeded_with_kind_device_and_place() {
    let page = encoded(HeaderKind::Erase);
    let (covered, sum) = page[..encoded_bytes(4)].split_at(encoded_bytes(4) - CHECKSUM_BYTES);
    let magic = u64::from_le_bytes(array(&page, 0));
    // Magic, the halves of the UUID, unit and index, as specified in docs/formats-ftl.md.
    let seed = identity(&[magic, 0x0fed_cba9_8765_4321, 0x1234_5678_9abc_def0, 7, 3]);
    assert_eq!(sum, checksum64(seed, covered).to_le_bytes());
}

#[test]
fn the_stream_of_an_opening_header_is_read() {
    for stream in [Stream::Log, Stream::User, Stream::Compaction] {
        assert_eq!(named_stream(&opening(stream)), Some(stream));
    }
    let mut page = opening(Stream::Log);
    page[38] = 3;
    assert_eq!(named_stream(&page), None);
    assert_eq!(named_stream(&page[..38]), None);
}

#[test]
fn a_claimed_page_decodes_at_its_place() {
    for kind in [HeaderKind::Erase, HeaderKind::Opening] {
        let mut page = vec![0; 512];
        put(&mut page, FIXED_BYTES, &PLACE.index.to_le_bytes());
        claim(kind, PLACE, 4, &mut page);
        let decoded = decode(kind, PLACE, 4, 16, &page);
        assert!(matches!(decoded, Decoded::Valid(_)), "{decoded:?}");
    }
}

#[test]
fn a_whole_header_with_a_wrong_version_or_number_of_columns_is_damaged() {
    for (at, number) in [(8, 0_u32), (12, 5)] {
        let mut page = encoded(HeaderKind::Erase);
        put(&mut page, at, &number.to_le_bytes());
        seal(HeaderKind::Erase, PLACE, 4, &mut page);
        let Decoded::Damaged(reason) = decode(HeaderKind::Erase, PLACE, 4, 16, &page) else {
            panic!("byte {at} says {number}");
        };
        assert!(reason.contains("does not match") && reason.contains("version"), "{reason}");
    }
}
