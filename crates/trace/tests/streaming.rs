//! A long trace through a pipe: memory does not grow with its length. Alone in its process, because
//! other tests would raise the peak.

#![expect(clippy::unwrap_used, reason = "tests")]

use softflash_trace::{
    Compression, Format, Kind, ReadOptions, Reader, Request, Summarizer, TraceExt, Writer,
};
use std::fs;
use std::io;
use std::thread;

/// The peak memory of this process in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Few blocks, so that the summary follows all of them early.
const DEVICE_BYTES: u64 = 8 << 20;

fn request(index: u64) -> Request {
    let kind = if index.is_multiple_of(3) { Kind::Read } else { Kind::Write };
    let offset_bytes = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 38 << 12;
    Request { at_ns: index * 1000, device: (index % 7) as u32, kind, offset_bytes, bytes: 4096 }
}

/// Writes `requests` requests into a pipe; adapts, summarizes and rewrites the requests read from
/// it.
fn flow(requests: u64, compression: Compression) -> u64 {
    let (output, input) = io::pipe().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut writer = Writer::begin(input, Format::Alibaba, compression).unwrap();
            (0..requests).for_each(|index| writer.write(&request(index)).unwrap());
            writer.finish().unwrap();
        });
        let reader = Reader::open(output, "pipe", ReadOptions::default()).unwrap();
        let trace =
            reader.speed(2.0).unwrap().copies(2, 1 << 40).unwrap().wrap(DEVICE_BYTES).unwrap();
        let mut summarizer = Summarizer::default();
        let mut writer = Writer::begin(io::sink(), Format::Msr, compression).unwrap();
        for request in trace.within(DEVICE_BYTES) {
            let request = request.unwrap();
            summarizer.add(&request);
            writer.write(&request).unwrap();
        }
        writer.finish().unwrap();
        summarizer.finish(Default::default()).requests
    })
}

#[test]
fn a_million_requests_take_the_memory_of_fifty_thousand() {
    for compression in [Compression::Plain, Compression::Gzip, Compression::Zstd] {
        assert_eq!(flow(50_000, compression), 100_000);
    }
    let before = peak_kib();
    for compression in [Compression::Plain, Compression::Gzip, Compression::Zstd] {
        assert_eq!(flow(1_000_000, compression), 2_000_000);
    }
    let grown = peak_kib() - before;
    assert!(grown < 4 << 10, "{grown} KiB more than {before} KiB");
}
