//! Properties of header pages with arbitrary bytes, for the fuzzers of `fuzz` and for the tests
//! that replay their findings.

use crate::header::{self, Decoded, HeaderKind, HeaderPlace};

const PLACE: HeaderPlace = HeaderPlace { device_uuid: 0x1234_5678, unit: 7, index: 3 };
const BLOCKS_PER_PLANE: u32 = 1000;

/// Decodes arbitrary bytes as a header page: once as they are, and once with magic, place and
/// checksum corrected. A valid header is encoded again and decodes to the same header.
pub fn header(data: &[u8]) {
    let [first, page @ ..] = data else { return };
    let kind = if first & 1 == 0 { HeaderKind::Erase } else { HeaderKind::Opening };
    let columns = u32::from(first >> 1) % 9;
    if columns == 0 {
        return;
    }
    let _ = header::decode(kind, PLACE, columns, BLOCKS_PER_PLANE, page);
    let mut page = page.to_vec();
    page.resize(header::encoded_bytes(columns).next_multiple_of(512), 0);
    header::claim(kind, PLACE, columns, &mut page);
    if let Decoded::Valid(found) = header::decode(kind, PLACE, columns, BLOCKS_PER_PLANE, &page) {
        header::encode(PLACE, &found, &mut page);
        let again = header::decode(kind, PLACE, columns, BLOCKS_PER_PLANE, &page);
        assert_eq!(again, Decoded::Valid(found));
        let head = &page[..header::encoded_bytes(columns)];
        assert_eq!(header::decode(kind, PLACE, columns, BLOCKS_PER_PLANE, head), again);
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
