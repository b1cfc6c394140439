//! A summary compared with a direct computation.

use crate::support::traces;
use proptest::prelude::*;
use softflash_trace::{Kind, ReadOptions, Reader, Request, Summarizer, Summary, Tally, summary};
use std::collections::{BTreeMap, HashMap};

fn summarize(trace: &[Request]) -> Summary {
    let mut summarizer = Summarizer::default();
    trace.iter().for_each(|request| summarizer.add(request));
    summarizer.finish(Tally::default())
}

fn moves(request: &&Request) -> bool {
    matches!(request.kind, Kind::Read | Kind::Write)
}

/// Every access to every block: when, and whether it wrote.
fn accesses(trace: &[Request]) -> BTreeMap<(u32, u64), Vec<(u64, bool)>> {
    let mut blocks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for request in trace.iter().filter(moves).filter(|request| request.bytes > 0) {
        let (first, end) = (request.offset_bytes, request.offset_bytes + request.bytes);
        for block in first / 4096..end.div_ceil(4096) {
            let access = (request.at_ns, request.kind == Kind::Write);
            blocks.entry((request.device, block)).or_default().push(access);
        }
    }
    blocks
}

/// The value that `percent` of all values do not exceed.
fn percentile(values: &mut [u64], percent: f64) -> u64 {
    values.sort_unstable();
    let rank = (values.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
    values[rank - 1]
}

fn near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 1000 <= expected
}

proptest! {
    #[test]
    fn figures_are_those_computed_the_long_way(trace in traces(4 << 20, 120)) {
        let summary = summarize(&trace);
        let of = |kind: Kind| trace.iter().filter(move |request| request.kind == kind);
        let bytes = |kind| of(kind).map(|request| request.bytes).sum::<u64>();
        prop_assert_eq!(summary.requests, trace.len() as u64);
        prop_assert_eq!(summary.mix.reads, of(Kind::Read).count() as u64);
        prop_assert_eq!(summary.mix.flushes, of(Kind::Flush).count() as u64);
        prop_assert_eq!(summary.mix.bytes_written, bytes(Kind::Write));
        prop_assert_eq!(summary.mix.bytes_trimmed, bytes(Kind::Trim));

        let mut lengths: Vec<u64> = of(Kind::Read).map(|request| request.bytes).collect();
        prop_assert_eq!(summary.read_sizes.is_some(), !lengths.is_empty());
        if let Some(sizes) = &summary.read_sizes {
            prop_assert!(near(sizes.p50_bytes, percentile(&mut lengths, 50.0)));
            prop_assert!(near(sizes.p99_bytes, percentile(&mut lengths, 99.0)));
            prop_assert_eq!(sizes.max_bytes, *lengths.last().unwrap());
            for bin in &sizes.histogram {
                let within = |bytes: &&u64| **bytes > bin.up_to_bytes / 2 && **bytes <= bin.up_to_bytes;
                prop_assert_eq!(bin.requests, lengths.iter().filter(within).count() as u64);
            }
        }

        let mut seconds: HashMap<u64, u64> = HashMap::new();
        trace.iter().for_each(|request| *seconds.entry(request.at_ns / 1_000_000_000).or_default() += 1);
        prop_assert_eq!(summary.rate.peak_requests_in_1s, seconds.values().copied().max().unwrap_or(0));
        prop_assert_eq!(summary.rate.duration_ns, trace.last().map_or(0, |request| request.at_ns));

        for device in &summary.devices {
            let own = || trace.iter().filter(|request| request.device == device.device);
            prop_assert_eq!(device.requests, own().count() as u64);
            prop_assert_eq!(device.end_bytes, own().map(Request::end_bytes).max().unwrap());
        }
        prop_assert_eq!(summary.devices.iter().map(|device| device.requests).sum::<u64>(), summary.requests);
    }

    #[test]
    fn blocks_are_those_counted_the_long_way(trace in traces(4 << 20, 120)) {
        let summary = summarize(&trace).blocks;
        let blocks = accesses(&trace);
        let bytes = |wanted: fn(&[(u64, bool)]) -> bool| {
            blocks.values().filter(|block| wanted(block)).count() as u64 * 4096
        };
        prop_assert_eq!((summary.sampled, summary.relative_error), (1.0, 0.0));
        prop_assert_eq!(summary.touched_bytes, bytes(|_| true));
        let read = |block: &[(u64, bool)]| block.iter().any(|access| !access.1);
        let written = |block: &[(u64, bool)]| block.iter().any(|access| access.1);
        prop_assert_eq!(summary.read_bytes, bytes(read));
        prop_assert_eq!(summary.written_bytes, bytes(written));
        prop_assert_eq!(summary.both_bytes, summary.read_bytes + summary.written_bytes - summary.touched_bytes);

        prop_assert_eq!(summary.reuse.is_some(), !blocks.is_empty());
        let Some(reuse) = summary.reuse else { return Ok(()) };
        let total: usize = blocks.values().map(Vec::len).sum();
        prop_assert!((reuse.mean_accesses - total as f64 / blocks.len() as f64).abs() < 1e-9);
        let mut times: Vec<u64> =
            blocks.values().flat_map(|block| block.windows(2).map(|pair| pair[1].0 - pair[0].0)).collect();
        prop_assert_eq!(reuse.times.is_some(), !times.is_empty());
        if let Some(found) = reuse.times {
            prop_assert_eq!(found.count, times.len() as u64);
            prop_assert!(near(found.p50_ns, percentile(&mut times, 50.0)));
            prop_assert!(near(found.p90_ns, percentile(&mut times, 90.0)));
        }

        let mut counts: Vec<usize> = blocks.values().map(Vec::len).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        for hot in &summary.hot {
            let enough = |n: &usize| {
                counts[..*n].iter().sum::<usize>() as f64 >= hot.accesses_share * total as f64
            };
            let fewest = (0..=counts.len()).find(enough).unwrap();
            prop_assert_eq!(hot.bytes, fewest as u64 * 4096);
        }
    }
}

#[test]
fn streams_side_by_side_are_sequential() {
    let request = |step: u64, stream: u64, kind| Request {
        at_ns: step,
        device: 0,
        kind,
        offset_bytes: (stream << 30) + step * 4096,
        bytes: 4096,
    };
    let trace: Vec<Request> = (0..100)
        .flat_map(|step| {
            let reads = (0..6).map(move |stream| request(step, stream, Kind::Read));
            reads.chain([request(step, 9, Kind::Write)])
        })
        .collect();
    assert_eq!(summarize(&trace).sequential, Some(693.0 / 700.0));
    let scattered: Vec<Request> = (0..700).map(|step| request(step * 2, 0, Kind::Read)).collect();
    assert_eq!(summarize(&scattered).sequential, Some(0.0));
}

#[test]
fn a_sample_estimates_within_the_stated_error() {
    const BLOCKS: u64 = 200_000;
    let mut summarizer = Summarizer::following(5000);
    for round in 0..4_u64 {
        for block in 0..BLOCKS {
            // Every block twice, each fourth one twice more, of which half writes.
            if round < 2 || block % 4 == 0 {
                let kind = if round == 3 { Kind::Write } else { Kind::Read };
                let at_ns = round * 1_000_000 + block;
                summarizer.add(&Request {
                    at_ns,
                    device: 3,
                    kind,
                    offset_bytes: block * 4096,
                    bytes: 4096,
                });
            }
        }
    }
    let blocks = summarizer.finish(Tally::default()).blocks;
    let error = |found: u64, expected: u64| {
        found.abs_diff(expected * 4096) as f64 / (expected * 4096) as f64
    };
    assert!(blocks.sampled < 0.05 && blocks.relative_error > 0.0 && blocks.relative_error < 0.025);
    assert!(error(blocks.touched_bytes, BLOCKS) < 4.0 * blocks.relative_error, "{blocks:?}");
    assert!(error(blocks.written_bytes, BLOCKS / 4) < 8.0 * blocks.relative_error, "{blocks:?}");
    let reuse = blocks.reuse.unwrap();
    assert!((reuse.mean_accesses - 2.5).abs() < 0.1, "{reuse:?}");
    assert!(reuse.times.unwrap().p50_ns.abs_diff(1_000_000) <= 1000, "{reuse:?}");
}

#[test]
fn many_devices_and_endless_requests_take_no_more_memory_or_time() {
    let mut summarizer = Summarizer::default();
    for device in 0..summary::DEVICES_FOLLOWED as u32 + 10 {
        summarizer.add(&Request {
            at_ns: 0,
            device,
            kind: Kind::Trim,
            offset_bytes: 0,
            bytes: u64::MAX,
        });
    }
    let endless =
        Request { at_ns: 0, device: 0, kind: Kind::Write, offset_bytes: 0, bytes: u64::MAX };
    summarizer.add(&endless);
    let summary = summarizer.finish(Tally::default());
    assert_eq!(summary.devices.len(), summary::DEVICES_FOLLOWED);
    assert_eq!(summary.devices_beyond_limit, 10);
    assert_eq!((summary.blocks.cut_requests, summary.blocks.touched_bytes), (1, 64 << 20));
}

#[test]
fn an_empty_trace_has_a_summary_and_json_has_no_nan() {
    let options =
        ReadOptions { format: Some(softflash_trace::Format::Mqsim), ..ReadOptions::default() };
    let mut reader = Reader::open(&b""[..], "empty", options).unwrap();
    let summary = summary::summarize(&mut reader).unwrap();
    assert_eq!(summary.requests, 0);
    let json = serde_json::to_value(&summary).unwrap();
    assert!(json["mix"]["read_share"].is_null() && json["rate"]["mean_requests_per_s"].is_null());
}

#[test]
fn malformed_lines_are_told_with_the_summary() {
    let text = "0,R,0,4096,1\nrubbish\n0,R,4096,4096,2\n0,R,0,4096,1\n";
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let mut reader = Reader::open(text.as_bytes(), "disk.csv", options).unwrap();
    let json = serde_json::to_value(summary::summarize(&mut reader).unwrap()).unwrap();
    assert_eq!(json["tally"]["malformed"], 1);
    assert_eq!(json["tally"]["out_of_order"], 1);
    assert_eq!(
        json["tally"]["first_malformed"][0],
        "disk.csv: line 2: device_id: not a number: `rubbish`"
    );
}
