use super::*;

/// A lookup as in the store: the located block, then the next blocks while they can hold the key.
fn find(image: &PatchImage, key: &[u8], max_seq: u64) -> Option<Record> {
    let mut number = image.index.locate(key)?;
    loop {
        if let Some(record) = block(image, number).find(key, max_seq).unwrap() {
            return Some(record);
        }
        number += 1;
        if number >= image.index.block_count() || image.index.block_starts_after(number, key) {
            return None;
        }
    }
}

fn brute_force<'a>(records: &'a [Record], key: &[u8], max_seq: u64) -> Option<&'a Record> {
    records.iter().find(|record| record.key == key && record.seq <= max_seq)
}

#[test]
fn lookups_agree_with_brute_force() {
    let mut rng = rng(31);
    for round in 0..25 {
        let records = hard_records(&mut rng, 5 + round * 6);
        let mut small = config(ALL[round % 3]);
        small.block_bytes = [64, 300, 4096, 1 << 20][round % 4];
        let image = build(small, &records);
        for _ in 0..300 {
            let mut key = records[rng.below(records.len() as u64) as usize].key.to_vec();
            match rng.below(5) {
                0 => key.push(0),
                1 => drop(key.pop()),
                2 if !key.is_empty() => *key.last_mut().unwrap() ^= 1 << rng.below(8),
                _ => {}
            }
            let max_seq = if rng.chance(0.5) { u64::MAX } else { rng.below(10_000) };
            let expected = brute_force(&records, &key, max_seq);
            assert_eq!(find(&image, &key, max_seq).as_ref(), expected, "key {key:?}");
            let hash = checksum::hash64(&key);
            if let Some(newest) = brute_force(&records, &key, u64::MAX) {
                assert!(image.index.may_contain(hash));
                assert_eq!(image.index.is_tombstone(hash), newest.is_delete());
            }
        }
    }
}

#[test]
fn the_located_block_is_the_first_with_the_key() {
    let mut rng = rng(32);
    for round in 0..20 {
        let records = hard_records(&mut rng, 150);
        let mut small = config(Compression::None);
        small.block_bytes = 100 + 50 * round;
        let image = build(small, &records);
        let blocks: Vec<Vec<Record>> = (0..image.index.block_count())
            .map(|number| block(&image, number).into_records().map(Result::unwrap).collect())
            .collect();
        for record in &records {
            let first = blocks.iter().position(|block| block.iter().any(|r| r.key == record.key));
            assert_eq!(image.index.locate(&record.key), first);
            assert_eq!(Some(image.index.lower_bound(&record.key)), first);
        }
    }
}

#[test]
fn a_scan_from_any_key_starts_early_enough_and_not_much_earlier() {
    let mut rng = rng(33);
    let records = hard_records(&mut rng, 400);
    let image = build(config(Compression::None), &records);
    for _ in 0..2_000 {
        let from = noise(&mut rng, 2);
        let start = image.index.lower_bound(&from);
        let wanted = records.iter().find(|record| record.key[..] >= from[..]);
        let holds = |number: usize| {
            number < image.index.block_count()
                && block(&image, number).records().any(|record| Some(&record.unwrap()) == wanted)
        };
        match wanted {
            Some(_) => assert!(holds(start) || holds(start + 1), "from {from:?}"),
            None => assert_eq!(start, image.index.block_count()),
        }
    }
}

#[test]
fn keys_outside_of_the_range_need_no_read() {
    let records: Vec<_> = (10..20u8).map(|n| put(&[n], 1, b"v")).collect();
    let index = build(config(Compression::None), &records).index;
    assert_eq!(
        (index.locate(&[9, 255]), index.locate(&[]), index.locate(&[19, 0])),
        (None, None, None)
    );
    assert_eq!((index.locate(&[10]), index.locate(&[19])), (Some(0), Some(0)));
    assert_eq!((index.lower_bound(&[]), index.lower_bound(&[20])), (0, 1));
}

#[test]
fn a_seek_starts_at_the_version_or_behind_it() {
    let records = [put(b"a", 9, b"1"), put(b"a", 5, b"2"), put(b"c", 7, b"3")];
    let block = block(&build(config(Compression::None), &records), 0);
    let first = |key: &[u8], seq| block.seek(key, seq).next().transpose().unwrap();
    assert_eq!(first(b"", 0).as_ref(), Some(&records[0]));
    assert_eq!(first(b"a", 8).as_ref(), Some(&records[1]));
    assert_eq!(first(b"a", 4).as_ref(), Some(&records[2]));
    assert_eq!(first(b"b", u64::MAX).as_ref(), Some(&records[2]));
    assert_eq!(first(b"c", 6), None);
    assert_eq!(block.find(b"b", u64::MAX), Ok(None));
}

#[test]
fn pages_of_a_block_cover_it() {
    let mut rng = rng(34);
    let image = build(config(Compression::None), &hard_records(&mut rng, 300));
    let whole = [&image.metadata[..], &image.data[..]].concat();
    for number in 0..image.index.block_count() {
        let (pages, skip) = image.index.block_pages(number);
        let start = pages.start as usize * 4096 + skip;
        let bytes = block_bytes(&image, number);
        assert_eq!(whole[start..start + bytes.len()], bytes);
        assert!(skip < 4096 && start + bytes.len() <= pages.end as usize * 4096);
        assert!(start + bytes.len() > (pages.end as usize - 1) * 4096);
    }
}
