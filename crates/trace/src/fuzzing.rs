//! Properties of the readers for any bytes, for the fuzzers of `fuzz` and for tests that replay
//! their findings.

use crate::compression::Compression;
use crate::format::Format;
use crate::reader::{ReadOptions, Reader, Tally};
use crate::request::Request;
use crate::summary::Summarizer;
use crate::writer::Writer;

/// The most requests that are read from one input.
const MOST_REQUESTS: usize = 10_000;

/// A trace, compressed or not, in the format of the first byte, or in the detected format. The
/// requests read are written in the same format and must be equal when they are read again.
pub fn trace(data: &[u8]) {
    let [first, input @ ..] = data else { return };
    let format = Format::ALL.get(usize::from(*first)).copied();
    let lenient = ReadOptions { format, lenient: true, ..ReadOptions::default() };
    let Some((format, trace)) = read(input, lenient) else { return };
    let strict = ReadOptions { lenient: false, ..lenient };
    let upright = read(input, strict).map(|(_, trace)| trace).unwrap_or_default();
    assert!(trace.starts_with(&upright), "{format}: a lenient reader sees what a strict one sees");
    let mut summarizer = Summarizer::default();
    trace.iter().for_each(|request| summarizer.add(request));
    let _ = summarizer.finish(Tally::default());

    let Ok(mut writer) = Writer::begin(Vec::new(), format, Compression::Plain) else { return };
    for request in &trace {
        assert!(writer.write(request).is_ok());
    }
    let Ok((bytes, left_out)) = writer.finish() else { return };
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let again = read(&bytes, options).map(|(_, trace)| trace).unwrap_or_default();
    assert_eq!(left_out, Default::default(), "{format}: what was read can be said");
    let said = |request: &Request| (request.kind, request.offset_bytes, request.bytes);
    assert!(again.iter().map(said).eq(trace.iter().map(said)), "{format}: {trace:?}\n{again:?}");
}

fn read(input: &[u8], options: ReadOptions) -> Option<(Format, Vec<Request>)> {
    let reader = Reader::open(input, "input", options).ok()?;
    let format = reader.format();
    Some((format, reader.take(MOST_REQUESTS).flatten().collect()))
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
#[cfg(test)]
fn traces() {
    use crate::request::Kind;
    let kinds = [Kind::Read, Kind::Write, Kind::Trim, Kind::Flush];
    let requests = kinds.map(|kind| Request {
        at_ns: 5_000_000_000,
        device: 3,
        kind,
        offset_bytes: 8192,
        bytes: 4096,
    });
    let written = |(number, format): (usize, Format), compression| {
        let mut writer = Writer::begin(Vec::new(), format, compression).unwrap();
        requests.iter().for_each(|request| writer.write(request).unwrap());
        let first = if compression == Compression::Plain { number as u8 } else { 99 };
        [vec![first], writer.finish().unwrap().0].concat()
    };
    let all = || Format::ALL.into_iter().enumerate();
    let mut seeds: Vec<Vec<u8>> = all().map(|format| written(format, Compression::Plain)).collect();
    for compression in [Compression::Gzip, Compression::Zstd] {
        seeds.extend(all().take(1).map(|format| written(format, compression)));
    }
    replay::replay("trace", &seeds, trace);
}
