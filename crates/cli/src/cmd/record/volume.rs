//! Requests to a volume, as the server has received them.

use super::source::Source;
use super::tape::Tape;
use serde::Serialize;
use softflash_base::histogram::{LatencyHistogram, LatencySummary};
use softflash_lab_cli::simulated::Latency;
use softflash_trace::{Kind, Request};
use std::io::{self, Write};

/// A recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeEvent {
    at_ns: u64,
    kind: Kind,
    offset_bytes: u64,
    bytes: u64,
    /// None: it was under way at the end of the recording.
    latency_ns: Option<u64>,
}

/// A recording of a volume or a snapshot.
pub struct Volume {
    name: String,
    latencies: [(Kind, LatencyHistogram); 4],
}

/// Latencies by kind, in nanoseconds, of requests that ended during the recording.
#[derive(Debug, Serialize)]
pub struct VolumeFigures {
    volume: String,
    read_latency_ns: Latency,
    write_latency_ns: Latency,
    trim_latency_ns: Latency,
    flush_latency_ns: Latency,
}

impl Volume {
    /// A recording of the volume with this name, or the snapshot `VOLUME@SNAPSHOT`.
    pub fn new(name: String) -> Volume {
        let kinds = [Kind::Read, Kind::Write, Kind::Trim, Kind::Flush];
        Volume { name, latencies: kinds.map(|kind| (kind, LatencyHistogram::new())) }
    }
}

impl Source for Volume {
    type Event = VolumeEvent;
    type Figures = VolumeFigures;

    fn volume(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// `nanoseconds kind offset bytes latency`
    fn event(line: &str) -> Option<VolumeEvent> {
        let [at_ns, kind, offset_bytes, bytes, latency] =
            line.split(' ').collect::<Vec<&str>>().try_into().ok()?;
        Some(VolumeEvent {
            at_ns: at_ns.parse().ok()?,
            kind: match kind {
                "read" => Kind::Read,
                "write" => Kind::Write,
                "discard" => Kind::Trim,
                "flush" => Kind::Flush,
                _ => return None,
            },
            offset_bytes: offset_bytes.parse().ok()?,
            bytes: bytes.parse().ok()?,
            latency_ns: if latency == "-" { None } else { Some(latency.parse().ok()?) },
        })
    }

    fn put<W: Write>(&mut self, event: &VolumeEvent, tape: &mut Tape<W>) -> io::Result<()> {
        let VolumeEvent { at_ns, kind, offset_bytes, bytes, latency_ns } = *event;
        if let (Some(latency_ns), false) = (latency_ns, tape.is_full()) {
            let of_kind = self.latencies.iter_mut().filter(|(of, _)| *of == kind);
            of_kind.for_each(|(_, latencies)| latencies.record_ns(latency_ns));
        }
        let request = Request { at_ns, device: 0, kind, offset_bytes, bytes };
        tape.write(request, latency_ns.unwrap_or(0))
    }

    fn figures(self) -> VolumeFigures {
        let [read_latency_ns, write_latency_ns, trim_latency_ns, flush_latency_ns] =
            self.latencies.map(|(_, latencies)| latencies.summary().into());
        VolumeFigures {
            volume: self.name,
            read_latency_ns,
            write_latency_ns,
            trim_latency_ns,
            flush_latency_ns,
        }
    }

    fn tell(&self) -> (String, Vec<String>) {
        let used = self.latencies.iter().filter(|(_, latencies)| latencies.count() > 0);
        let lines = used.map(|(kind, latencies)| {
            let LatencySummary { p50_ns, p99_ns, max_ns, .. } = latencies.summary();
            let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| ns as f64 / 1000.0);
            let kind = kind.name();
            format!("{kind} latency: median {p50:.1} µs, p99 {p99:.1} µs, longest {max:.1} µs")
        });
        (self.name.clone(), lines.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let event = |at_ns, kind, offset_bytes, bytes, latency_ns| {
            Some(VolumeEvent { at_ns, kind, offset_bytes, bytes, latency_ns })
        };
        let read = Volume::event;
        assert_eq!(read("5 read 4096 512 70"), event(5, Kind::Read, 4096, 512, Some(70)));
        assert_eq!(read("6 write 0 1 0"), event(6, Kind::Write, 0, 1, Some(0)));
        assert_eq!(read("7 discard 0 9 -"), event(7, Kind::Trim, 0, 9, None));
        assert_eq!(read("8 flush 0 0 1"), event(8, Kind::Flush, 0, 0, Some(1)));
        for bad in
            ["", "5 read 0 1", "5 read 0 1 2 3", "5 push 0 1 2", "x read 0 1 2", "5 read - 1 2"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
