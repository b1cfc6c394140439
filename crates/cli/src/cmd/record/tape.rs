//! Writes a trace, up to a limit, and counts its requests.

use serde::Serialize;
use softflash_trace::{Compression, Format, Kind, LeftOut, Request, Writer};
use std::io::{self, Write};
use std::path::Path;

/// Counts of the requests of a trace.
#[derive(Debug, Default, Serialize)]
pub struct Counts {
    /// Number of requests in the trace.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of trims.
    pub trims: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Requests that the format cannot represent.
    pub left_out: LeftOut,
}

/// A trace that is being written.
pub struct Tape<W: Write> {
    writer: Writer<W>,
    format: Format,
    began_at_ns: Option<u64>,
    limit: u64,
    counts: Counts,
}

impl<W: Write> Tape<W> {
    /// Starts a trace of at most `limit` requests, compressed as its `name` says.
    pub fn begin(output: W, format: Format, name: &Path, limit: Option<u64>) -> io::Result<Self> {
        Ok(Tape {
            writer: Writer::begin(output, format, Compression::of_name(name))?,
            format,
            began_at_ns: None,
            limit: limit.unwrap_or(u64::MAX),
            counts: Counts::default(),
        })
    }

    /// Requests written so far.
    pub fn requests(&self) -> u64 {
        self.counts.requests
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.counts.requests >= self.limit
    }

    /// Writes a request with its response time, unless the limit is reached. The first one has the
    /// time 0.
    pub fn write(&mut self, request: Request, response_ns: u64) -> io::Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let began_at_ns = *self.began_at_ns.get_or_insert(request.at_ns);
        if self.format.can_say(request.kind) {
            let count = match request.kind {
                Kind::Read => &mut self.counts.reads,
                Kind::Write => &mut self.counts.writes,
                Kind::Trim => &mut self.counts.trims,
                Kind::Flush => &mut self.counts.flushes,
            };
            *count += 1;
            self.counts.requests += 1;
        }
        let at_ns = request.at_ns.saturating_sub(began_at_ns);
        self.writer.write_with_response(&Request { at_ns, ..request }, response_ns)
    }

    /// Writes buffered data.
    pub fn finish(self) -> io::Result<(W, Counts)> {
        let (output, left_out) = self.writer.finish()?;
        Ok((output, Counts { left_out, ..self.counts }))
    }
}
