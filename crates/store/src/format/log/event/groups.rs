//! Parity groups, as the log tells of them.

use crate::format::FormatError;
use crate::format::codec::Reader;
use bytes::BufMut;

/// A patch in a parity group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its block.
    pub block: u64,
    /// Pages that were written of it; to the parity the others are zeros.
    pub pages: u32,
}

/// Patches that share a parity block: page by page, the XOR of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParityGroup {
    /// The parity block, whose id names the group.
    pub parity: u64,
    /// The patches, at least one.
    pub members: Vec<Member>,
}

/// A change of the groups. Applying it twice is applying it once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Groups that there are from now on.
    pub added: Vec<ParityGroup>,
    /// Parity blocks of those that no longer are. Their patches are in the added ones or given up.
    pub removed: Vec<u64>,
}

impl ParityGroup {
    /// Pages of the parity block.
    pub fn pages(&self) -> u32 {
        self.members.iter().map(|member| member.pages).max().unwrap_or(0)
    }

    /// All blocks and their pages: the patches, then the parity.
    pub fn blocks(&self) -> impl Iterator<Item = Member> {
        let parity = Member { block: self.parity, pages: self.pages() };
        self.members.iter().copied().chain([parity])
    }
}

const MIN_GROUP_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

pub(super) fn encode(groups: &[ParityGroup], stream: &mut Vec<u8>) {
    stream.put_u32_le(groups.len() as u32);
    for ParityGroup { parity, members } in groups {
        stream.put_u64_le(*parity);
        stream.put_u32_le(members.len() as u32);
        for Member { block, pages } in members {
            stream.put_u64_le(*block);
            stream.put_u32_le(*pages);
        }
    }
}

/// At least one group.
pub(super) fn decode_some(body: &mut Reader<'_>) -> Result<Vec<ParityGroup>, FormatError> {
    let groups = decode(body)?;
    if groups.is_empty() { Err(body.malformed("it has no parity groups")) } else { Ok(groups) }
}

pub(super) fn decode(body: &mut Reader<'_>) -> Result<Vec<ParityGroup>, FormatError> {
    super::list(body, MIN_GROUP_BYTES, |body| {
        let parity = body.u64()?;
        let members = super::list(body, MEMBER_BYTES, |body| {
            Ok(Member { block: body.u64()?, pages: body.u32()? })
        })?;
        match members.is_empty() {
            true => Err(body.malformed("a parity group has no members")),
            false => Ok(ParityGroup { parity, members }),
        }
    })
}
