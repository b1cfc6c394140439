//! Malformed lines: the reported field, and the reaction of a reader. No input makes a reader
//! panic.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use softflash_trace::{
    Format, KEPT_MALFORMED, MAX_LINE_BYTES, Problem, ReadOptions, Reader, Summarizer, TraceError,
};

/// The field and the problem of a line after a valid beginning.
fn problem(format: Format, line: &str) -> (&'static str, Problem) {
    let beginning = match format {
        Format::FioV2 => "fio version 2 iolog\n",
        Format::FioV3 => "fio version 3 iolog\n",
        _ => "\n",
    };
    let text = format!("{beginning}{line}\n");
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let mut reader = Reader::open(text.as_bytes(), "bad.csv", options).unwrap();
    match reader.next() {
        Some(Err(TraceError::Malformed(malformed))) => {
            assert_eq!((&*malformed.file, malformed.line), ("bad.csv", 2));
            assert!(reader.next().is_none(), "a strict reader ends");
            (malformed.reason.field, malformed.reason.problem)
        }
        other => panic!("{format}: `{line}`: {other:?}"),
    }
}

#[test]
fn the_field_is_named() {
    use Format::*;
    use Problem::*;
    let cases = [
        (Msr, "x,h,0,Read,0,512,1", "Timestamp", NotANumber),
        (Msr, "1", "Hostname", Missing),
        (Msr, "1,h,-1,Read,0,512,1", "DiskNumber", NotANumber),
        (Msr, "1,h,4294967296,Read,0,512,1", "DiskNumber", TooLarge),
        (Msr, "1,h,0,Erase,0,512,1", "Type", Unknown),
        (Msr, "1,h,0,Read,18446744073709551616,512,1", "Offset", TooLarge),
        (Msr, "1,h,0,Read,0", "Size", Missing),
        (Msr, "1,h,0,Read,0,512,soon", "ResponseTime", NotANumber),
        (Msr, "1,h,0,Read,0,512,1,1", "line", Extra),
        (Msr, "1,h,0,Read,18446744073709551615,1,1", "end of the request", TooLarge),
        (FioV2, "/f", "action", Missing),
        (FioV2, "/f erase", "action", Unknown),
        (FioV2, "/f add 1", "line", Extra),
        (FioV2, "/f read 0", "length", Missing),
        (FioV2, "/f wait 18446744073709551615 0", "offset", TooLarge),
        (FioV3, "/f read 0 1", "timestamp", NotANumber),
        (FioV3, "1 /f wait 0 1", "action", Unknown),
        (FioV3, "1 /f read 0 1 2", "line", Extra),
        (FioV3, "1 /f write x 1", "offset", NotANumber),
        (Blkparse, "8;0 0 1 0.000000000 1 Q R 0 + 8 [x]", "device", NotANumber),
        (Blkparse, "4096,0 0 1 0.000000000 1 Q R 0 + 8 [x]", "device", TooLarge),
        (Blkparse, "8,1048576 0 1 0.000000000 1 Q R 0 + 8 [x]", "device", TooLarge),
        (Blkparse, "8,0 0 1", "time", Missing),
        (Blkparse, "8,0 0 1 0.0 1 Q R 0 + 8 [x]", "time", NotANumber),
        (Blkparse, "8,0 0 1 18446744074.000000000 1 Q R 0 + 8 [x]", "time", TooLarge),
        (Blkparse, "8,0 0 1 0.000000000 1", "action", Missing),
        (Blkparse, "8,0 0 1 0.000000000 1 Q", "rwbs", Missing),
        (Blkparse, "8,0 0 1 0.000000000 1 Q X 0 + 8 [x]", "rwbs", Unknown),
        (Blkparse, "8,0 0 1 0.000000000 1 Q R x + 8 [x]", "sector", NotANumber),
        (Blkparse, "8,0 0 1 0.000000000 1 Q R 36028797018963968 + 8 [x]", "sector", TooLarge),
        (Blkparse, "8,0 0 1 0.000000000 1 Q R 0 / 8 [x]", "sectors", Unknown),
        (Blkparse, "8,0 0 1 0.000000000 1 Q R 0", "sectors", Missing),
        (Vscsi, "3,1,2a,512,0", "version", Unknown),
        (Vscsi, "1,t,2a,512,0", "time", NotANumber),
        (Vscsi, "1,1,write,512,0", "op", NotANumber),
        (Vscsi, "1,1,12a,512,0", "op", TooLarge),
        (Vscsi, "1,1,2a,,0", "size", NotANumber),
        (Vscsi, "1,1,2a,512,36028797018963968", "lbn", TooLarge),
        (Mqsim, "1.5 0 0 8 1", "time", NotANumber),
        (Mqsim, "1 4294967296 0 8 1", "device", TooLarge),
        (Mqsim, "1 0 0 8 2", "type", Unknown),
        (Mqsim, "1 0 0 8", "type", Missing),
        (Alibaba, "vol,R,0,512,1", "device_id", NotANumber),
        (Alibaba, "1,D,0,512,1", "opcode", Unknown),
        (Alibaba, "1,R,0,512", "timestamp", Missing),
        (Tencent, "1,0,8,2,1", "IOType", Unknown),
        (Tencent, "1,0,8,1,1,1", "line", Extra),
    ];
    for (format, line, field, expected) in cases {
        assert_eq!(problem(format, line), (field, expected), "{format}: `{line}`");
    }
    for format in Format::ALL {
        let long = "1".repeat(MAX_LINE_BYTES + 1);
        assert_eq!(problem(format, &long), ("line", TooLong), "{format}");
    }
}

#[test]
fn a_log_of_fio_without_its_header_is_none() {
    for format in [Format::FioV2, Format::FioV3] {
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let mut reader = Reader::open(&b"0 /f read 0 1\n"[..], "x", options).unwrap();
        let error = reader.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("x: line 1: header"), "{error}");
    }
}

#[test]
fn the_message_has_all_that_is_needed() {
    let text = "0,R,0,512,1\n0,R,\x1b[31m,512,1\n0,R,0,512,1\n";
    let mut reader = Reader::open(text.as_bytes(), "disk.csv", ReadOptions::default()).unwrap();
    assert!(reader.next().unwrap().is_ok());
    let message = reader.next().unwrap().unwrap_err().to_string();
    assert!(
        message.starts_with("disk.csv: line 2: offset: not a number: `0,R,\u{fffd}[31m,512,1`"),
        "{message}"
    );
    assert!(message.contains("without --strict"), "{message}");
}

#[test]
fn a_trace_without_one_good_line_is_none_for_a_lenient_reader_too() {
    let options =
        ReadOptions { format: Some(Format::Msr), lenient: true, ..ReadOptions::default() };
    let mut reader = Reader::open(&b"hello\nworld\n"[..], "x", options).unwrap();
    let message = reader.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("x: line 1: Timestamp: not a number"), "{message}");
    assert!(message.contains("none of its 2 lines is a request of format msr"), "{message}");
    assert!(reader.next().is_none());
}

#[test]
fn a_lenient_reader_counts_and_goes_on() {
    let mut text = "0,R,0,512,1\n".to_owned();
    (0..25).for_each(|index| text.push_str(&format!("bad {index}\n0,W,0,512,{}\n", index + 2)));
    text.push_str(&"x".repeat(MAX_LINE_BYTES * 5));
    text.push_str("\n0,R,0,512,30\n");
    let options =
        ReadOptions { format: Some(Format::Alibaba), lenient: true, ..ReadOptions::default() };
    let mut reader = Reader::open(text.as_bytes(), "x", options).unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 27);
    let tally = reader.tally();
    assert_eq!((tally.malformed, tally.first_malformed.len()), (26, KEPT_MALFORMED));
    assert_eq!(tally.first_malformed[1].line, 4);
    assert_eq!(tally.lines, 53);
}

#[test]
fn times_that_run_back_stand_still_and_are_counted() {
    let text = "0,R,0,512,100\n0,R,0,512,105\n0,R,0,512,103\n0,R,0,512,50\n0,R,0,512,106\n";
    let mut reader = Reader::open(text.as_bytes(), "x", ReadOptions::default()).unwrap();
    let times: Vec<u64> = reader.by_ref().map(|request| request.unwrap().at_ns).collect();
    assert_eq!(times, [0, 5000, 5000, 5000, 6000]);
    assert_eq!(reader.tally().out_of_order, 2);
}

/// Bytes that look a little like traces.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        proptest::sample::select(vec![
            "\n",
            "\r\n",
            ",",
            " ",
            "1",
            "0",
            "18446744073709551615",
            "99999999999999999999",
            "R",
            "W",
            "Read",
            "Q",
            "F",
            "FWS",
            "2a",
            "0x",
            "0x28",
            "8,0 ",
            "8,",
            ",1",
            "0.000000001",
            "18446744073.709551615",
            "+",
            "(",
            "[",
            "read",
            "wait",
            "add",
            "fio version 3 iolog\n",
            "fio version 2 iolog\n",
            "CPU0",
            "Total",
            "version,time,op,size,lbn\n",
            "1,1,28,512,1\n",
            "1 1 1 1 1\n",
            "0,R,0,4096,1\n",
            "\u{fffd}",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in noise(), packed in 0..3_u8) {
        let file = match packed {
            1 => [&[0x1f, 0x8b, 8, 0][..], &bytes].concat(),
            2 => [&[0x28, 0xb5, 0x2f, 0xfd][..], &bytes].concat(),
            _ => bytes,
        };
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let options = ReadOptions { format, lenient: true, ..ReadOptions::default() };
            let Ok(mut reader) = Reader::open(&file[..], "noise", options) else { continue };
            let mut summarizer = Summarizer::default();
            let mut last_ns = 0;
            for request in reader.by_ref().filter_map(Result::ok) {
                prop_assert!(request.at_ns >= last_ns);
                prop_assert!(request.offset_bytes.checked_add(request.bytes).is_some());
                last_ns = request.at_ns;
                summarizer.add(&request);
            }
            let summary = summarizer.finish(reader.tally().clone());
            prop_assert_eq!(summary.requests, summary.tally.requests);
            prop_assert_eq!(
                summary.tally.lines,
                summary.requests + summary.tally.passed_over + summary.tally.malformed
            );
        }
    }
}
