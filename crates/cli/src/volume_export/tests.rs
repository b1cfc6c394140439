use super::*;
use softflash_base::random::Rng;
use softflash_volume::{Lifetime, Temperature, VolumeSettings};

const UNIT: u64 = 4096;

/// Random volumes, the first of them an increment, with a clone.
fn volumes(rng: &mut Rng) -> Vec<Described> {
    let digest = match rng.chance(0.5) {
        true => Digest::Quick(rng.next_u64()),
        false => Digest::Full(rng.next_u64()),
    };
    let base = Base { snapshot: "base".into(), size_bytes: 9 * UNIT, digest };
    let clone = Beginning::Clone { volume: "a".into(), snapshot: "s0".into() };
    let beginnings = [Beginning::Base(base), clone, Beginning::Empty];
    let described = |(name, beginning): (&str, Beginning)| Described {
        name: name.into(),
        beginning,
        settings: VolumeSettings {
            quota_bytes: rng.chance(0.5).then_some(1 << 40),
            iops: rng.chance(0.5).then_some(500),
            bandwidth_bytes_per_second: rng.chance(0.5).then_some(1 << 20),
            weight: 1 + rng.below(1000) as u16,
            lifetime: Lifetime { temperature: Temperature::Cold, stream: rng.below(8) as u8 },
        },
        snapshots: (0..rng.below(4))
            .map(|at| (format!("s{at}"), (100 + rng.below(900)) * UNIT))
            .collect(),
        size_bytes: (100 + rng.below(900)) * UNIT,
    };
    ["a", "b", "c"].into_iter().zip(beginnings).map(described).collect()
}

/// Random changes of each image, as a reader returns them.
fn changes(rng: &mut Rng, volumes: &[Described]) -> Vec<Vec<Change>> {
    let images = volumes.iter().map(|volume| u64::from(volume.images())).sum();
    let one_image = |_| {
        let (mut changes, mut at) = (Vec::new(), 0);
        while at < 80 {
            // A gap, so that no zeros are neighbours.
            let start = at + 1 + rng.below(10);
            let units = 1 + rng.below(9);
            let (offset, bytes) = (start * UNIT, units * UNIT);
            changes.push(match rng.chance(0.3) {
                true => Change::Zeros { offset, bytes },
                false => {
                    let mut data = vec![0; bytes as usize];
                    rng.fill(&mut data);
                    Change::Data { offset, data: data.into() }
                }
            });
            at = start + units;
        }
        changes
    };
    (0..images).map(one_image).collect()
}

fn written(volumes: &[Described], images: &[Vec<Change>]) -> Vec<u8> {
    let mut writer = ExportWriter::begin(Vec::new(), volumes).unwrap();
    for changes in images {
        for change in changes {
            match change {
                Change::Data { offset, data } => writer.data(*offset, data).unwrap(),
                Change::Zeros { offset, bytes } => {
                    // In two parts, which become one.
                    writer.zeros(*offset, UNIT).unwrap();
                    if *bytes > UNIT {
                        writer.zeros(offset + UNIT, bytes - UNIT).unwrap();
                    }
                }
            }
        }
        writer.end_image().unwrap();
    }
    let (file, totals) = writer.finish().unwrap();
    assert_eq!(totals.images, images.len() as u64);
    file
}

fn read(file: &[u8]) -> Result<(Vec<Described>, Vec<Vec<Change>>), ExportError> {
    let mut reader = ExportReader::begin(file)?;
    let volumes = reader.volumes().to_vec();
    let images: u32 = volumes.iter().map(Described::images).sum();
    let mut all = Vec::new();
    for _ in 0..images {
        let mut changes = Vec::new();
        while let Some(change) = reader.change()? {
            changes.push(change);
        }
        all.push(changes);
    }
    let totals = reader.finish()?;
    assert_eq!((totals.volumes, reader.bytes_read()), (volumes.len() as u64, file.len() as u64));
    Ok((volumes, all))
}

#[test]
fn volumes_and_changes_are_read_back() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Rng::seeded(seed);
        let volumes = volumes(&mut rng);
        let changes = changes(&mut rng, &volumes);
        let (found, images) = read(&written(&volumes, &changes)).unwrap();
        assert!(found == volumes && images == changes, "seed {seed}");
    }
}

#[test]
fn no_damage_goes_unseen() {
    for seed in 0..300 {
        let mut rng = Rng::seeded(seed);
        let volumes = volumes(&mut rng);
        let mut file = written(&volumes, &changes(&mut rng, &volumes));
        let at = rng.below(file.len() as u64) as usize;
        match rng.below(4) {
            0 => file[at] ^= 1 << rng.below(8),
            1 => file.truncate(at),
            2 => file.push(at as u8),
            _ => {
                file.remove(at);
            }
        }
        assert!(read(&file).is_err(), "seed {seed}, byte {at}");
    }
}

#[test]
fn frames_cannot_change_places() {
    let volume = Described {
        name: "a".into(),
        beginning: Beginning::Empty,
        settings: VolumeSettings::default(),
        snapshots: Vec::new(),
        size_bytes: 8 * UNIT,
    };
    let data = |offset, byte| Change::Data { offset, data: vec![byte; UNIT as usize].into() };
    let mut file = written(&[volume], &[vec![data(0, 1), data(UNIT, 2)]]);
    let frame = FRAME_HEADER_BYTES + 8 + UNIT as usize;
    let first = file.len() - 2 * frame - (FRAME_HEADER_BYTES + 24) - (FRAME_HEADER_BYTES + 32);
    let (first, second) = file[first..first + 2 * frame].split_at_mut(frame);
    first.swap_with_slice(second);
    let error = read(&file).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn changes_beyond_an_image_or_against_their_order_are_refused() {
    let volume = |size_bytes| Described {
        name: "a".into(),
        beginning: Beginning::Empty,
        settings: VolumeSettings::default(),
        snapshots: Vec::new(),
        size_bytes,
    };
    let zeros = |offset, bytes| Change::Zeros { offset, bytes };
    for changes in [
        vec![zeros(7 * UNIT, 2 * UNIT)],
        vec![zeros(UNIT, 2 * UNIT), zeros(2 * UNIT, UNIT)],
        vec![zeros(1, UNIT)],
        vec![zeros(0, 0)],
        vec![zeros(u64::MAX - UNIT + 1, UNIT)],
    ] {
        let mut writer = ExportWriter::begin(Vec::new(), &[volume(8 * UNIT)]).unwrap();
        for change in &changes {
            let Change::Zeros { offset, bytes } = *change else { unreachable!() };
            writer.zeros(offset, bytes).unwrap();
        }
        writer.end_image().unwrap();
        let error = read(&writer.finish().unwrap().0).unwrap_err().to_string();
        assert!(error.contains("impossible range"), "{changes:?}: {error}");
    }
}

#[test]
fn other_files_and_later_versions_have_different_errors() {
    let dump = b"SFDUMP\x1a\n and so on, and so on, and so on";
    assert!(matches!(read(dump), Err(ExportError::NotAnExport)));
    assert!(matches!(read(b""), Err(ExportError::NotAnExport)));
    let newer = header(FORMAT_VERSION + 1, 0);
    assert!(matches!(read(&newer), Err(ExportError::NewerVersion { found: 2 })));
}
