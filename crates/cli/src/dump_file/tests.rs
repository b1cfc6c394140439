use super::*;
use softflash_base::random::Rng;

fn records(rng: &mut Rng, count: u64) -> Vec<Record> {
    (0..count)
        .map(|_| {
            let mut key = vec![0; 1 + rng.below(40) as usize];
            let longest = if rng.chance(0.01) { 3 << 20 } else { 2000 };
            let mut value = vec![0; rng.below(longest) as usize];
            rng.fill(&mut key);
            rng.fill(&mut value);
            let expires_at_ms = if rng.chance(0.3) { rng.next_u64() } else { 0 };
            Record { key: key.into(), value: value.into(), expires_at_ms }
        })
        .collect()
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut writer = DumpWriter::begin(Vec::new(), 1234).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    let (file, count) = writer.finish().unwrap();
    assert_eq!(count, records.len() as u64);
    file
}

fn read(file: &[u8]) -> Result<Vec<Record>, DumpError> {
    let mut reader = DumpReader::begin(file, 0)?;
    let mut records = Vec::new();
    while let Some(record) = reader.read()? {
        records.push(record);
    }
    assert_eq!(reader.bytes_read(), file.len() as u64);
    Ok(records)
}

#[test]
fn records_are_read_back() {
    for seed in 0..8 {
        let mut rng = Rng::seeded(seed);
        let records = records(&mut rng, seed * 100);
        assert_eq!(read(&written(&records)).unwrap(), records, "seed {seed}");
    }
}

#[test]
fn no_damage_goes_unseen() {
    for seed in 0..200 {
        let mut rng = Rng::seeded(seed);
        let records = records(&mut rng, 20);
        let mut file = written(&records);
        let at = rng.below(file.len() as u64) as usize;
        match rng.below(3) {
            0 => file[at] ^= 1 << rng.below(8),
            1 => file.truncate(at),
            _ => {
                file.remove(at);
            }
        }
        assert!(read(&file).is_err(), "seed {seed}, byte {at}");
    }
}

#[test]
fn frames_cannot_change_places() {
    let big = |byte: u8| Record {
        key: Bytes::from_static(b"k"),
        value: vec![byte; FRAME_BYTES].into(),
        expires_at_ms: 0,
    };
    let mut file = written(&[big(1), big(2)]);
    let frame = FRAME_HEADER_BYTES + RECORD_HEADER_BYTES + 1 + FRAME_BYTES;
    let (first, second) = file[HEADER_BYTES..HEADER_BYTES + 2 * frame].split_at_mut(frame);
    first.swap_with_slice(second);
    assert!(matches!(read(&file), Err(DumpError::Damaged { .. })));
}

#[test]
fn other_files_and_later_versions_have_different_errors() {
    assert!(matches!(read(b"REDIS0011 and so on, and so on, and so on"), Err(DumpError::NotADump)));
    assert!(matches!(read(b""), Err(DumpError::NotADump)));
    let newer = header(FORMAT_VERSION + 1, 0);
    assert!(matches!(read(&newer), Err(DumpError::NewerVersion { found: 2 })));
}
