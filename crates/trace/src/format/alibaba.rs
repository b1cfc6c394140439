//! Alibaba's cloud disks: `device_id,opcode,offset,length,timestamp`, microseconds.

use super::raw::{Decoded, Raw};
use crate::fields::{Commas, put, put_all};
use crate::malformed::Problem;
use crate::request::{Kind, Request};

pub(super) const HEADER: &str = "device_id,opcode,offset,length,timestamp";

#[inline]
pub(super) fn decode(line: &[u8]) -> Decoded {
    let mut fields = Commas::new(line);
    let device = fields.device("device_id")?;
    let kind = match fields.next("opcode")? {
        b"R" => Kind::Read,
        b"W" => Kind::Write,
        _ => return Err(Problem::Unknown.of("opcode")),
    };
    let offset_bytes = fields.number("offset")?;
    let bytes = fields.number("length")?;
    let ticks = fields.number("timestamp")?;
    fields.end()?;
    Ok(Some(Raw { ticks, device, kind, offset_bytes, bytes }))
}

pub(super) fn encode(request: &Request, line: &mut Vec<u8>) {
    put(line, u64::from(request.device));
    line.extend_from_slice(if request.kind == Kind::Read { b",R," } else { b",W," });
    put_all(line, b',', &[request.offset_bytes, request.bytes, request.at_ns / 1000]);
    line.push(b'\n');
}
