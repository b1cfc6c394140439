//! The formats: one file each, with the decoder and the encoder of a line.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

mod alibaba;
mod blkparse;
mod fio;
mod fio_v2;
mod fio_v3;
mod mqsim;
mod msr;
mod raw;
mod tencent;
mod vscsi;

use crate::malformed::{FieldError, Problem};
use crate::request::{Kind, Request};
use raw::Decoded;
pub(crate) use raw::Raw;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A format that traces are published in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
    Msr,
    /// fio's I/O log, version 2: waits instead of times.
    FioV2,
    /// fio's I/O log, version 3: microseconds.
    FioV3,
    /// The text output of `blkparse` for Linux block traces.
    Blkparse,
    /// CloudPhysics: `version,time,op,size,lbn`.
    Vscsi,
    /// MQSim's input: `time device sector sectors type`.
    Mqsim,
    /// Alibaba's cloud disks: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
    /// Tencent's cloud disks: `Timestamp,Offset,Size,IOType,VolumeID`.
    Tencent,
}

impl Format {
    /// All formats, in the order in which they are tried; see [`detect`](crate::detect()).
    pub const ALL: [Format; 8] = [
        Format::FioV3,
        Format::FioV2,
        Format::Msr,
        Format::Alibaba,
        Format::Blkparse,
        Format::Mqsim,
        Format::Vscsi,
        Format::Tencent,
    ];

    /// Its name, on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::FioV2 => "fio-v2",
            Format::FioV3 => "fio-v3",
            Format::Blkparse => "blkparse",
            Format::Vscsi => "vscsi",
            Format::Mqsim => "mqsim",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }

    /// Whether it can represent such a request; a writer skips requests that it cannot represent.
    pub fn can_say(self, kind: Kind) -> bool {
        match self {
            Format::FioV2 | Format::FioV3 | Format::Blkparse | Format::Vscsi => true,
            Format::Msr | Format::Mqsim | Format::Alibaba | Format::Tencent => {
                matches!(kind, Kind::Read | Kind::Write)
            }
        }
    }

    /// Nanoseconds per time unit; `vscsi_tick_ns` is that of vscsi.
    pub(crate) fn tick_ns(self, vscsi_tick_ns: u64) -> u64 {
        match self {
            Format::Msr => msr::TICK_NS,
            Format::FioV2 | Format::Blkparse | Format::Mqsim => 1,
            Format::FioV3 | Format::Alibaba => 1000,
            Format::Tencent => 1_000_000_000,
            Format::Vscsi => vscsi_tick_ns,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no format has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no trace format `{name}`; there are {}", Format::names())]
pub struct NoSuchFormat {
    /// The name.
    pub name: String,
}

impl FromStr for Format {
    type Err = NoSuchFormat;

    fn from_str(name: &str) -> Result<Format, NoSuchFormat> {
        let named = Format::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| NoSuchFormat { name: name.to_owned() })
    }
}

/// Reads the lines of one trace.
pub(crate) enum Decoder {
    Msr(msr::Decoder),
    FioV2(fio_v2::Decoder),
    FioV3(fio_v3::Decoder),
    Blkparse(blkparse::Decoder),
    Vscsi(vscsi::Decoder),
    Mqsim,
    Alibaba,
    Tencent,
}

impl Decoder {
    /// A decoder for a trace that begins with `beginning`: the variants of a few formats must be
    /// detected.
    pub(crate) fn new(format: Format, beginning: &[u8]) -> Decoder {
        match format {
            Format::Msr => Decoder::Msr(msr::Decoder::default()),
            Format::FioV2 => Decoder::FioV2(fio_v2::Decoder::default()),
            Format::FioV3 => Decoder::FioV3(fio_v3::Decoder::default()),
            Format::Blkparse => Decoder::Blkparse(blkparse::Decoder::new(beginning)),
            Format::Vscsi => Decoder::Vscsi(vscsi::Decoder::new(beginning)),
            Format::Mqsim => Decoder::Mqsim,
            Format::Alibaba => Decoder::Alibaba,
            Format::Tencent => Decoder::Tencent,
        }
    }

    /// Whether the first line is a header rather than a request.
    pub(crate) fn header(&self, first: &[u8]) -> Result<bool, FieldError> {
        let (header, required) = match self {
            Decoder::Msr(_) => (msr::HEADER, false),
            Decoder::FioV2(_) => (fio_v2::HEADER, true),
            Decoder::FioV3(_) => (fio_v3::HEADER, true),
            Decoder::Vscsi(_) => (vscsi::HEADER, false),
            Decoder::Alibaba => (alibaba::HEADER, false),
            Decoder::Tencent => (tencent::HEADER, false),
            Decoder::Blkparse(_) | Decoder::Mqsim => return Ok(false),
        };
        match first.trim_ascii().eq_ignore_ascii_case(header.as_bytes()) {
            false if required => Err(Problem::Unknown.of("header")),
            is_header => Ok(is_header),
        }
    }

    /// Reads a line.
    #[inline]
    pub(crate) fn decode(&mut self, line: &[u8]) -> Decoded {
        match self {
            Decoder::Msr(decoder) => decoder.decode(line),
            Decoder::FioV2(decoder) => decoder.decode(line),
            Decoder::FioV3(decoder) => decoder.decode(line),
            Decoder::Blkparse(decoder) => decoder.decode(line),
            Decoder::Vscsi(decoder) => decoder.decode(line),
            Decoder::Mqsim => mqsim::decode(line),
            Decoder::Alibaba => alibaba::decode(line),
            Decoder::Tencent => tencent::decode(line),
        }
    }
}

/// Writes the lines of one trace.
pub(crate) enum Encoder {
    Msr,
    FioV2(fio_v2::Encoder),
    FioV3(fio_v3::Encoder),
    Blkparse(blkparse::Encoder),
    Vscsi { tick_ns: u64 },
    Mqsim,
    Alibaba,
    Tencent,
}

impl Encoder {
    pub(crate) fn new(format: Format, vscsi_tick_ns: u64) -> Encoder {
        match format {
            Format::Msr => Encoder::Msr,
            Format::FioV2 => Encoder::FioV2(fio_v2::Encoder::default()),
            Format::FioV3 => Encoder::FioV3(fio_v3::Encoder::default()),
            Format::Blkparse => Encoder::Blkparse(blkparse::Encoder::default()),
            Format::Vscsi => Encoder::Vscsi { tick_ns: vscsi_tick_ns.max(1) },
            Format::Mqsim => Encoder::Mqsim,
            Format::Alibaba => Encoder::Alibaba,
            Format::Tencent => Encoder::Tencent,
        }
    }

    /// The header, where the format has one that readers expect.
    pub(crate) fn header(&self) -> &'static str {
        match self {
            Encoder::FioV2(_) => fio_v2::HEADER,
            Encoder::FioV3(_) => fio_v3::HEADER,
            Encoder::Vscsi { .. } => vscsi::HEADER,
            _ => "",
        }
    }

    /// Appends the lines of a request that the format can represent; the response time if it has
    /// one.
    #[inline]
    pub(crate) fn encode(&mut self, request: &Request, response_ns: u64, line: &mut Vec<u8>) {
        match self {
            Encoder::Msr => msr::encode(request, response_ns, line),
            Encoder::FioV2(encoder) => encoder.encode(request, line),
            Encoder::FioV3(encoder) => encoder.encode(request, line),
            Encoder::Blkparse(encoder) => encoder.encode(request, line),
            Encoder::Vscsi { tick_ns } => vscsi::encode(request, *tick_ns, line),
            Encoder::Mqsim => mqsim::encode(request, line),
            Encoder::Alibaba => alibaba::encode(request, line),
            Encoder::Tencent => tencent::encode(request, line),
        }
    }

    /// Appends the lines after the last request.
    pub(crate) fn end(&mut self, line: &mut Vec<u8>) {
        match self {
            Encoder::FioV2(encoder) => encoder.end(line),
            Encoder::FioV3(encoder) => encoder.end(line),
            _ => {}
        }
    }
}
