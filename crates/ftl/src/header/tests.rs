use super::*;

mod bounds;

const PLACE: HeaderPlace =
    HeaderPlace { device_uuid: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321, unit: 7, index: 3 };

fn header(kind: HeaderKind) -> Header {
    let blocks = [3, 9, 3, 12].map(|block| ColumnRecord { block, erase_count: 100 + block });
    let opening = match kind {
        HeaderKind::Erase => None,
        HeaderKind::Opening => Some(Purpose {
            stream: Stream::Compaction,
            owner: Owner::BLOCKS,
            tag: OwnerTag([0xa5; 64]),
            epoch: 0,
        }),
    };
    Header {
        generation: 77,
        highest_erase_count: 250,
        unused_from: 13,
        void_below: if kind == HeaderKind::Erase { 70 } else { 0 },
        blocks: blocks.to_vec(),
        opening,
    }
}

fn encoded(kind: HeaderKind) -> Vec<u8> {
    let mut page = vec![0xff; 4096];
    encode(PLACE, &header(kind), &mut page);
    page
}

#[test]
fn headers_read_back_as_written() {
    for kind in [HeaderKind::Erase, HeaderKind::Opening] {
        let page = encoded(kind);
        assert_eq!(decode(kind, PLACE, 4, 16, &page), Decoded::Valid(header(kind)));
        for beginning in [&page[..encoded_bytes(4)], &page[..1024], &page] {
            let decoded = decode(kind, PLACE, 4, 16, beginning);
            assert_eq!(decoded, Decoded::Valid(header(kind)));
        }
        let short = decode(kind, PLACE, 4, 16, &page[..encoded_bytes(4) - 1]);
        assert!(matches!(short, Decoded::Damaged(_)));
    }
}

/// Headers of the block layer keep the version that programs without owners read.
#[test]
fn an_owner_other_than_the_block_layer_needs_version_3() {
    let version = |page: &[u8]| u32::from_le_bytes(array(page, 8));
    assert_eq!(version(&encoded(HeaderKind::Erase)), 2);
    assert_eq!(version(&encoded(HeaderKind::Opening)), 2);
    for owner in [Owner { layer: 1, domain: 0x0203 }, Owner { layer: 0, domain: 9 }] {
        let mut header = header(HeaderKind::Opening);
        header.opening = header.opening.map(|purpose| Purpose { owner, ..purpose });
        let mut page = vec![0; 512];
        encode(PLACE, &header, &mut page);
        assert_eq!(version(&page), 3);
        assert_eq!(page[120], owner.layer);
        assert_eq!(page[122..124], owner.domain.to_le_bytes());
        assert_eq!(decode(HeaderKind::Opening, PLACE, 4, 16, &page), Decoded::Valid(header));
        // Without the version the bytes have no meaning.
        put(&mut page, 8, &2_u32.to_le_bytes());
        seal(HeaderKind::Opening, PLACE, 4, &mut page);
        let Decoded::Valid(read) = decode(HeaderKind::Opening, PLACE, 4, 16, &page) else {
            panic!("a header of version 2")
        };
        assert_eq!(read.opening.map(|purpose| purpose.owner), Some(Owner::BLOCKS));
    }
}

/// Where there is no table of sets, programs that know none read the headers.
#[test]
fn the_epoch_of_a_table_of_sets_needs_version_4() {
    for owner in [Owner::BLOCKS, Owner { layer: 1, domain: 2 }] {
        let mut header = header(HeaderKind::Opening);
        header.opening = header.opening.map(|purpose| Purpose { owner, epoch: 0x0506, ..purpose });
        let mut page = vec![0; 512];
        encode(PLACE, &header, &mut page);
        assert_eq!((page[8], &page[124..128]), (4, &[6, 5, 0, 0][..]));
        let decode = |page: &[u8]| decode(HeaderKind::Opening, PLACE, 4, 16, page);
        assert_eq!(decode(&page), Decoded::Valid(header));
        // Without the version the bytes have no meaning.
        put(&mut page, 8, &3_u32.to_le_bytes());
        seal(HeaderKind::Opening, PLACE, 4, &mut page);
        let Decoded::Valid(read) = decode(&page) else { panic!("a header of version 3") };
        let purpose = read.opening.unwrap();
        assert_eq!((purpose.owner, purpose.epoch), (owner, 0));
    }
}

#[test]
fn every_damaged_byte_is_detected() {
    for kind in [HeaderKind::Erase, HeaderKind::Opening] {
        let whole = encoded(kind);
        let mut page = whole.clone();
        for at in 0..page.len() {
            for flip in [0x01, 0x80, 0xff] {
                page[at] ^= flip;
                let decoded = decode(kind, PLACE, 4, 16, &page);
                if at < encoded_bytes(4) {
                    assert!(
                        matches!(decoded, Decoded::Damaged(_)),
                        "{kind:?} with byte {at} changed by {flip:#x} was read as {decoded:?}"
                    );
                } else {
                    // Bytes behind the checksum have no meaning.
                    assert_eq!(decoded, Decoded::Valid(header(kind)));
                }
                page[at] = whole[at];
            }
        }
    }
}

#[test]
fn a_torn_header_is_detected() {
    let whole = encoded(HeaderKind::Opening);
    for end in (8..encoded_bytes(4)).step_by(8) {
        let mut page = whole.clone();
        page[end..].fill(0);
        assert!(matches!(decode(HeaderKind::Opening, PLACE, 4, 16, &page), Decoded::Damaged(_)));
    }
}

#[test]
fn a_header_in_another_place_is_foreign() {
    let page = encoded(HeaderKind::Erase);
    let other_unit = HeaderPlace { unit: 8, ..PLACE };
    let found = decode(HeaderKind::Erase, other_unit, 4, 16, &page);
    assert_eq!(found, Decoded::OfUnit(PLACE.unit));
    for place in [HeaderPlace { index: 4, ..PLACE }, HeaderPlace { device_uuid: 1, ..PLACE }] {
        assert_eq!(decode(HeaderKind::Erase, place, 4, 16, &page), Decoded::Foreign);
    }
}

#[test]
fn an_erase_header_does_not_decode_as_an_opening_header() {
    let page = encoded(HeaderKind::Erase);
    assert!(matches!(decode(HeaderKind::Opening, PLACE, 4, 16, &page), Decoded::Damaged(_)));
}

#[test]
fn bytes_without_magic_and_uuid_are_foreign() {
    for byte in [0x55, 0xff] {
        assert_eq!(decode(HeaderKind::Opening, PLACE, 4, 16, &[byte; 4096]), Decoded::Foreign);
    }
}

#[test]
fn zeros_are_blank() {
    assert_eq!(decode(HeaderKind::Erase, PLACE, 4, 16, &[0; 4096]), Decoded::Blank);
}

#[test]
fn a_newer_format_is_not_reported_as_damage() {
    let mut page = encoded(HeaderKind::Erase);
    put(&mut page, 8, &(FORMAT_VERSION + 1).to_le_bytes());
    seal(HeaderKind::Erase, PLACE, 4, &mut page);
    let decoded = decode(HeaderKind::Erase, PLACE, 4, 16, &page);
    assert_eq!(decoded, Decoded::Newer(FORMAT_VERSION + 1));
}

/// Version 1 has its checksum at the end of the page.
#[test]
fn version_1_is_decoded_from_its_whole_page() {
    let mut page = encoded(HeaderKind::Opening);
    page[8] = 1;
    let (head, end) = (encoded_bytes(4), page.len() - 8);
    page[head - 8..head].fill(0);
    let checksum = checksum64(seed(HeaderKind::Opening, PLACE), &page[..end]);
    page[end..].copy_from_slice(&checksum.to_le_bytes());
    let expected = Decoded::Valid(header(HeaderKind::Opening));
    assert_eq!(decode(HeaderKind::Opening, PLACE, 4, 16, &page), expected);
    let of_head = decode(HeaderKind::Opening, PLACE, 4, 16, &page[..head]);
    assert!(matches!(of_head, Decoded::Damaged(_)));
    page[8] = 0;
    let checksum = checksum64(seed(HeaderKind::Opening, PLACE), &page[..end]);
    page[end..].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(decode(HeaderKind::Opening, PLACE, 4, 16, &page), Decoded::Damaged(_)));
}

#[test]
fn block_numbers_out_of_range_are_refused() {
    let page = encoded(HeaderKind::Erase);
    assert!(matches!(decode(HeaderKind::Erase, PLACE, 4, 12, &page), Decoded::Damaged(_)));
    assert!(matches!(decode(HeaderKind::Erase, PLACE, 3, 16, &page), Decoded::Damaged(_)));
}
