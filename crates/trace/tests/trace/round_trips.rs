//! Written traces are read back, except for parts that the format cannot represent.

use crate::support::{read, traces, written};
use proptest::prelude::*;
use softflash_trace::{
    Compression, Format, Kind, LeftOut, ReadOptions, Reader, Request, Writer, detect,
};
use std::collections::HashMap;
use std::path::Path;

/// Nanoseconds per time unit of a format.
fn tick_ns(format: Format) -> u64 {
    match format {
        Format::Msr => 100,
        Format::FioV2 => 1_000_000,
        Format::FioV3 | Format::Alibaba => 1000,
        Format::Blkparse | Format::Mqsim => 1,
        Format::Vscsi | Format::Tencent => 1_000_000_000,
    }
}

/// A request after a round trip through a format.
fn said(request: &Request, format: Format) -> Request {
    let mut said = *request;
    said.at_ns -= said.at_ns % tick_ns(format);
    if matches!(format, Format::Blkparse | Format::Vscsi | Format::Mqsim | Format::Tencent) {
        let end = said.offset_bytes + said.bytes;
        said.offset_bytes -= said.offset_bytes % 512;
        let exact = format == Format::Vscsi && said.offset_bytes == request.offset_bytes;
        let end = if exact { end } else { end.next_multiple_of(512) };
        said.bytes = end - said.offset_bytes;
    }
    if format == Format::Vscsi {
        said.device = 0;
    }
    said
}

/// A trace after a round trip through a format.
fn expected(trace: &[Request], format: Format) -> Vec<Request> {
    let sayable = trace.iter().filter(|request| format.can_say(request.kind));
    let mut kept: Vec<Request> = sayable.map(|request| said(request, format)).collect();
    // Times count from the first request, in units of the format.
    let first_ns = kept.first().map_or(0, |request| request.at_ns);
    kept.iter_mut().for_each(|request| request.at_ns -= first_ns);
    if matches!(format, Format::FioV2 | Format::FioV3) {
        let mut numbers = HashMap::new();
        for request in &mut kept {
            let next = numbers.len() as u32;
            request.device = *numbers.entry(request.device).or_insert(next);
        }
    }
    kept
}

const COMPRESSIONS: [Compression; 3] = [Compression::Plain, Compression::Gzip, Compression::Zstd];

proptest! {
    #[test]
    fn every_format_keeps_what_it_can_say(
        trace in traces(1 << 45, 60),
        compression in proptest::sample::select(&COMPRESSIONS[..]),
    ) {
        for format in Format::ALL {
            let file = written(&trace, format, compression);
            prop_assert_eq!(read(&file, Some(format)), expected(&trace, format), "{}", format);
        }
    }

    #[test]
    fn every_written_trace_is_detected(trace in traces(1 << 45, 60)) {
        for format in Format::ALL {
            let file = written(&trace, format, Compression::Plain);
            if !expected(&trace, format).is_empty() {
                prop_assert_eq!(detect(&file), Some(format));
            }
        }
    }
}

#[test]
fn a_second_and_a_sector_that_read_like_a_version_and_a_scsi_command_are_told_apart() {
    for kind in [b'0', b'1'] {
        let line = [b"1,6806076353,88,", &[kind][..], b",0\n"].concat();
        assert_eq!(detect(&line), Some(Format::Tencent));
    }
    assert_eq!(detect(b"1,6806076353,88,512,0\n"), Some(Format::Vscsi));
}

#[test]
fn what_a_format_cannot_say_is_counted() {
    let of = |kind| Request { at_ns: 0, device: 0, kind, offset_bytes: 0, bytes: 0 };
    for format in Format::ALL {
        let mut writer = Writer::begin(Vec::new(), format, Compression::Plain).unwrap();
        for kind in [Kind::Trim, Kind::Flush, Kind::Flush, Kind::Read] {
            writer.write(&of(kind)).unwrap();
        }
        let left_out = writer.finish().unwrap().1;
        let expected = match format.can_say(Kind::Trim) {
            true => LeftOut::default(),
            false => LeftOut { trims: 1, flushes: 2 },
        };
        assert_eq!(left_out, expected, "{format}");
    }
}

#[test]
fn largest_addresses_and_devices_pass_where_the_format_has_room() {
    let end = Request {
        at_ns: 0,
        device: u32::MAX,
        kind: Kind::Read,
        offset_bytes: u64::MAX - 1023,
        bytes: 512,
    };
    for format in [Format::Msr, Format::Alibaba, Format::Blkparse, Format::Mqsim, Format::Tencent] {
        assert_eq!(read(&written(&[end], format, Compression::Plain), None), [end], "{format}");
    }
}

#[test]
fn vscsi_times_may_have_other_units() {
    let at = |at_ns| Request { at_ns, device: 0, kind: Kind::Write, offset_bytes: 512, bytes: 512 };
    let trace = [at(0), at(1_234_567_000)];
    let mut writer =
        Writer::with_vscsi_tick(Vec::new(), Format::Vscsi, Compression::Plain, 1000).unwrap();
    trace.iter().for_each(|request| writer.write(request).unwrap());
    let file = writer.finish().unwrap().0;
    let options = ReadOptions { vscsi_tick_ns: 1000, ..ReadOptions::default() };
    let reader = Reader::open(&file[..], "test", options).unwrap();
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), trace);
}

#[test]
fn streams_packed_in_several_pieces_are_one_trace() {
    let lines: [&[u8]; 2] = [b"0,R,0,4096,1\n0,W,", b"4096,4096,2\n"];
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, bytes).unwrap();
        packed.finish().unwrap()
    };
    assert_eq!(read(&lines.map(gzip).concat(), None).len(), 2);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    assert_eq!(read(&lines.map(zstd).concat(), None).len(), 2);
}

#[test]
fn a_packed_stream_that_is_cut_is_an_error_not_an_end() {
    let at =
        |at_ns| Request { at_ns, device: 0, kind: Kind::Write, offset_bytes: at_ns, bytes: 512 };
    let trace: Vec<Request> = (0..100_000).map(|index| at(index * 7_919_000)).collect();
    for compression in [Compression::Gzip, Compression::Zstd] {
        let file = written(&trace, Format::Alibaba, compression);
        let cut = &file[..file.len() / 2];
        for lenient in [false, true] {
            let options = ReadOptions { lenient, ..ReadOptions::default() };
            let mut reader = Reader::open(cut, "cut.gz", options).unwrap();
            let error = reader.by_ref().find_map(Result::err).unwrap().to_string();
            assert!(error.starts_with("cut.gz: "), "{error}");
            assert!(reader.next().is_none());
        }
    }
}

#[test]
fn the_name_of_a_file_says_how_to_pack_it() {
    let of = |name: &str| Compression::of_name(Path::new(name));
    assert_eq!([of("a.csv"), of("a.csv.gz"), of("b.zst"), of("-")], {
        [Compression::Plain, Compression::Gzip, Compression::Zstd, Compression::Plain]
    });
}
