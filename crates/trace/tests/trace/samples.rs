//! Hand-written samples of each published format, and their requests.

#![expect(clippy::unwrap_used, reason = "tests")]

use softflash_trace::{Format, Kind, ReadOptions, Reader, Request, Tally, detect};

const K: u64 = 1024;

fn read_as(text: &str, options: ReadOptions) -> (Vec<Request>, Tally) {
    let mut reader = Reader::open(text.as_bytes(), "sample", options).unwrap();
    let requests = reader.by_ref().map(|request| request.unwrap()).collect();
    (requests, reader.tally().clone())
}

fn read(text: &str, format: Format) -> Vec<Request> {
    assert_eq!(detect(text.as_bytes()), Some(format));
    read_as(text, ReadOptions::default()).0
}

fn request(at_ns: u64, device: u32, kind: Kind, offset_bytes: u64, bytes: u64) -> Request {
    Request { at_ns, device, kind, offset_bytes, bytes }
}

#[test]
fn msr_cambridge() {
    let text = "128166372003061629,hm,0,Read,383496192,32768,413\n\
                128166372016382155,hm,0,Write,2822144,4096,1554\r\n\
                128166372026382245,hm,1,Write,2822144,4096,1554\n\
                128166372026382245,usr,1,Read,0,512\n";
    let expected = [
        request(0, 0, Kind::Read, 383_496_192, 32 * K),
        request(1_332_052_600, 0, Kind::Write, 2_822_144, 4 * K),
        request(2_332_061_600, 1, Kind::Write, 2_822_144, 4 * K),
        request(2_332_061_600, 65_537, Kind::Read, 0, 512),
    ];
    assert_eq!(read(text, Format::Msr), expected);
    let with_header =
        format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{text}");
    assert_eq!(read(&with_header, Format::Msr), expected);
}

#[test]
fn fio_version_3_as_fio_3_33_writes_it() {
    let text = "fio version 3 iolog\n\
                20 /dev/sdb add\n179 /dev/sdb open\n\
                186 /dev/sdb read 61440 4096\n\
                50156 /dev/sdc write 880640 4096\n\
                1950490 /dev/sdb sync 724992 0\n\
                1950491 /dev/sdb datasync 0 0\n\
                2000155 /dev/sdb trim 0 1048576\n\
                2000420 /dev/sdb close\n";
    let expected = [
        request(0, 0, Kind::Read, 61_440, 4 * K),
        request(49_970_000, 1, Kind::Write, 880_640, 4 * K),
        request(1_950_304_000, 0, Kind::Flush, 0, 0),
        request(1_950_305_000, 0, Kind::Flush, 0, 0),
        request(1_999_969_000, 0, Kind::Trim, 0, K * K),
    ];
    assert_eq!(read(text, Format::FioV3), expected);
}

#[test]
fn fio_version_2() {
    let text = "fio version 2 iolog\n/a add\n/b add\n/a open\n/b open\n\
                /b read 0 4096\n/a wait 1500 0\n/a write 8192 512\n/a close\n/b close\n";
    let expected =
        [request(0, 1, Kind::Read, 0, 4 * K), request(1_500_000_000, 0, Kind::Write, 8 * K, 512)];
    assert_eq!(read(text, Format::FioV2), expected);
}

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,1    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,1    3        3     0.000006702   697  G   W 223490 + 8 [kjournald]
  8,1    3        4     0.000008093   697  P   N [kjournald]
  8,1    3        5     0.000015000   697  Q FWS [kjournald]
  8,1    3        6     0.000016000   697  m   N cfq697 insert_request
  8,1    3        7     0.000020029   697  D   W 223490 + 8 (   10037) [kjournald]
  8,1    1       11     0.009507758     0  C   W 223490 + 8 [0]
  8,16   1       12     1.000001829  1234  Q  RA 0 + 256 [cat]
  8,16   1       13     1.000002829  1234  Q  DS 4096 + 2048 [fstrim]
  8,16   1       14     1.000003829  1234  Q FWFSM 8 + 8 [jbd2]
  8,16   1       15     1.000004829  1234  Q   R 36 (12 00 00 00 24 00 ..) [udevd]
  8,16   1       16     1.000005829  1234  U   N [cat] 1
CPU0 (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           2,        8KiB
 Read Dispatches:        0,        0KiB\t Write Dispatches:        1,        4KiB

Total (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           2,        8KiB
Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 12 entries
Skips: 0 forward (0 -   0.0%)
";

const SDA1: u32 = 8 << 20 | 1;
const SDB: u32 = 8 << 20 | 16;

#[test]
fn blkparse_by_queued_requests() {
    let expected = [
        request(0, SDA1, Kind::Write, 223_490 * 512, 4 * K),
        request(13_171, SDA1, Kind::Flush, 0, 0),
        request(1_000_000_000, SDB, Kind::Read, 0, 128 * K),
        request(1_000_001_000, SDB, Kind::Trim, 4096 * 512, K * K),
        request(1_000_002_000, SDB, Kind::Write, 8 * 512, 4 * K),
    ];
    assert_eq!(read(BLKPARSE, Format::Blkparse), expected);
}

#[test]
fn blkparse_by_issues_then_by_completions_where_nothing_was_queued() {
    let without = |event: &str| {
        let kept = BLKPARSE.lines().filter(|line| line.split_whitespace().nth(5) != Some(event));
        kept.collect::<Vec<_>>().join("\n")
    };
    let write = request(0, SDA1, Kind::Write, 223_490 * 512, 4 * K);
    let issued = without("Q");
    assert_eq!(read(&issued, Format::Blkparse), [write]);
    let completed: String = issued.replace("  D   W", "  I   W");
    assert_eq!(read(&completed, Format::Blkparse), [write]);
}

#[test]
fn cloudphysics_with_hexadecimal_codes() {
    let text = "version,time,op,size,lbn\n\
                1,5633898,2a,512,42932745\n\
                1,5633899,28,57344,6238199\n\
                1,5633899,00,0,0\n\
                1,5633899,35,0,0\n\
                2,5633900,88,4096,8589934592\n\
                1,5633900,42,1048576,0\n";
    let expected = [
        request(0, 0, Kind::Write, 42_932_745 * 512, 512),
        request(1_000_000_000, 0, Kind::Read, 6_238_199 * 512, 56 * K),
        request(1_000_000_000, 0, Kind::Flush, 0, 0),
        request(2_000_000_000, 0, Kind::Read, 8_589_934_592 * 512, 4 * K),
        request(2_000_000_000, 0, Kind::Trim, 0, K * K),
    ];
    assert_eq!(read(text, Format::Vscsi), expected);
    let options = ReadOptions { vscsi_tick_ns: 1000, ..ReadOptions::default() };
    assert_eq!(read_as(text, options).0[1].at_ns, 1000);
}

#[test]
fn cloudphysics_with_decimal_codes() {
    let text = "1,10,42,512,1\n1,10,40,512,2\n1,11,138,512,3\n1,11,136,512,4\n1,12,0x42,512,5\n";
    let kinds: Vec<Kind> = read(text, Format::Vscsi).iter().map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::Write, Kind::Read, Kind::Write, Kind::Read, Kind::Trim]);
}

#[test]
fn mqsim() {
    let text = "938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n";
    let expected = [
        request(0, 4, Kind::Write, 264_719_034 * 512, 8 * K),
        request(315_000, 3, Kind::Read, 197_570_570 * 512, 8 * K),
    ];
    assert_eq!(read(text, Format::Mqsim), expected);
}

#[test]
fn alibaba() {
    let text =
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n";
    let expected = [
        request(0, 419, Kind::Write, 8_792_731_648, 16 * K),
        request(46_000, 725, Kind::Read, 59_110_326_272, 352 * K),
    ];
    assert_eq!(read(text, Format::Alibaba), expected);
    let with_header = format!("device_id,opcode,offset,length,timestamp\n{text}");
    assert_eq!(read(&with_header, Format::Alibaba), expected);
}

#[test]
fn tencent() {
    let text = "1538323200,12910952,128,0,1063\n1538323201,6265688,8,1,1126\n";
    let expected = [
        request(0, 1063, Kind::Read, 12_910_952 * 512, 64 * K),
        request(1_000_000_000, 1126, Kind::Write, 6_265_688 * 512, 4 * K),
    ];
    assert_eq!(read(text, Format::Tencent), expected);
}

#[test]
fn what_no_format_begins_with_is_not_detected() {
    for text in ["hello, world\n", "1 2 3\n", "a,b,c,d,e\n", "8,0 is a device\n", "\0\0\0\0"] {
        assert_eq!(detect(text.as_bytes()), None, "{text:?}");
        let refused = Reader::open(text.as_bytes(), "sample", ReadOptions::default());
        let message = refused.err().unwrap().to_string();
        assert!(message.contains("sample") && message.contains("alibaba"), "{message}");
    }
    for text in ["", "\n\n"] {
        let refused = Reader::open(text.as_bytes(), "sample", ReadOptions::default());
        assert_eq!(refused.err().unwrap().to_string(), "sample: it is empty");
    }
}

#[test]
fn a_line_that_is_wrong_or_cut_does_not_hide_the_format() {
    let text = "0,R,0,4096,1\nrubbish\n0,W,4096,4096,2\n0,W,8192,40";
    assert_eq!(detect(text.as_bytes()), Some(Format::Alibaba));
    assert_eq!(detect(b"1 0 16 8 0"), Some(Format::Mqsim));
}

#[test]
fn what_is_no_request_is_counted() {
    let (requests, tally) = read_as(BLKPARSE, ReadOptions::default());
    assert_eq!(tally.requests, requests.len() as u64);
    assert_eq!(tally.lines, BLKPARSE.lines().count() as u64);
    assert_eq!(tally.passed_over, tally.lines - tally.requests);
    assert_eq!((tally.malformed, tally.out_of_order), (0, 0));
}

/// blkparse prints a negative time as an unsigned number, with its seconds cut to 32 bits.
#[test]
fn a_wrapped_negative_time_of_blkparse_is_shortly_before_the_first() {
    let line = |time: &str, sector: u64| format!("  8,0  1  1 {time} 42 Q R {sector} + 8 [fio]\n");
    let text = line("0.000000000", 0)
        + &line("1266874889.709551000", 8)
        + &line("0.000100000", 16)
        + &line("1.000000000", 24);
    let (requests, tally) = read_as(&text, ReadOptions::default());
    let times: Vec<u64> = requests.iter().map(|request| request.at_ns).collect();
    assert_eq!(times, [0, 0, 100_000, 1_000_000_000]);
    assert_eq!((tally.out_of_order, tally.jumps), (1, 0));
    // As the first event, it is 616 ns before the second.
    let first = line("1266874889.709551000", 8) + &line("0.000000000", 0);
    assert_eq!(read_as(&first, ReadOptions::default()).0[1].at_ns, 616);
    // Absolute times of the year 2010 stay as they are.
    let absolute = line("1266874880.000000000", 0) + &line("1266874889.709551000", 8);
    assert_eq!(read_as(&absolute, ReadOptions::default()).0[1].at_ns, 9_709_551_000);
}

#[test]
fn a_jump_of_time_is_counted_with_its_line() {
    let text = "0,R,0,4096,0\n0,R,0,4096,1000000\n0,R,0,4096,9000000000000\n";
    let options = ReadOptions { format: Some(Format::Alibaba), ..ReadOptions::default() };
    let (_, tally) = read_as(text, options);
    let jump = tally.first_jump.unwrap();
    assert_eq!((tally.jumps, jump.line, jump.ns), (1, 3, 8_999_999_000_000_000));
}

/// A header of a tar archive, as `tar` makes it, and the first bytes of the member.
fn archive(member: &str, text: &str) -> Vec<u8> {
    let mut header = vec![0_u8; 512];
    header[..member.len()].copy_from_slice(member.as_bytes());
    header[148..156].fill(b' ');
    let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    [header, text.as_bytes().to_vec()].concat()
}

#[test]
fn archives_and_other_compressions_are_named_with_a_remedy() {
    let refused = |bytes: &[u8]| match Reader::open(bytes, "t.tgz", ReadOptions::default()) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    let tar = archive("disk 1.csv", "0,R,0,4096,0\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &tar).unwrap();
    for bytes in [tar, gzip.finish().unwrap()] {
        let told = refused(&bytes);
        let parts = [
            "t.tgz is a tar archive, whose first member is `disk 1.csv`; ",
            "`tar -xOf t.tgz 'disk 1.csv' | softflash trace summary -`",
        ];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
    for without_content in ["disks/", "././@PaxHeader"] {
        let told = refused(&archive(without_content, ""));
        assert!(told.contains("`tar -tf t.tgz` lists its members"), "{told}");
        assert!(told.contains("`tar -xOf t.tgz MEMBER | "), "{told}");
    }
    for (bytes, part) in [
        (&b"BZh91AY&SY"[..], "compressed by bzip2, which is not read; unpack it"),
        (b"\xfd7zXZ\0\0\x04", "`xz -dc t.tgz | softflash trace summary -`"),
        (b"PK\x03\x04\x14", "a ZIP archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    ] {
        assert!(refused(bytes).contains(part), "{}", refused(bytes));
    }
    // Text that begins as a magic number does is a trace.
    assert!(!refused(b"BZh is no trace\n").contains("bzip2"));
}
