//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

use super::raw::{Decoded, Raw};
use crate::fields::{Commas, put, put_all};
use crate::malformed::{FieldError, Problem};
use crate::names::Names;
use crate::request::{Kind, Request};

pub(super) const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

/// Windows counts in units of 100 ns, from the year 1601 on.
pub(super) const TICK_NS: u64 = 100;

/// 1970 in these units: the start of written traces.
const UNIX_EPOCH_TICKS: u64 = 116_444_736_000_000_000;

/// Disks of hosts after the first are numbered from multiples of this on.
const HOST_STRIDE: u32 = 1 << 16;

#[derive(Default)]
pub(crate) struct Decoder {
    hosts: Names,
}

impl Decoder {
    #[inline]
    pub(super) fn decode(&mut self, line: &[u8]) -> Decoded {
        let mut fields = Commas::new(line);
        let ticks = fields.number("Timestamp")?;
        let host = fields.next("Hostname")?;
        let disk = fields.device("DiskNumber")?;
        let kind = kind(fields.next("Type")?)?;
        let offset_bytes = fields.number("Offset")?;
        let bytes = fields.number("Size")?;
        // Derived traces leave it out. If present, it must be a number, or this is another format.
        if fields.more() {
            fields.number("ResponseTime")?;
        }
        fields.end()?;
        let device = self.device(host, disk)?;
        Ok(Some(Raw { ticks, device, kind, offset_bytes, bytes }))
    }

    /// The number of a device. A trace usually has one host: then devices keep their own numbers.
    fn device(&mut self, host: &[u8], disk: u32) -> Result<u32, FieldError> {
        match self.hosts.number(host).ok_or(Problem::TooMany.of("Hostname"))? {
            0 => Ok(disk),
            _ if disk >= HOST_STRIDE => Err(Problem::TooLarge.of("DiskNumber")),
            host => Ok(host * HOST_STRIDE + disk),
        }
    }
}

fn kind(text: &[u8]) -> Result<Kind, FieldError> {
    if text.eq_ignore_ascii_case(b"Read") {
        Ok(Kind::Read)
    } else if text.eq_ignore_ascii_case(b"Write") {
        Ok(Kind::Write)
    } else {
        Err(Problem::Unknown.of("Type"))
    }
}

pub(super) fn encode(request: &Request, response_ns: u64, line: &mut Vec<u8>) {
    put(line, UNIX_EPOCH_TICKS + request.at_ns / TICK_NS);
    line.extend_from_slice(b",softflash,");
    put(line, u64::from(request.device));
    let kind: &[u8] = if request.kind == Kind::Read { b",Read," } else { b",Write," };
    line.extend_from_slice(kind);
    put_all(line, b',', &[request.offset_bytes, request.bytes, response_ns / TICK_NS]);
    line.push(b'\n');
}
