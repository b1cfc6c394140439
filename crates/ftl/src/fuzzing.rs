//! Properties of the headers for any bytes, for the fuzzers of `fuzz` and for tests that replay what these found.

use crate::header::{self, Decoded, HeaderFields, HeaderKind, HeaderPlace};

const PLACE: HeaderPlace = HeaderPlace { device_uuid: 0x1234_5678, unit: 7, index: 3 };
const BLOCKS_PER_PLANE: u32 = 1000;

/// Any bytes as the page of a header, as they are and with all put right that says whose header it is. What is valid is
/// written back as the same.
pub fn header(data: &[u8]) {
    let [first, page @ ..] = data else { return };
    let kind = if first & 1 == 0 { HeaderKind::Erase } else { HeaderKind::Opening };
    let seats = u32::from(first >> 1) % 9;
    if seats == 0 {
        return;
    }
    let _ = header::decode(kind, PLACE, seats, BLOCKS_PER_PLANE, page);
    let mut page = page.to_vec();
    page.resize(header::encoded_bytes(seats).next_multiple_of(512), 0);
    header::claim(kind, PLACE, seats, &mut page);
    if let Decoded::Valid(found) = header::decode(kind, PLACE, seats, BLOCKS_PER_PLANE, &page) {
        let fields = HeaderFields {
            place: PLACE,
            generation: found.generation,
            highest_erase_count: found.highest_erase_count,
            unused_from: found.unused_from,
            opening: found.opening.as_ref().map(|(stream, tag)| (*stream, tag)),
        };
        header::encode(&fields, found.blocks.iter().copied(), &mut page);
        let again = header::decode(kind, PLACE, seats, BLOCKS_PER_PLANE, &page);
        assert_eq!(again, Decoded::Valid(found));
        let head = &page[..header::encoded_bytes(seats)];
        assert_eq!(header::decode(kind, PLACE, seats, BLOCKS_PER_PLANE, head), again);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
#[cfg(test)]
fn headers() {
    let seed = |first: u8| {
        let mut seed = vec![0; 1 + 256];
        seed[0] = first;
        // Stream, generation, blocks.
        seed[1 + 38] = 2;
        seed[1 + 40] = 77;
        seed[1 + 128] = 3;
        seed[1 + 136] = 9;
        seed
    };
    replay::replay("header", &[seed(2 << 1), seed(2 << 1 | 1)], header);
}
