//! CloudPhysics: `version,time,op,size,lbn`, one line per SCSI command of a virtual disk.

use super::raw::{Decoded, Raw};
use crate::fields::{Commas, SECTOR_BYTES, hexadecimal, number, put, put_all, sectors_of};
use crate::malformed::{FieldError, Problem};
use crate::request::{Kind, Request};

pub(super) const HEADER: &str = "version,time,op,size,lbn";

/// The radix of op codes: published files have either one and do not state it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Radix {
    Hexadecimal,
    Decimal,
}

pub(crate) struct Decoder {
    radix: Radix,
}

impl Decoder {
    pub(super) fn new(beginning: &[u8]) -> Decoder {
        Decoder { radix: radix_of(beginning) }
    }

    #[inline]
    pub(super) fn decode(&self, line: &[u8]) -> Decoded {
        let mut fields = Commas::new(line);
        if !matches!(fields.next("version")?, b"1" | b"2") {
            return Err(Problem::Unknown.of("version"));
        }
        let ticks = fields.number("time")?;
        let code = self.code(fields.next("op")?)?;
        let bytes = fields.number("size")?;
        let offset_bytes = fields.sectors("lbn")?;
        fields.end()?;
        Ok(kind(code).map(|kind| Raw { ticks, device: 0, kind, offset_bytes, bytes }))
    }

    #[inline]
    fn code(&self, text: &[u8]) -> Result<u8, FieldError> {
        let prefixed = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"));
        let code = match (prefixed, self.radix) {
            (Some(digits), _) => hexadecimal(digits),
            (None, Radix::Hexadecimal) => hexadecimal(text),
            (None, Radix::Decimal) => number(text, "op").ok().and_then(|code| code.try_into().ok()),
        };
        let code = code.ok_or(Problem::NotANumber.of("op"))?;
        u8::try_from(code).map_err(|_| Problem::TooLarge.of("op"))
    }
}

/// The kind of a SCSI command; `None` for one without data (inquiries, mode pages, reservations).
#[inline]
fn kind(code: u8) -> Option<Kind> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Kind::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Kind::Write),
        // WRITE AND VERIFY, WRITE SAME.
        0x2e | 0xae | 0x8e | 0x41 | 0x93 => Some(Kind::Write),
        0x42 => Some(Kind::Trim),
        // SYNCHRONIZE CACHE.
        0x35 | 0x91 => Some(Kind::Flush),
        _ => None,
    }
}

/// Detects the radix by the first lines. As hexadecimal numbers, reads and writes have a letter or
/// are 28 or 88, which are no reads or writes as decimal numbers. Codes such as 40, 42, 136 and 138
/// are decimal unless a hexadecimal code occurs too.
fn radix_of(beginning: &[u8]) -> Radix {
    let mut decimal = false;
    for line in
        beginning.split(|&byte| byte == b'\n').skip_while(|line| line.starts_with(b"version"))
    {
        let Some(op) = line.split(|&byte| byte == b',').nth(2).map(<[u8]>::trim_ascii) else {
            continue;
        };
        if op.starts_with(b"0x") || op.starts_with(b"0X") {
            continue;
        }
        let letter = op.iter().any(u8::is_ascii_alphabetic);
        if letter
            || (op.starts_with(b"0") && op.len() > 1)
            || matches!(op, b"28" | b"88" | b"35" | b"91")
        {
            return Radix::Hexadecimal;
        }
        decimal |= matches!(op, b"8" | b"10" | b"40" | b"42" | b"136" | b"138" | b"168" | b"170");
    }
    if decimal { Radix::Decimal } else { Radix::Hexadecimal }
}

pub(super) fn encode(request: &Request, tick_ns: u64, line: &mut Vec<u8>) {
    let (first, sectors) = sectors_of(request.offset_bytes, request.bytes);
    let aligned = request.offset_bytes.is_multiple_of(SECTOR_BYTES);
    let bytes = if aligned { request.bytes } else { sectors.saturating_mul(SECTOR_BYTES) };
    let short = first.saturating_add(sectors) <= 1 << 32 && sectors <= u64::from(u16::MAX);
    let op: &[u8] = match (request.kind, short) {
        (Kind::Read, true) => b",28,",
        (Kind::Read, false) => b",88,",
        (Kind::Write, true) => b",2a,",
        (Kind::Write, false) => b",8a,",
        // With its prefix, because a trace of trims alone would be detected as decimal.
        (Kind::Trim, _) => b",0x42,",
        (Kind::Flush, _) => b",35,",
    };
    line.extend_from_slice(b"1,");
    put(line, request.at_ns / tick_ns);
    line.extend_from_slice(op);
    put_all(line, b',', &[bytes, first]);
    line.push(b'\n');
}
