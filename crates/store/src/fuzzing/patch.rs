//! Patches: metadata and blocks with corrected checksums, so that the code behind the verification
//! runs.

use crate::format::codec::put_at;
use crate::format::patch::{self, PatchHeader, PatchIndex};
use crate::format::{Domain, seed};
use bytes::Bytes;
use softflash_base::checksum::{checksum64, hash64};

const IDENTITY: u64 = 77;
/// Keys to look up in each decoded input.
const PROBES: [&[u8]; 4] = [b"", b"key", b"key-0017", b"\xff\xff"];

/// Any bytes as the start of a patch, unchanged and with corrected checksums. Every lookup in a
/// decoded index succeeds, and each of its blocks decodes or is refused.
pub fn patch(data: &[u8]) {
    let _ = patch::decode_metadata(data, IDENTITY);
    let mut image = data.to_vec();
    seal(&mut image);
    let Ok(index) = patch::decode_metadata(&image, IDENTITY) else { return };
    assert!(index.memory_bytes() <= 64 * 1024 + 16 * image.len(), "{}", index.memory_bytes());
    let header = index.header();
    assert_eq!(PatchHeader::decode(&header.encode(IDENTITY), IDENTITY).as_ref(), Ok(header));
    look_up(&index);
    let data = image.get(index.data_offset() as usize..).unwrap_or_default();
    for range in index.blocks().take(64) {
        if let Some(block) = data.get(range.start as usize..range.end as usize) {
            read_block(block, range.start);
        }
    }
}

/// Writes magic, version, zeros and checksums to their places in `docs/formats.md`.
fn seal(image: &mut [u8]) {
    if image.len() < patch::HEADER_BYTES {
        return;
    }
    put_at(image, 0, b"SFPATCH\0");
    put_at(image, 8, &patch::VERSION.to_le_bytes());
    put_at(image, 15, &[0]);
    put_at(image, 88, &[0; 24]);
    let metadata_len = u32::from_le_bytes([image[56], image[57], image[58], image[59]]) as usize;
    let rest = image.get(patch::HEADER_BYTES..metadata_len).unwrap_or_default();
    let metadata =
        checksum64(seed(IDENTITY, Domain::PatchMetadata, patch::HEADER_BYTES as u64), rest);
    put_at(image, 112, &metadata.to_le_bytes());
    let header =
        checksum64(seed(IDENTITY, Domain::PatchHeader, 0), &image[..patch::HEADER_BYTES - 8]);
    put_at(image, patch::HEADER_BYTES - 8, &header.to_le_bytes());
}

/// Every lookup in an index has a result inside the patch.
fn look_up(index: &PatchIndex) {
    let blocks = index.block_count();
    for key in [index.first_key(), index.last_key()].into_iter().chain(PROBES) {
        index.may_contain(hash64(key));
        index.is_tombstone(hash64(key));
        assert!(index.locate(key).is_none_or(|block| block < blocks), "{index:?}");
        assert!(index.lower_bound(key) <= blocks, "{index:?}");
        index.block_starts_after(blocks - 1, key);
    }
    for number in [0, blocks - 1, blocks] {
        let (range, (pages, within)) = (index.block_range(number), index.block_pages(number));
        assert!(range.start <= range.end && range.end <= index.data_len(), "{index:?}");
        assert!(pages.start <= pages.end && within < index.header().page_bytes as usize);
        index.is_continued(number);
    }
}

/// Any bytes as a block of a patch, unchanged and with a corrected checksum.
pub fn patch_block(data: &[u8]) {
    let _ = patch::block_len(data);
    let _ = patch::decode_block(Bytes::copy_from_slice(data), IDENTITY, 0);
    read_block(data, 0);
}

fn read_block(data: &[u8], offset: u32) {
    if data.len() < patch::BLOCK_HEADER_BYTES {
        return;
    }
    let mut bytes = data.to_vec();
    let sum = checksum64(seed(IDENTITY, Domain::PatchBlock, offset.into()), &bytes[8..]);
    put_at(&mut bytes, 0, &sum.to_le_bytes());
    assert!(patch::block_len(&bytes).is_none_or(|len| len <= bytes.len()));
    let Ok(block) = patch::decode_block(Bytes::from(bytes), IDENTITY, offset) else { return };
    let records: Vec<_> = block.records().flatten().collect();
    assert!(records.len() <= block.len());
    assert!(records.is_sorted_by(|a, b| a.order(b).is_lt()));
    for record in &records {
        assert!(matches!(block.find(&record.key, u64::MAX), Ok(Some(_)) | Err(_)));
    }
    for key in PROBES.into_iter().chain([block.last_key()]) {
        let _ = block.find(key, 9);
    }
}

#[cfg(test)]
fn images(records: usize) -> Vec<patch::PatchImage> {
    use crate::format::patch::{Added, BuilderConfig, PatchBuilder};
    use crate::format::record::Record;
    use crate::format::testing;
    use crate::layout::Compression;
    use softflash_base::SliceId;
    let built = |compression| {
        let config =
            BuilderConfig { block_bytes: 256, ..BuilderConfig::new(32 << 10, 512, compression) };
        let mut builder = PatchBuilder::new(config, SliceId(1));
        for number in 0..records {
            let key = format!("key-{number:04}");
            let value = format!("value value value {number}");
            let record = match number % 5 {
                0 => Record::delete(key.into(), 3),
                1 => testing::fragment(key.as_bytes(), 4, value.as_bytes(), 0, 2),
                _ => testing::put(key.as_bytes(), number as u64, value.as_bytes()),
            };
            assert_eq!(builder.add(&record), Added::Added);
        }
        builder.finish(9, IDENTITY)
    };
    [Compression::None, Compression::Lz4, Compression::Zstd].map(built).into()
}

#[cfg(test)]
pub(super) fn patch_seeds() -> Vec<Vec<u8>> {
    let whole = |image: patch::PatchImage| [image.metadata, image.data].concat();
    images(40).into_iter().map(whole).collect()
}

#[cfg(test)]
pub(super) fn block_seeds() -> Vec<Vec<u8>> {
    let block = |image: patch::PatchImage| {
        let range = image.index.block_range(0);
        image.data[range.start as usize..range.end as usize].to_vec()
    };
    images(20).into_iter().map(block).collect()
}
