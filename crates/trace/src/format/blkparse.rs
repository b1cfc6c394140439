//! The text output of `blkparse` for Linux block traces, in its default form.
//!
//! A request has several events: queued (Q), issued to the driver (D), completed (C). One of them
//! is decoded as the request: Q if the first lines have any, as it is the original request;
//! otherwise D, otherwise C, for traces recorded with a mask.
//!
//! Times are relative to the first event of the trace. An event that blkparse sorts behind it has a
//! negative time of some nanoseconds, which blkparse prints as an unsigned number of 64 bits, with
//! its seconds cut to 32 bits: -616 ns is `1266874889.709551000`.

use super::raw::{Decoded, Raw};
use crate::fields::{SECTOR_BYTES, Words, number, put, sectors_of};
use crate::malformed::{FieldError, Problem};
use crate::request::{Kind, Request};
use std::io::Write;

/// As in Linux: 12 bits of major number, 20 of minor.
const MINOR_BITS: u32 = 20;

pub(crate) struct Decoder {
    /// The event that is decoded as a request.
    event: u8,
    /// The statistics at the end have begun.
    ended: bool,
    /// Whether times are relative, so that one shortly before the largest of 64 bits is negative.
    relative: bool,
}

/// Events of a trace with a time below this have relative times.
const RELATIVE_NS: u64 = 86_400_000_000_000;

/// The most that a time is below 0. All relative times are later by it, so that none is negative.
const MOST_NEGATIVE_NS: u64 = 3_600_000_000_000;

/// What is lost of 2^64 nanoseconds when seconds are cut to 32 bits.
const CUT_NS: u64 = 4 * (1 << 32) * 1_000_000_000;

impl Decoder {
    pub(super) fn new(beginning: &[u8]) -> Decoder {
        let seen = |event: u8| {
            beginning.split(|&byte| byte == b'\n').any(|line| {
                let mut words = Words::new(line);
                let is_event = words.word().is_some_and(|word| device(word).is_ok());
                let action = (0..5).fold(None, |_, _| words.word());
                is_event && action == Some(&[event][..])
            })
        };
        let event = [b'Q', b'D', b'C'].into_iter().find(|event| seen(*event)).unwrap_or(b'Q');
        let time = |line: &[u8]| {
            let mut words = Words::new(line);
            device(words.word()?).ok()?;
            let time = (0..3).fold(None, |_, _| words.word());
            nanoseconds(time?).ok()
        };
        let mut times = beginning.split(|&byte| byte == b'\n').filter_map(time);
        let relative = times.any(|ns| ns < RELATIVE_NS);
        Decoder { event, ended: false, relative }
    }

    /// The time of an event, later than a wrapped negative one; see [`MOST_NEGATIVE_NS`].
    #[inline]
    fn ticks(&self, ns: u64) -> Result<u64, FieldError> {
        if !self.relative {
            return Ok(ns);
        }
        match ns.checked_add(CUT_NS).map(|whole| u64::MAX - whole) {
            Some(below) if below < MOST_NEGATIVE_NS => Ok(MOST_NEGATIVE_NS - 1 - below),
            _ => ns.checked_add(MOST_NEGATIVE_NS).ok_or(Problem::TooLarge.of("time")),
        }
    }

    #[inline]
    pub(super) fn decode(&mut self, line: &[u8]) -> Decoded {
        let mut words = Words::new(line);
        let first = words.next("device")?;
        if self.ended || self.is_statistics(first) {
            return Ok(None);
        }
        let device = device(first)?;
        words.next("cpu")?;
        words.next("sequence")?;
        let time = words.next("time")?;
        words.next("process")?;
        if words.next("action")? != [self.event] {
            return Ok(None);
        }
        let ticks = self.ticks(nanoseconds(time)?)?;
        let rwbs = words.next("rwbs")?;
        let (offset_bytes, bytes) = data(&mut words)?.unwrap_or_default();
        let kind = kind(rwbs, bytes > 0)?;
        Ok(kind.map(|kind| Raw { ticks, device, kind, offset_bytes, bytes }))
    }

    /// Statistics follow the last event; the list of input files precedes the first.
    fn is_statistics(&mut self, first: &[u8]) -> bool {
        self.ended = first.starts_with(b"CPU") || matches!(first, b"Total" | b"Throughput");
        self.ended || first == b"Input"
    }
}

/// `major,minor`; blanks after the minor number are removed already.
#[inline]
fn device(word: &[u8]) -> Result<u32, FieldError> {
    let comma =
        word.iter().position(|&byte| byte == b',').ok_or(Problem::NotANumber.of("device"))?;
    let (major, minor) = word.split_at_checked(comma).unwrap_or_default();
    let major = number(major, "device")?;
    let minor = number(minor.get(1..).unwrap_or_default(), "device")?;
    if major >> (u32::BITS - MINOR_BITS) != 0 || minor >> MINOR_BITS != 0 {
        return Err(Problem::TooLarge.of("device"));
    }
    u32::try_from(major << MINOR_BITS | minor).map_err(|_| Problem::TooLarge.of("device"))
}

/// `seconds.nanoseconds`, nine digits behind the point.
#[inline]
fn nanoseconds(word: &[u8]) -> Result<u64, FieldError> {
    let field = "time";
    let point = word.iter().position(|&byte| byte == b'.').ok_or(Problem::NotANumber.of(field))?;
    let (seconds, fraction) = word.split_at_checked(point).unwrap_or_default();
    let fraction = fraction.get(1..).unwrap_or_default();
    if fraction.len() != 9 {
        return Err(Problem::NotANumber.of(field));
    }
    let seconds = number(seconds, field)?.checked_mul(1_000_000_000);
    let total = seconds.and_then(|seconds| seconds.checked_add(number(fraction, field).ok()?));
    number(fraction, field)?;
    total.ok_or(Problem::TooLarge.of(field))
}

/// Offset and length of `sector + sectors`; `None` for an event without data, such as a flush or a
/// SCSI command.
#[inline]
fn data(words: &mut Words<'_>) -> Result<Option<(u64, u64)>, FieldError> {
    let bracket = |word: &[u8]| word.starts_with(b"(") || word.starts_with(b"[");
    let Some(sector) = words.word().filter(|word| !bracket(word)) else { return Ok(None) };
    let sector = number(sector, "sector")?.checked_mul(SECTOR_BYTES);
    let offset_bytes = sector.ok_or(Problem::TooLarge.of("sector"))?;
    match words.word() {
        Some(b"+") => Ok(Some((offset_bytes, words.sectors("sectors")?))),
        Some(word) if bracket(word) => Ok(None),
        Some(_) => Err(Problem::Unknown.of("sectors")),
        None => Err(Problem::Missing.of("sectors")),
    }
}

/// The request kind of the letters: a leading `F` is a flush before the request, a later `F` a
/// write-through; `S`, `M`, `A` are hints.
#[inline]
fn kind(rwbs: &[u8], has_data: bool) -> Result<Option<Kind>, FieldError> {
    let (flush, rest) = match rwbs.strip_prefix(b"F") {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    let operation = match rest.first() {
        Some(b'R') => Some(Kind::Read),
        Some(b'W') => Some(Kind::Write),
        Some(b'D') => Some(Kind::Trim),
        // No data (`N`), or a command to a zone (`Z`).
        Some(b'N' | b'Z') => None,
        _ if flush => None,
        _ => return Err(Problem::Unknown.of("rwbs")),
    };
    Ok(match operation {
        Some(kind) if has_data => Some(kind),
        _ => flush.then_some(Kind::Flush),
    })
}

#[derive(Default)]
pub(crate) struct Encoder {
    sequence: u64,
}

impl Encoder {
    pub(super) fn encode(&mut self, request: &Request, line: &mut Vec<u8>) {
        self.sequence += 1;
        let (major, minor) =
            (request.device >> MINOR_BITS, request.device & ((1 << MINOR_BITS) - 1));
        let (seconds, fraction) = (request.at_ns / 1_000_000_000, request.at_ns % 1_000_000_000);
        let sequence = self.sequence;
        let rwbs = match request.kind {
            Kind::Read => "R",
            Kind::Write => "W",
            Kind::Trim => "D",
            Kind::Flush => "FN",
        };
        // Writing into memory does not fail.
        let _ = write!(
            line,
            "{major:3},{minor:<3} {:2} {sequence:8} {seconds:5}.{fraction:09} {:5} {:>2} {rwbs:>3} ",
            0, 0, "Q"
        );
        let (first, sectors) = sectors_of(request.offset_bytes, request.bytes);
        if sectors > 0 {
            put(line, first);
            line.extend_from_slice(b" + ");
            put(line, sectors);
            line.push(b' ');
        }
        line.extend_from_slice(b"[softflash]\n");
    }
}
