//! Converts recorded events to a block trace.

use super::events::{Access, Batch, Event};
use super::placement::{Placement, Range};
use serde::Serialize;
use softflash_trace::{Compression, Format, Kind, LeftOut, Request, Writer};
use std::io::{self, Write};
use std::path::Path;

/// Summary of a recording.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Number of requests in the trace.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of trims.
    pub trims: u64,
    /// Reads of keys that did not exist; they cause no request.
    pub misses: u64,
    /// Number of keys with a range at the end.
    pub keys: usize,
    /// Events that the server dropped.
    pub dropped: u64,
    /// Requests that the format cannot represent.
    pub left_out: LeftOut,
}

/// Converts events to requests and writes them.
pub struct Tape<W: Write> {
    writer: Writer<W>,
    format: Format,
    placement: Placement,
    began_at_ns: Option<u64>,
    limit: u64,
    tally: Tally,
}

impl<W: Write> Tape<W> {
    /// Starts a trace of at most `limit` requests, compressed as its `name` says.
    pub fn begin(output: W, format: Format, name: &Path, limit: Option<u64>) -> io::Result<Self> {
        Ok(Tape {
            writer: Writer::begin(output, format, Compression::of_name(name))?,
            format,
            placement: Placement::default(),
            began_at_ns: None,
            limit: limit.unwrap_or(u64::MAX),
            tally: Tally::default(),
        })
    }

    /// Writes a batch of events.
    pub fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for event in &batch.events {
            if self.is_full() {
                // Later events are not part of the trace, and neither are drops after them.
                return Ok(());
            }
            self.event(event)?;
        }
        self.tally.dropped += if self.is_full() { 0 } else { batch.dropped };
        Ok(())
    }

    /// Requests written so far.
    pub fn requests(&self) -> u64 {
        self.tally.requests
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.tally.requests >= self.limit
    }

    /// Writes buffered data.
    pub fn finish(mut self) -> io::Result<(W, Tally)> {
        self.tally.keys = self.placement.keys();
        let (output, left_out) = self.writer.finish()?;
        Ok((output, Tally { left_out, ..self.tally }))
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event.access {
            Access::Read(None) => {
                self.tally.misses += 1;
                Ok(())
            }
            Access::Read(Some(bytes)) => self.access(event, Kind::Read, bytes),
            Access::Write(bytes) => self.access(event, Kind::Write, bytes),
            Access::Delete => {
                let freed = self.placement.remove(event.key);
                self.trim(event, freed)
            }
            Access::Clear => {
                let freed = self.placement.clear();
                self.trim(event, freed)
            }
        }
    }

    fn access(&mut self, event: &Event, kind: Kind, bytes: u64) -> io::Result<()> {
        let (outgrown, range) = self.placement.place(event.key, bytes);
        self.trim(event, outgrown)?;
        self.request(event, kind, range)
    }

    fn trim(&mut self, event: &Event, freed: Option<Range>) -> io::Result<()> {
        freed.map_or(Ok(()), |range| self.request(event, Kind::Trim, range))
    }

    fn request(&mut self, event: &Event, kind: Kind, range: Range) -> io::Result<()> {
        // The trim of an outgrown range may have been the last request.
        if self.is_full() {
            return Ok(());
        }
        let began_at_ns = *self.began_at_ns.get_or_insert(event.at_ns);
        if self.format.can_say(kind) {
            let count = match kind {
                Kind::Read => &mut self.tally.reads,
                Kind::Write => &mut self.tally.writes,
                Kind::Trim | Kind::Flush => &mut self.tally.trims,
            };
            *count += 1;
            self.tally.requests += 1;
        }
        self.writer.write(&Request {
            at_ns: event.at_ns.saturating_sub(began_at_ns),
            device: 0,
            kind,
            offset_bytes: range.offset_bytes,
            bytes: range.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(
        format: Format,
        limit: Option<u64>,
        accesses: &[(u64, u64, Access)],
    ) -> (String, Tally) {
        let mut tape = Tape::begin(Vec::new(), format, Path::new("trace"), limit).unwrap();
        let event = |&(at_ns, key, access): &_| Event { at_ns, key, access };
        let events = accesses.iter().map(event).collect();
        tape.write(&Batch { events, dropped: 3 }).unwrap();
        let (bytes, tally) = tape.finish().unwrap();
        (String::from_utf8(bytes).unwrap(), tally)
    }

    const ACCESSES: &[(u64, u64, Access)] = &[
        (1_000_000, 1, Access::Read(None)),
        (2_000_000, 1, Access::Write(5000)),
        (2_001_000, 2, Access::Read(Some(100))),
        (2_002_000, 1, Access::Read(Some(5000))),
        (2_003_000, 1, Access::Write(9000)),
        (2_004_000, 1, Access::Delete),
        (2_005_000, 1, Access::Delete),
        (2_006_000, 0, Access::Clear),
    ];

    #[test]
    fn events_become_requests_to_the_ranges_of_their_keys() {
        let (text, tally) = recorded(Format::FioV3, None, ACCESSES);
        let requests: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once(" /softflash/0 ").map(|(_, request)| request))
            .filter(|request| request.contains(' '))
            .collect();
        let expected = [
            "write 0 8192",
            "read 8192 4096",
            "read 0 8192",
            "trim 0 8192",
            "write 12288 12288",
            "trim 12288 12288",
            "trim 0 24576",
        ];
        assert_eq!(requests, expected);
        assert!(text.contains("\n0 /softflash/0 write 0 8192\n"), "times begin at 0: {text}");
        assert!(text.contains("\n6 /softflash/0 trim 0 24576\n"), "microseconds: {text}");
        let counts = (tally.requests, tally.reads, tally.writes, tally.trims, tally.misses);
        assert_eq!(counts, (7, 2, 2, 3, 1));
        assert_eq!((tally.keys, tally.dropped), (0, 3));
    }

    #[test]
    fn requests_that_a_format_lacks_do_not_count() {
        let (text, tally) = recorded(Format::Mqsim, None, ACCESSES);
        assert_eq!(text.lines().count(), 4);
        assert_eq!((tally.requests, tally.trims, tally.left_out.trims), (4, 0, 3));
    }

    #[test]
    fn the_limit_is_exact() {
        let (text, tally) = recorded(Format::Mqsim, Some(3), ACCESSES);
        assert_eq!((text.lines().count(), tally.requests), (3, 3));
        assert_eq!(tally.dropped, 0, "what comes after the last request is not missed");
    }
}
