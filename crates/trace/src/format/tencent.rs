//! Tencent's cloud disks: `Timestamp,Offset,Size,IOType,VolumeID`, seconds and sectors.

use super::raw::{Decoded, Raw};
use crate::fields::{Commas, put_all, sectors_of};
use crate::malformed::Problem;
use crate::request::{Kind, Request};

pub(super) const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";

#[inline]
pub(super) fn decode(line: &[u8]) -> Decoded {
    let mut fields = Commas::new(line);
    let ticks = fields.number("Timestamp")?;
    let offset_bytes = fields.sectors("Offset")?;
    let bytes = fields.sectors("Size")?;
    let kind = match fields.next("IOType")? {
        b"0" => Kind::Read,
        b"1" => Kind::Write,
        _ => return Err(Problem::Unknown.of("IOType")),
    };
    let device = fields.device("VolumeID")?;
    fields.end()?;
    Ok(Some(Raw { ticks, device, kind, offset_bytes, bytes }))
}

pub(super) fn encode(request: &Request, line: &mut Vec<u8>) {
    let (first, sectors) = sectors_of(request.offset_bytes, request.bytes);
    let seconds = request.at_ns / 1_000_000_000;
    let kind = u64::from(request.kind != Kind::Read);
    put_all(line, b',', &[seconds, first, sectors, kind, u64::from(request.device)]);
    line.push(b'\n');
}
