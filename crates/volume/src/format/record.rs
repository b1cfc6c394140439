//! A record of a frame, kept in the head of another: it says what the frame changed, so that the
//! loss of its own head is known, and whose data are lost with it.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::MAPPING_UNIT_BYTES;
use super::bytes::{Append, Reader};
use super::entry::{Entry, LAST_IMAGE};
use crate::image::ImageId;
use softflash_base::cast;

/// What a frame changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The number of the frame among those with changes.
    pub change: u64,
    /// The number of the frame in its domain.
    pub sequence: u64,
    /// The unit that it is on.
    pub unit: u16,
    pub contents: Contents,
}

/// The contents of a frame with changes, without data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contents {
    Data(Vec<Run>),
    Discard {
        image: ImageId,
        lba: u32,
        count: u32,
    },
    /// The bytes of an operation: a lost frame with one loses nothing.
    Operation(Vec<u8>),
}

/// Mapping units that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub image: ImageId,
    pub lba: u32,
    pub count: u8,
    /// Whether collection moved them.
    pub moved: bool,
}

/// Bytes before the contents.
const FIXED_BYTES: usize = 24;
const RUN_BYTES: usize = 8;
/// The longest run: the highest bit of its byte says whether collection moved the data.
const LONGEST_RUN: u8 = 127;

impl Contents {
    /// The contents of a frame of these entries and mapping units, its head included. `None` if it
    /// changes nothing.
    pub fn of(entries: &[Entry], frame: &[u8]) -> Option<Contents> {
        let mut runs: Vec<Run> = Vec::new();
        for entry in entries {
            let (image, lba, moved) = match *entry {
                Entry::Data { image, lba, .. } => (image, lba, false),
                Entry::Moved { image, lba, .. } => (image, lba, true),
                Entry::Discard { image, lba, count } => {
                    return Some(Contents::Discard { image, lba, count });
                }
                Entry::Operation { bytes, .. } => {
                    let data = frame.get(MAPPING_UNIT_BYTES..)?;
                    return Some(Contents::Operation(data.get(..cast::index(bytes))?.to_vec()));
                }
                Entry::Void | Entry::Leaf { .. } | Entry::Root { .. } => continue,
            };
            let follows = |run: &&mut Run| {
                (run.image, run.moved) == (image, moved)
                    && run.lba.checked_add(run.count.into()) == Some(lba)
                    && run.count < LONGEST_RUN
            };
            match runs.last_mut().filter(follows) {
                Some(run) => run.count += 1,
                None => runs.push(Run { image, lba, count: 1, moved }),
            }
        }
        (!runs.is_empty()).then_some(Contents::Data(runs))
    }
}

impl Record {
    /// Bytes of the encoded record.
    pub fn len(&self) -> usize {
        FIXED_BYTES
            + match &self.contents {
                Contents::Data(runs) => runs.len() * RUN_BYTES,
                Contents::Discard { .. } => 12,
                Contents::Operation(bytes) => bytes.len(),
            }
    }

    /// Appends the encoded record.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.add_u64(self.change);
        into.add_u64(self.sequence);
        into.add_u16(self.unit);
        match &self.contents {
            Contents::Data(runs) => {
                into.add_u16(1);
                into.add_count(runs.len());
                for run in runs {
                    let Run { image, lba, count, moved } = *run;
                    assert!(image.0 <= LAST_IMAGE, "{image} has a number of more than 24 bits");
                    let upper = u32::from(count) | if moved { 0x80 } else { 0 };
                    into.add_u32(upper << 24 | image.0);
                    into.add_u32(lba);
                }
            }
            Contents::Discard { image, lba, count } => {
                into.add_u16(2);
                into.add_u32(1);
                [image.0, *lba, *count].into_iter().for_each(|number| into.add_u32(number));
            }
            Contents::Operation(bytes) => {
                into.add_u16(3);
                into.add_count(bytes.len());
                into.add(bytes);
            }
        }
    }

    /// Decodes records that follow each other; `None` if there are other bytes.
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Record>> {
        let mut reader = Reader(bytes);
        let mut records = Vec::new();
        while !reader.0.is_empty() {
            records.push(Record::decode(&mut reader)?);
        }
        Some(records)
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Record> {
        let (change, sequence, unit) = (reader.u64()?, reader.u64()?, reader.u16()?);
        let contents = match reader.u16()? {
            1 => {
                let runs = (0..reader.count(RUN_BYTES)?).map(|_| run(reader));
                Contents::Data(runs.collect::<Option<Vec<Run>>>()?)
            }
            2 if reader.u32()? == 1 => {
                let image = ImageId(reader.u32()?);
                Contents::Discard { image, lba: reader.u32()?, count: reader.u32()? }
            }
            3 => {
                let bytes = reader.count(1)?;
                Contents::Operation(reader.take(bytes)?.to_vec())
            }
            _ => return None,
        };
        Some(Record { change, sequence, unit, contents })
    }
}

fn run(reader: &mut Reader<'_>) -> Option<Run> {
    let (word, lba) = (reader.u32()?, reader.u32()?);
    let upper = word.to_le_bytes()[3];
    let (count, moved) = (upper & LONGEST_RUN, upper & 0x80 != 0);
    Some(Run { image: ImageId(word & LAST_IMAGE), lba, count, moved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_decode_to_what_was_encoded() {
        let image = ImageId(LAST_IMAGE);
        let runs = vec![
            Run { image, lba: u32::MAX, count: 1, moved: true },
            Run { image: ImageId(1), lba: 0, count: LONGEST_RUN, moved: false },
        ];
        let contents = [
            Contents::Data(runs),
            Contents::Discard { image, lba: 7, count: u32::MAX },
            Contents::Operation(vec![5; 99]),
        ];
        let number = |contents| Record { change: 1 << 40, sequence: 1 << 41, unit: 77, contents };
        let records: Vec<Record> = contents.map(number).into();
        let mut bytes = Vec::new();
        for record in &records {
            let before = bytes.len();
            record.encode(&mut bytes);
            assert_eq!(bytes.len() - before, record.len());
        }
        assert_eq!(Record::decode_all(&bytes), Some(records));
        assert_eq!(Record::decode_all(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Record::decode_all(&[]), Some(Vec::new()));
    }

    #[test]
    fn neighbouring_mapping_units_are_one_run() {
        let data = |image, lba| Entry::Data { image: ImageId(image), lba, checksum: 1 };
        let mut entries: Vec<Entry> = (10..160).map(|lba| data(1, lba)).collect();
        entries.extend([Entry::Void, data(2, 160), data(2, 162)]);
        entries.push(Entry::Moved { image: ImageId(2), lba: 163, checksum: 1 });
        let Some(Contents::Data(runs)) = Contents::of(&entries, &[]) else { panic!() };
        let found: Vec<(u32, u32, u8, bool)> =
            runs.iter().map(|run| (run.image.0, run.lba, run.count, run.moved)).collect();
        let expected = [
            (1, 10, 127, false),
            (1, 137, 23, false),
            (2, 160, 1, false),
            (2, 162, 1, false),
            (2, 163, 1, true),
        ];
        assert_eq!(found, expected);
        assert_eq!(Contents::of(&[Entry::Void], &[]), None);
    }
}
