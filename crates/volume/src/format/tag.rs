//! The tag in the opening header of a superblock of a mapped domain.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::Reader;
use softflash_ftl::OwnerTag;
use std::ops::RangeInclusive;

const MAGIC: [u8; 4] = *b"SFVO";
/// Version 1 has no settings of volumes: its operations and roots are read as the default ones.
/// Versions 1 and 2 have no numbers of changes, and versions before 4 no volumes with another name,
/// rolled back or promoted. Version 5 is that of domains with unit slots of a table of sets.
const VERSIONS: RangeInclusive<u8> = 1..=5;
/// The version of domains without such a table.
const WITHOUT_TABLE: u8 = 4;

/// What a superblock is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Data and operations.
    Data,
    /// Leaves of the map and roots.
    Map,
    /// Data that a recovery has written again, which count once a root names them: a recovery that
    /// was interrupted leaves superblocks that the next one can release at once.
    Rewritten,
}

/// The contents of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub purpose: Purpose,
    /// All frames inside have at least this number.
    pub first_sequence: u64,
    /// All changes with lower numbers were proven when the superblock was opened, as in a head:
    /// where no head can be read, this says that there were some. 0 in versions before 3.
    pub proven_below: u64,
    /// Whether a table of sets names the unit slots of the domain. The heads of frames inside are
    /// bound to the domain then: the unit may have been another one's.
    pub has_table: bool,
}

/// Encodes a tag.
pub(crate) fn encode(tag: Tag) -> OwnerTag {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = if tag.has_table { *VERSIONS.end() } else { WITHOUT_TABLE };
    bytes[5] = match tag.purpose {
        Purpose::Data => 1,
        Purpose::Map => 2,
        Purpose::Rewritten => 3,
    };
    bytes[8..16].copy_from_slice(&tag.first_sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&tag.proven_below.to_le_bytes());
    OwnerTag(bytes)
}

/// Decodes a tag; `None` if it is not one of this layer, or its version is newer.
pub(crate) fn decode(tag: &OwnerTag) -> Option<Tag> {
    let mut reader = Reader(&tag.0);
    if reader.take(4)? != MAGIC {
        return None;
    }
    let version = Some(reader.u8()?).filter(|version| VERSIONS.contains(version))?;
    let purpose = match reader.u8()? {
        1 => Purpose::Data,
        2 => Purpose::Map,
        3 => Purpose::Rewritten,
        _ => return None,
    };
    reader.take(2)?;
    let (first_sequence, proven_below) = (reader.u64()?, reader.u64()?);
    Some(Tag { purpose, first_sequence, proven_below, has_table: version > WITHOUT_TABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_decode_to_what_was_encoded_and_others_are_refused() {
        for purpose in [Purpose::Data, Purpose::Map, Purpose::Rewritten] {
            let of = |has_table| Tag {
                purpose,
                first_sequence: 1 << 45,
                proven_below: 1 << 44,
                has_table,
            };
            assert_eq!([false, true].map(|has_table| encode(of(has_table)).0[4]), [4, 5]);
            let mut older = encode(of(false));
            for version in 1..=5 {
                older.0[4] = version;
                assert_eq!(decode(&older), Some(of(version == 5)));
            }
            for at in 0..6 {
                let mut other = encode(of(true));
                other.0[at] ^= 0x80;
                assert_eq!(decode(&other), None);
            }
        }
    }
}
