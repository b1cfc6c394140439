//! MQSim's input: `time device sector sectors type`, nanoseconds; 0 writes and 1 reads.

use super::raw::{Decoded, Raw};
use crate::fields::{Words, put_all, sectors_of};
use crate::malformed::Problem;
use crate::request::{Kind, Request};

#[inline]
pub(super) fn decode(line: &[u8]) -> Decoded {
    let mut words = Words::new(line);
    let ticks = words.number("time")?;
    let device =
        u32::try_from(words.number("device")?).map_err(|_| Problem::TooLarge.of("device"))?;
    let offset_bytes = words.sectors("sector")?;
    let bytes = words.sectors("sectors")?;
    let kind = match words.next("type")? {
        b"0" => Kind::Write,
        b"1" => Kind::Read,
        _ => return Err(Problem::Unknown.of("type")),
    };
    words.end()?;
    Ok(Some(Raw { ticks, device, kind, offset_bytes, bytes }))
}

pub(super) fn encode(request: &Request, line: &mut Vec<u8>) {
    let (first, sectors) = sectors_of(request.offset_bytes, request.bytes);
    let kind = u64::from(request.kind == Kind::Read);
    put_all(line, b' ', &[request.at_ns, u64::from(request.device), first, sectors, kind]);
    line.push(b'\n');
}
