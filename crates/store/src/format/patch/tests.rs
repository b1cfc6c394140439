mod damage;
mod lookup;
mod size;

use super::*;
use crate::format::record::Record;
use crate::format::testing::{fragment, noise, put, rng};
use crate::layout::Compression;
use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_base::{SliceId, checksum};

const IDENTITY: u64 = 0x1234_5678_9abc_def0;
const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

fn config(compression: Compression) -> BuilderConfig {
    BuilderConfig::new(64 << 20, 4096, compression)
}

/// A patch of these records, all of which must fit.
fn build(config: BuilderConfig, records: &[Record]) -> PatchImage {
    let mut builder = PatchBuilder::new(config, SliceId(7));
    for record in records {
        assert_eq!(builder.add(record), Added::Added);
    }
    builder.finish(42, IDENTITY)
}

fn block_bytes(image: &PatchImage, number: usize) -> Bytes {
    let range = image.index.block_range(number);
    Bytes::copy_from_slice(&image.data[range.start as usize..range.end as usize])
}

fn block(image: &PatchImage, number: usize) -> Block {
    let offset = image.index.block_range(number).start;
    decode_block(block_bytes(image, number), IDENTITY, offset).unwrap()
}

fn all_records(image: &PatchImage) -> Vec<Record> {
    (0..image.index.block_count())
        .flat_map(|number| block(image, number).into_records())
        .collect::<Result<_, _>>()
        .unwrap()
}

/// A value of `len` bytes, half of which compress.
fn value(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut value = noise(rng, len.div_ceil(2));
    value.resize(len, b'.');
    value
}

/// Sorted records that are hard to look up: short keys, shared prefixes, many versions, fragments,
/// deletions, empty keys, and sometimes a large key.
fn hard_records(rng: &mut Rng, keys: usize) -> Vec<Record> {
    let mut records = Vec::new();
    for _ in 0..keys {
        let key = match rng.below(12) {
            0 => vec![],
            1 => vec![0; rng.below(6) as usize],
            2 => [b"shared/prefix/of/many/".to_vec(), noise(rng, 1)].concat(),
            3 => [vec![b'x'; 300], noise(rng, 2)].concat(),
            4 => format!("number:{:04}", rng.below(500)).into_bytes(),
            5 if rng.chance(0.1) => [vec![b'l'; (64 << 10) - 1], noise(rng, 1)].concat(),
            _ => {
                let len = 1 + rng.below(8) as usize;
                noise(rng, len)
            }
        };
        let versions = if rng.chance(0.2) { rng.below(40) } else { 1 + rng.below(2) };
        for _ in 0..versions {
            let seq = rng.below(10_000);
            let longest = if rng.chance(0.1) { 9_000 } else { 300 };
            let len = rng.below(longest) as usize;
            if rng.chance(0.2) {
                records.push(Record::delete(Bytes::from(key.clone()), seq));
            } else if rng.chance(0.2) {
                let count = 2 + rng.below(6) as u16;
                let piece = |number| fragment(&key, seq, &value(rng, len), number, count);
                records.extend((0..count).map(piece));
            } else {
                records.push(put(&key, seq, &value(rng, len)));
            }
        }
    }
    records.sort_by(|a, b| a.order(b));
    records.dedup_by(|b, a| a.key == b.key && a.seq == b.seq && a.fragment() >= b.fragment());
    records
}

#[test]
fn patches_are_read_back() {
    let mut rng = rng(21);
    for round in 0..30 {
        let records = hard_records(&mut rng, 1 + round * 8);
        if records.is_empty() {
            continue;
        }
        for compression in ALL {
            let image = build(config(compression), &records);
            assert_eq!(metadata_len(&image.metadata, IDENTITY), Ok(image.metadata.len()));
            let index = decode_metadata(&image.metadata, IDENTITY).unwrap();
            assert_eq!(index, image.index);
            assert_eq!(all_records(&image), records);
            assert_eq!(index.first_key(), &records[0].key[..]);
            assert_eq!(index.last_key(), &records[records.len() - 1].key[..]);
            assert_eq!(index.entries(), records.len() as u64);
            let deletions = records.iter().filter(|record| record.is_delete()).count();
            assert_eq!(index.tombstones(), deletions as u64);
            let header = index.header();
            assert_eq!(header.min_seq, records.iter().map(|record| record.seq).min().unwrap());
            assert_eq!(header.max_seq, records.iter().map(|record| record.seq).max().unwrap());
            assert_eq!((header.patch_id, header.slice), (42, 7));
            assert_eq!(image.data.len(), index.data_len() as usize);
            assert_eq!(image.metadata.len(), index.data_offset() as usize);
        }
    }
}

#[test]
fn the_last_key_of_a_block_is_the_key_of_its_last_record() {
    let mut rng = rng(22);
    let image = build(config(Compression::Lz4), &hard_records(&mut rng, 200));
    for number in 0..image.index.block_count() {
        let block = block(&image, number);
        let records: Vec<_> = block.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(block.last_key(), &records[records.len() - 1].key[..]);
        assert_eq!(block.len(), records.len());
    }
}

/// The format is fixed: if this fails, bytes on flash have changed, which takes a new version.
#[test]
fn version_1_has_these_bytes() {
    let records: Vec<_> =
        (0..500u64).map(|n| put(format!("key{n:05}").as_bytes(), n + 1, &[n as u8; 100])).collect();
    let image = build(config(Compression::None), &records);
    let header = image.index.header();
    let keys_and_fences = header.first_key_len + header.last_key_len + header.fences_len;
    let metadata = &image.metadata[HEADER_BYTES..][..keys_and_fences as usize];
    assert_eq!((image.data.len(), metadata.len()), (61361, 145));
    assert_eq!(
        (checksum::hash64(&image.data), checksum::hash64(metadata)),
        (17469167643970254047, 4693515395896475488)
    );
}
