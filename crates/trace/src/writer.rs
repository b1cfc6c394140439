//! Writing a trace.

use crate::compression::{Compression, Output};
use crate::format::{Encoder, Format};
use crate::request::{Kind, Request};
use serde::Serialize;
use std::io::{self, Write};

/// Requests that were not written because the format cannot represent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LeftOut {
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
}

/// Writes requests in a format. Requests that the format cannot represent are skipped and counted.
/// Times are rounded down to the format's units; addresses are rounded outward to sectors, if the
/// format has sectors.
pub struct Writer<W: Write> {
    output: Output<W>,
    format: Format,
    encoder: Encoder,
    line: Vec<u8>,
    left_out: LeftOut,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    pub fn begin(output: W, format: Format, compression: Compression) -> io::Result<Writer<W>> {
        Writer::with_vscsi_tick(output, format, compression, 1_000_000_000)
    }

    /// As [`begin`](Writer::begin), with another time unit of vscsi than seconds.
    pub fn with_vscsi_tick(
        output: W,
        format: Format,
        compression: Compression,
        vscsi_tick_ns: u64,
    ) -> io::Result<Writer<W>> {
        let mut output = Output::begin(output, compression)?;
        let encoder = Encoder::new(format, vscsi_tick_ns);
        let header = encoder.header();
        if !header.is_empty() {
            output.write_all(header.as_bytes())?;
            output.write_all(b"\n")?;
        }
        Ok(Writer { output, format, encoder, line: Vec::new(), left_out: LeftOut::default() })
    }

    /// Writes a request.
    #[inline]
    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        self.write_with_response(request, 0)
    }

    /// Writes a request with its response time, which is kept by msr only.
    #[inline]
    pub fn write_with_response(&mut self, request: &Request, response_ns: u64) -> io::Result<()> {
        if !self.format.can_say(request.kind) {
            match request.kind {
                Kind::Flush => self.left_out.flushes += 1,
                _ => self.left_out.trims += 1,
            }
            return Ok(());
        }
        self.line.clear();
        self.encoder.encode(request, response_ns, &mut self.line);
        self.output.write_all(&self.line)
    }

    /// Writes the end of the trace; returns the stream and the counts of skipped requests.
    pub fn finish(mut self) -> io::Result<(W, LeftOut)> {
        self.line.clear();
        self.encoder.end(&mut self.line);
        self.output.write_all(&self.line)?;
        Ok((self.output.finish()?, self.left_out))
    }
}
