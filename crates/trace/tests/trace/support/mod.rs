//! Shared code of the tests: random requests, and traces as bytes.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "test helpers")]

use proptest::prelude::*;
use softflash_trace::{Compression, Format, Kind, ReadOptions, Reader, Request, Writer};

/// Any kind of request.
pub fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![5 => Just(Kind::Read), 5 => Just(Kind::Write), 1 => Just(Kind::Trim), 1 => Just(Kind::Flush)]
}

/// A trace: times that do not decrease, few devices, addresses below `device_bytes`.
pub fn traces(device_bytes: u64, longest: usize) -> impl Strategy<Value = Vec<Request>> {
    let request = (0..4_000_000_000_u64, 0..5_u32, kinds(), 0..device_bytes, 1..300_000_u64);
    proptest::collection::vec(request, 0..longest).prop_map(move |parts| {
        let mut now_ns = 0;
        let mut trace = Vec::new();
        for (pause_ns, device, kind, offset_bytes, bytes) in parts {
            now_ns += if trace.is_empty() { 0 } else { pause_ns };
            let (offset_bytes, bytes) = match kind {
                Kind::Flush => (0, 0),
                _ => (offset_bytes, bytes.min(device_bytes - offset_bytes)),
            };
            trace.push(Request { at_ns: now_ns, device, kind, offset_bytes, bytes });
        }
        trace
    })
}

/// The trace as bytes of a file.
pub fn written(trace: &[Request], format: Format, compression: Compression) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), format, compression).unwrap();
    trace.iter().for_each(|request| writer.write(request).unwrap());
    writer.finish().unwrap().0
}

/// Reads a file strictly.
pub fn read(bytes: &[u8], format: Option<Format>) -> Vec<Request> {
    let options = ReadOptions { format, ..ReadOptions::default() };
    let reader = Reader::open(bytes, "test", options).unwrap();
    reader.map(|request| request.unwrap()).collect()
}
