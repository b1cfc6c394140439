//! The cost of reading and summarizing: a million synthetic requests in each format, in memory.
//!
//! `cargo run --profile dist -p softflash-trace --example trace_speed [requests [FILE]]`; with a
//! file (`-` for none) of a real trace, its figures too.

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]
#![expect(clippy::unwrap_used, reason = "an example stops at the first error")]

use rustix::time::{ClockId, clock_gettime};
use softflash_trace::{
    Compression, Format, Kind, ReadOptions, Reader, Request, Summarizer, Summary, Writer, summary,
};

fn main() {
    let requests = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let trace: Vec<Request> = (0..requests).map(request).collect();
    println!("{:<10} {:>6} {:>14} {:>14}", "format", "B/line", "M lines/cpu-s", "M written/cpu-s");
    for format in Format::ALL {
        let (file, writing_s) = timed(|| written(&trace, format, Compression::Plain));
        let (read, reading_s) = timed(|| {
            let reader = Reader::open(&file[..], "memory", ReadOptions::default()).unwrap();
            reader.map(|request| request.unwrap().bytes).fold(0_u64, u64::wrapping_add)
        });
        assert!(read > 0);
        let lines = memchr::memchr_iter(b'\n', &file).count() as f64;
        let (bytes, per_s) = (file.len() as f64 / lines, |seconds: f64| lines / seconds / 1e6);
        println!("{format:<10} {bytes:>6.1} {:>14.1} {:>14.1}", per_s(reading_s), per_s(writing_s));
    }
    for compression in [Compression::Gzip, Compression::Zstd] {
        let (file, writing_s) = timed(|| written(&trace, Format::Alibaba, compression));
        let (count, reading_s) =
            timed(|| Reader::open(&file[..], "memory", ReadOptions::default()).unwrap().count());
        let per_s = |seconds: f64| count as f64 / seconds / 1e6;
        let name = format!("{compression:?}");
        println!("{name:<10} {:>6} {:>14.1} {:>14.1}", "", per_s(reading_s), per_s(writing_s));
    }
    let (_, seconds) = timed(|| summed(&trace));
    println!("summary    {:>21.1} M requests/cpu-s", requests as f64 / seconds / 1e6);
    if let Some(path) = std::env::args().nth(2) {
        let open = || std::fs::File::open(&path).unwrap();
        let reader = || Reader::open(open(), &path, ReadOptions::default()).unwrap();
        let (count, seconds) = timed(|| reader().filter(Result::is_ok).count());
        println!("{path}: {count} requests, {:.1} M/cpu-s", count as f64 / seconds / 1e6);
        println!("{:#?}", summary::summarize(&mut reader()).unwrap());
    }
}

/// A mix of random and sequential requests.
fn request(index: u64) -> Request {
    let random = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let kind = if random >> 62 == 0 { Kind::Read } else { Kind::Write };
    let (device, offset_bytes) = ((random >> 60) as u32, random >> 28 << 12 >> 8 << 8);
    Request {
        at_ns: index * 123_457,
        device,
        kind,
        offset_bytes: offset_bytes & ((1 << 38) - 4096),
        bytes: 8192,
    }
}

fn written(trace: &[Request], format: Format, compression: Compression) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), format, compression).unwrap();
    trace.iter().for_each(|request| writer.write(request).unwrap());
    writer.finish().unwrap().0
}

fn summed(trace: &[Request]) -> Summary {
    let mut summarizer = Summarizer::default();
    trace.iter().for_each(|request| summarizer.add(request));
    summarizer.finish(Default::default())
}

/// The outcome and the seconds of CPU time it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let cpu_s = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let begun = cpu_s();
    let outcome = work();
    (outcome, cpu_s() - begun)
}
