//! The encoding of parity groups in log events.

use crate::format::FormatError;
use crate::format::codec::Reader;
use bytes::BufMut;
use softflash_blocks::{Member, ParityGroup};

const MIN_GROUP_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

pub(super) fn encode(groups: &[ParityGroup], stream: &mut Vec<u8>) {
    super::put_len(groups.len(), stream);
    for ParityGroup { parity, members } in groups {
        stream.put_u64_le(*parity);
        super::put_len(members.len(), stream);
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
