//! A root: the state of a domain at one frame. It names the leaves of the map, the images, and the
//! superblocks that were open. Recovery starts from the newest whole root.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};
use super::pair::{self, PairRecord};
use super::settings;
use crate::image::{Image, ImageId, Images, Role};
use crate::settings::VolumeSettings;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::collections::BTreeMap;

/// A superblock that was open for data when the root was made: frames behind the root may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSuperblock {
    pub unit: u16,
    pub index: u32,
    pub generation: u64,
}

/// A leaf on the flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredLeaf {
    pub leaf: u32,
    pub halves: [StoredHalf; 2],
}

/// Half of a leaf on the flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredHalf {
    pub slot: u32,
    /// The slot of a second copy; [`NO_COPY`] without one, and in versions before 3.
    pub copy: u32,
    /// The lower half of its checksum: an older leaf at the slot, of a unit that was restored from
    /// an image, is not taken for it. 0 in versions before 3.
    pub checksum: u32,
}

/// Instead of the slot of a copy: there is none.
pub(crate) const NO_COPY: u32 = u32::MAX;

impl StoredHalf {
    /// The slots of its copies.
    pub fn slots(self) -> impl Iterator<Item = u32> {
        [self.slot, self.copy].into_iter().filter(|&slot| slot != NO_COPY)
    }
}

/// The greatest generation on a unit when the root was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitMark {
    pub unit: u16,
    pub generation: u64,
}

/// The contents of a root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Root {
    /// Frames from this one on are not in the leaves.
    pub sequence: u64,
    pub images: Images,
    pub leaves: Vec<StoredLeaf>,
    pub open: Vec<OpenSuperblock>,
    /// The number of the root before, which is released when this one is durable. `None` in version
    /// 1.
    pub previous: Option<u64>,
    /// Changes from this one on are not in the leaves. `None` in versions before 3.
    pub change: Option<u64>,
    pub units: Vec<UnitMark>,
    /// The unit in each unit slot, where a table of sets names them; the units have slots in their
    /// order otherwise, and in versions before 5.
    pub unit_slots: Vec<Option<u16>>,
    /// Of a domain that is one of a pair.
    pub pair: Option<PairRecord>,
}

/// Written where the domain is one of a pair.
const VERSION: u32 = 6;
/// The version without pairs, which is written where a table of sets names unit slots.
const FIFTH_VERSION: u32 = 5;
/// The version without unit slots, which is written where there is no table of sets.
const FOURTH_VERSION: u32 = 4;
/// The version before volumes could be promoted: their data have one seed.
const THIRD_VERSION: u32 = 3;
/// The version without numbers of changes, checksums of leaves, and generations of units.
const SECOND_VERSION: u32 = 2;
/// The version without settings of volumes, which are read as the default ones, and without the
/// number of the root before.
const FIRST_VERSION: u32 = 1;
/// No image, no leaf.
const NONE: u32 = u32::MAX;
/// No unit.
const NO_UNIT: u16 = u16::MAX;

impl Root {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let version = match (&self.pair, self.unit_slots.is_empty()) {
            (Some(_), _) => VERSION,
            (None, false) => FIFTH_VERSION,
            (None, true) => FOURTH_VERSION,
        };
        bytes.add_u32(version);
        bytes.add_u64(self.sequence);
        bytes.add_u32(self.images.last());
        bytes.add_count(self.images.iter().count());
        for (id, image) in self.images.iter() {
            add_image(&mut bytes, id, image);
        }
        bytes.add_count(self.leaves.len());
        for stored in &self.leaves {
            bytes.add_u32(stored.leaf);
            for half in stored.halves {
                [half.slot, half.copy, half.checksum].iter().for_each(|&it| bytes.add_u32(it));
            }
        }
        bytes.add_count(self.open.len());
        for open in &self.open {
            bytes.add_u32(open.unit.into());
            bytes.add_u32(open.index);
            bytes.add_u64(open.generation);
        }
        bytes.add_u64(self.previous.unwrap_or(0));
        bytes.add_u64(self.change.unwrap_or(0));
        bytes.add_count(self.units.len());
        for mark in &self.units {
            bytes.add_u32(mark.unit.into());
            bytes.add_u64(mark.generation);
        }
        if version > FOURTH_VERSION {
            bytes.add_count(self.unit_slots.len());
            self.unit_slots.iter().for_each(|unit| bytes.add_u32(unit.unwrap_or(NO_UNIT).into()));
        }
        if let Some(pair) = &self.pair {
            pair.add(&mut bytes);
        }
        bytes
    }

    /// Decodes a root, behind which other bytes may follow.
    pub fn decode(bytes: &[u8]) -> Option<Root> {
        let mut reader = Reader(bytes);
        let version = reader.u32()?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return None;
        }
        let is_numbered = version > SECOND_VERSION;
        let (sequence, last) = (reader.u64()?, reader.u32()?);
        let images = (0..reader.count(LEAST_IMAGE_BYTES)?).map(|_| image(&mut reader, version));
        let images = images.collect::<Option<BTreeMap<ImageId, Image>>>()?;
        let leaves = (0..reader.count(12)?).map(|_| {
            let leaf = reader.u32()?;
            let mut half = || {
                let slot = reader.u32()?;
                let (copy, checksum) = match is_numbered {
                    true => (reader.u32()?, reader.u32()?),
                    false => (NO_COPY, 0),
                };
                Some(StoredHalf { slot, copy, checksum })
            };
            Some(StoredLeaf { leaf, halves: [half()?, half()?] })
        });
        let leaves = leaves.collect::<Option<Vec<StoredLeaf>>>()?;
        let open = (0..reader.count(16)?).map(|_| {
            let (unit, index) = (u16::try_from(reader.u32()?).ok()?, reader.u32()?);
            Some(OpenSuperblock { unit, index, generation: reader.u64()? })
        });
        let open = open.collect::<Option<Vec<OpenSuperblock>>>()?;
        let previous = if version == FIRST_VERSION { None } else { Some(reader.u64()?) };
        let images = Images::of(images, last);
        let (mut change, mut units) = (None, Vec::new());
        if is_numbered {
            change = Some(reader.u64()?);
            let marks = (0..reader.count(12)?).map(|_| {
                let unit = u16::try_from(reader.u32()?).ok()?;
                Some(UnitMark { unit, generation: reader.u64()? })
            });
            units = marks.collect::<Option<Vec<UnitMark>>>()?;
        }
        let mut unit_slots = Vec::new();
        if version > FOURTH_VERSION {
            let unit = |number: u32| {
                let unit = u16::try_from(number).ok()?;
                Some((unit != NO_UNIT).then_some(unit))
            };
            let read = (0..reader.count(4)?).map(|_| unit(reader.u32()?));
            unit_slots = read.collect::<Option<Vec<Option<u16>>>>()?;
        }
        let pair = match version > FIFTH_VERSION {
            true => Some(PairRecord::read(&mut reader)?),
            false => None,
        };
        Some(Root { sequence, images, leaves, open, previous, change, units, unit_slots, pair })
    }
}

/// Bytes of an image with an empty name and no leaves.
const LEAST_IMAGE_BYTES: usize = 27;

fn add_image(bytes: &mut Vec<u8>, id: ImageId, image: &Image) {
    let of = |id: Option<ImageId>| id.map_or(NONE, |id| id.0);
    let (kind, related) = match image.role {
        Role::Volume { parent } => (0, of(parent)),
        Role::Snapshot { of } => (1, of.0),
    };
    bytes.add_u32(id.0);
    bytes.add_u8(kind);
    for number in [related, image.size, of(image.older), of(image.newer)] {
        bytes.add_u32(number);
    }
    bytes.add_text(&image.name);
    match planted::bug(Bug::SettingsNotInRoots) {
        true => settings::add(bytes, &VolumeSettings::default()),
        false => settings::add(bytes, &image.settings),
    }
    bytes.add_count(image.other_seeds.len());
    image.other_seeds.iter().for_each(|other| bytes.add_u32(other.0));
    bytes.add_count(image.leaves.len());
    for leaf in &image.leaves {
        bytes.add_u32(leaf.unwrap_or(NONE));
    }
}

fn image(reader: &mut Reader<'_>, version: u32) -> Option<(ImageId, Image)> {
    let id = ImageId(reader.u32()?);
    let kind = reader.u8()?;
    let mut next = || reader.u32();
    let some = |number: u32| (number != NONE).then_some(ImageId(number));
    let (related, size) = (next()?, next()?);
    let (older, newer) = (some(next()?), some(next()?));
    let role = match kind {
        0 => Role::Volume { parent: some(related) },
        1 => Role::Snapshot { of: ImageId(related) },
        _ => return None,
    };
    let name = reader.text()?;
    let settings = match version {
        FIRST_VERSION => VolumeSettings::default(),
        _ => settings::read(reader)?,
    };
    let other_seeds = match version > THIRD_VERSION {
        true => {
            let others = (0..reader.count(4)?).map(|_| Some(ImageId(reader.u32()?)));
            others.collect::<Option<Vec<ImageId>>>()?
        }
        false => Vec::new(),
    };
    let leaves =
        (0..reader.count(4)?).map(|_| Some(Some(reader.u32()?).filter(|&leaf| leaf != NONE)));
    let leaves = leaves.collect::<Option<Vec<Option<u32>>>>()?;
    Some((id, Image { name, role, size, settings, other_seeds, older, newer, leaves }))
}

/// The most bytes of a root of these images, with so many leaves, open superblocks, units, unit
/// slots of a table, and ranges that have changed in a pair.
pub(crate) fn most_bytes(
    images: &Images,
    leaves: usize,
    open: usize,
    [units, unit_slots]: [usize; 2],
    changed: Option<usize>,
) -> usize {
    let image = |image: &Image| {
        let numbers = 1 + image.other_seeds.len() + image.leaves.len();
        LEAST_IMAGE_BYTES + settings::BYTES + image.name.len() + 4 * numbers
    };
    let images: usize = images.iter().map(|(_, it)| image(it)).sum();
    let unit_slots = match (unit_slots, changed) {
        (0, None) => 0,
        (unit_slots, _) => 4 + 4 * unit_slots,
    };
    let pair = changed.map_or(0, pair::most_bytes);
    ROOT_BYTES + images + 28 * leaves + 16 * open + 12 * units + unit_slots + pair
}

/// Bytes of a root without images, leaves, open superblocks and units.
const ROOT_BYTES: usize = 48;

/// Parts of a root of so many bytes.
pub(crate) fn parts(bytes: usize) -> u32 {
    cast::saturating_u32(bytes.div_ceil(super::MAPPING_UNIT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::operation::Operation;

    #[test]
    fn roots_decode_to_what_was_encoded() {
        let mut images = Images::default();
        let settings = VolumeSettings { iops: Some(7), weight: 300, ..VolumeSettings::default() };
        let (image, name) = (ImageId(1), "v".to_owned());
        images.apply(&Operation::Create { image, name, size: 5000, settings });
        images.apply(&Operation::Snapshot { of: ImageId(1), image: ImageId(2), name: "s".into() });
        images.apply(&Operation::Clone { of: ImageId(2), image: ImageId(3), name: "c".into() });
        images.apply(&Operation::Promote { clone: ImageId(3), snapshot: ImageId(2) });
        images.get_mut(ImageId(1)).unwrap().leaves = vec![Some(4), None, Some(0)];
        let root = Root {
            sequence: 1 << 41,
            images,
            leaves: vec![StoredLeaf {
                leaf: 4,
                halves: [(8, 3), (9, NO_COPY)].map(|(slot, copy)| StoredHalf {
                    slot,
                    copy,
                    checksum: !slot,
                }),
            }],
            open: vec![OpenSuperblock { unit: 3, index: 9, generation: 1 << 33 }],
            previous: Some(1 << 35),
            change: Some(1 << 34),
            units: vec![UnitMark { unit: 3, generation: 1 << 36 }],
            unit_slots: Vec::new(),
            pair: None,
        };
        let table = || vec![Some(9), None, Some(3)];
        let pair = || {
            let mut record = PairRecord::default();
            record.changed.insert(ImageId(1), 3..9);
            Some(record)
        };
        // Programs that know no table of sets, or no pairs, read roots of domains without.
        for (unit_slots, pair, version) in [
            (Vec::new(), None, 4),
            (table(), None, 5),
            (table(), pair(), 6),
            (Vec::new(), pair(), 6),
        ] {
            let root = Root { unit_slots, pair, ..root.clone() };
            let bytes = root.encode();
            assert_eq!(bytes[0], version);
            let changed = root.pair.as_ref().map(|pair| pair.changed.len());
            let most = most_bytes(&root.images, 1, 1, [1, root.unit_slots.len()], changed);
            let spare = if changed.is_some() { most - bytes.len() } else { 0 };
            assert_eq!(bytes.len() + spare, most);
            assert_eq!(Root::decode(&bytes), Some(root));
            for cut in 0..bytes.len() {
                assert_eq!(Root::decode(&bytes[..cut]), None, "{cut} bytes");
            }
        }
    }

    #[test]
    fn a_root_from_before_there_were_settings_has_the_default_ones() {
        let mut bytes = Vec::new();
        bytes.add_u32(1);
        bytes.add_u64(77);
        bytes.add_u32(9);
        // One image: a volume of 10 mapping units, without parent, snapshots and data.
        bytes.add_u32(1);
        bytes.add_u32(9);
        bytes.add_u8(0);
        [NONE, 10, NONE, NONE].into_iter().for_each(|number| bytes.add_u32(number));
        bytes.add_text("v");
        // No groups, no leaves, and no open superblocks.
        (0..3).for_each(|_| bytes.add_count(0));
        let root = Root::decode(&bytes).unwrap();
        let image = root.images.get(ImageId(9)).unwrap();
        assert_eq!((root.sequence, root.images.last(), image.size), (77, 9, 10));
        assert_eq!(image.settings, VolumeSettings::default());
        assert_eq!((root.previous, root.change), (None, None));
        let again = Root { previous: Some(0), change: Some(0), ..root.clone() };
        assert_eq!(Root::decode(&root.encode()), Some(again));
        bytes[0] = 7;
        assert_eq!(Root::decode(&bytes), None, "a newer version");
    }
}
