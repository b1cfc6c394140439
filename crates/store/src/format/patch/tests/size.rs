use super::*;
use crate::format::patch::filter::Filter;

/// Adds records until the patch is full.
fn fill(config: BuilderConfig, mut next: impl FnMut() -> Record) -> (PatchImage, u64) {
    let capacity = config.capacity_bytes;
    let mut builder = PatchBuilder::new(config, SliceId(0));
    let mut bytes = 0;
    loop {
        let record = next();
        let fits = builder.fits(&record);
        let added = builder.add(&record);
        assert_eq!(fits, added == Added::Added);
        if added == Added::Full {
            break;
        }
        bytes += record.encoded_len() as u64;
    }
    let image = builder.finish(1, IDENTITY);
    assert!(image.metadata.len() + image.data.len() <= capacity);
    (image, bytes)
}

/// Ascending keys of 16 bytes, spread like hashes.
fn spread_keys(rng: &Rng) -> impl FnMut() -> Vec<u8> + use<> {
    let mut at = 0u128;
    let mut rng = rng.clone();
    move || {
        at += (u128::from(rng.next_u64()) << 51) / 8 + 1;
        at.to_be_bytes().to_vec()
    }
}

#[test]
fn index_and_filter_take_few_bytes_a_record() {
    let mut rng = rng(51);
    let mut key = spread_keys(&rng);
    let value = noise(&mut rng, 1024);
    let config = BuilderConfig::new(8 << 20, 4096, Compression::None);
    let (image, _) = fill(config, || put(&key(), 1 << 40, &value));
    let per_record = image.index.memory_bytes() as f64 / image.index.entries() as f64;
    println!("{} records, {per_record:.2} bytes of memory each", image.index.entries());
    assert!(image.index.entries() > 7_800, "{} records fit", image.index.entries());
    assert!(per_record < 9.0, "{per_record} bytes a record");
}

#[test]
fn patches_are_full_for_values_of_any_size() {
    let mut rng = rng(52);
    for (value_len, key_len, capacity) in [
        (0, 8, 1 << 20),
        (10, 16, 1 << 20),
        (100, 40, 2 << 20),
        (1024, 16, 8 << 20),
        (60_000, 900, 8 << 20),
    ] {
        let mut key = spread_keys(&rng);
        let value = noise(&mut rng, value_len);
        let mut config = config(Compression::None);
        config.capacity_bytes = capacity;
        let (image, _) = fill(config, || {
            let key = [key(), vec![7; key_len]].concat();
            put(&key, 1, &value)
        });
        let used = image.metadata.len() + image.data.len();
        let slack = capacity - used;
        let allowed = capacity / 100 + value_len + 2 * key_len + 2 * 4096;
        println!("value {value_len}: {used} of {capacity} bytes used");
        assert!(slack < allowed, "{slack} bytes are left of {capacity}");
    }
}

#[test]
fn compressible_records_make_fuller_patches() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let mut n = 0u64;
        let mut config = config(compression);
        config.capacity_bytes = 1 << 20;
        let (image, raw) = fill(config, || {
            n += 1;
            put(format!("{n:012}").as_bytes(), n, &[b'a'; 500])
        });
        assert!(raw > 3 << 20, "{compression:?}: {raw} bytes of records");
        assert_eq!(all_records(&image).len() as u64, image.index.entries());
    }
}

#[test]
fn blocks_that_do_not_shrink_stay_raw() {
    let mut rng = rng(53);
    for compression in [Compression::Lz4, Compression::Zstd] {
        let image = build(config(compression), &[put(b"k", 1, &noise(&mut rng, 3000))]);
        assert_eq!(block_bytes(&image, 0)[18], 0);
        assert_eq!(all_records(&image).len(), 1);
    }
}

#[test]
fn the_largest_records_have_blocks_of_their_own() {
    let mut rng = rng(54);
    let key = vec![b'k'; 64 << 10];
    for compression in ALL {
        let records: Vec<_> = (0..4)
            .map(|n| fragment(&key, 5, &value(&mut rng, 1 << 20), n, 4))
            .chain([put(&[&key[1..], b"l"].concat(), 1, b"small")])
            .collect();
        let image = build(config(compression), &records);
        assert_eq!(image.index.block_count(), 5);
        assert_eq!(all_records(&image), records);
        assert_eq!(image.index.locate(&key), Some(0));
    }
}

#[test]
fn a_record_too_large_for_an_empty_patch_is_refused() {
    let mut config = config(Compression::None);
    config.capacity_bytes = 64 << 10;
    let mut builder = PatchBuilder::new(config, SliceId(0));
    assert_eq!(builder.add(&put(b"k", 1, &[0; 70_000])), Added::Full);
    assert!(builder.is_empty());
    assert_eq!(builder.add(&put(b"k", 1, &[0; 7_000])), Added::Added);
}

#[test]
#[should_panic(expected = "in order")]
fn records_out_of_order_are_a_fault_of_the_caller() {
    let mut builder = PatchBuilder::new(config(Compression::None), SliceId(0));
    let _ = builder.add(&put(b"k", 1, b""));
    let _ = builder.add(&put(b"k", 2, b""));
}

#[test]
fn filters_of_any_size_keep_their_bound_and_let_their_keys_pass() {
    let mut rng = rng(55);
    let mut largest = 0;
    for keys in (0..300).chain((300..40_000).step_by(977)) {
        let mut hashes: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
        let filter = Filter::build(&mut hashes).unwrap();
        assert!(hashes.iter().all(|hash| filter.contains(*hash)));
        let bound = Filter::encoded_bound(keys);
        assert!(filter.encoded_len() <= bound, "{keys} keys: {} > {bound}", filter.encoded_len());
        assert!(bound >= largest, "the bound never falls");
        largest = bound;
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(bytes.len(), filter.encoded_len());
        assert_eq!(Filter::decode(&bytes), Ok(filter));
    }
}

#[test]
fn one_absent_key_in_65536_passes_the_filter() {
    let mut rng = rng(56);
    let mut hashes: Vec<u64> = (0..8_000).map(|_| rng.next_u64()).collect();
    let filter = Filter::build(&mut hashes).unwrap();
    let asked = 3_000_000;
    let passed = (0..asked).filter(|_| filter.contains(rng.next_u64())).count();
    let expected = asked / 65_536;
    println!("{passed} of {asked} absent keys passed, {expected} expected");
    assert!(passed < 2 * expected, "{passed} passed");
}

#[test]
fn equal_hashes_are_handled() {
    let mut hashes = vec![7; 100];
    assert!(Filter::build(&mut hashes).is_some_and(|filter| filter.contains(7)));
}
