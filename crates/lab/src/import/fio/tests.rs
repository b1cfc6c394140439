use super::values::Bytes;
use super::*;
use softflash_workload::{Begin, Load, Pattern, RequestSize, Span};

/// A file in fio's manner: a reader and two writers on one device.
const JOBS: &str = "\
; two tenants
[global]
ioengine=libaio
direct=1          # no page cache
filename=/dev/nvme0n1
size=1g
runtime=30
ramp_time=2s
group_reporting

[reader]
rw=randread
bs=4k
iodepth=8
random_distribution=zipf:0.9

[writer]
rw=randwrite
bs=,64k
numjobs=2
offset=50%
size=25%
rate_iops=100
thinktime=5ms
fsync=16
surprise=1
";

fn read(text: &str) -> Result<Jobs, String> {
    jobs("mine", "mine.fio", text, &[]).map_err(|error| error.to_string())
}

/// The flow of the only job with these lines.
fn flow(lines: &str) -> Flow {
    read(&format!("[job]\n{lines}\n")).unwrap().workload.flows.remove(0)
}

#[test]
fn jobs_become_flows() {
    let Jobs { workload, remarks } = read(JOBS).unwrap();
    let [reader, writer] = workload.flows.as_slice() else { panic!("{workload:?}") };
    assert_eq!((reader.name(), reader.copies, reader.workload.read_fraction), ("reader", 1, 1.0));
    assert_eq!(reader.workload.load, Load::closed(1, 8));
    assert_eq!(reader.workload.pattern, Pattern::Zipf { exponent: 0.9, scattered: true });
    assert_eq!(reader.workload.span, Span::Bytes(1 << 30));
    // A gigabyte of requests of 4 KiB, or 30 seconds.
    assert_eq!(reader.workload.requests, Some(1 << 18));
    assert_eq!(reader.workload.duration_ns, Some(30_000_000_000));
    assert_eq!((writer.name(), writer.copies, writer.workload.read_fraction), ("writer", 2, 0.0));
    assert_eq!(writer.workload.write_size, Some(RequestSize::Fixed(65_536)));
    assert_eq!(writer.workload.rate_caps.write_bytes_per_second, Some(100 * 65_536));
    assert_eq!(
        (writer.workload.begin, writer.workload.span),
        (Begin::Share(0.5), Span::Share(0.25))
    );
    let Load::Closed { think_ns, queue_depth, .. } = writer.workload.load else { panic!("open") };
    assert_eq!((think_ns, queue_depth), (5_000_000, 1));
    assert_eq!((writer.workload.flush_every, writer.workload.fua_every), (16, 0));
    assert_eq!(workload.warm_up_ns, 2_000_000_000);
    let all = remarks.join("; ");
    for part in [
        "without effect here: direct (line 4), group_reporting (line 9)",
        "not known, and ignored: surprise (line 26)",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!all.contains("ioengine"), "{all}");
}

#[test]
fn only_the_chosen_sections_run() {
    let chosen = jobs("mine", "mine.fio", JOBS, &["writer".to_owned()]).unwrap();
    let names: Vec<&str> = chosen.workload.flows.iter().map(|flow| flow.name()).collect();
    assert_eq!(names, ["writer"]);
    let error = jobs("mine", "mine.fio", JOBS, &["writr".to_owned()]).unwrap_err().to_string();
    assert_eq!(error, "mine.fio: no job has the name `writr`; the jobs are reader, writer");
}

#[test]
fn sizes_have_the_units_of_fio() {
    let size = |text: &str| values::bytes(text, 1024);
    assert_eq!(size("4k"), Ok(Bytes::Number(4096)));
    assert_eq!(size("4KB"), Ok(Bytes::Number(4096)));
    assert_eq!(size("4kib"), Ok(Bytes::Number(4000)));
    assert_eq!(values::bytes("4kib", 1000), Ok(Bytes::Number(4096)));
    assert_eq!(size("0x1000"), Ok(Bytes::Number(4096)));
    assert_eq!(size("20%"), Ok(Bytes::Percent(20.0)));
    for wrong in ["", "k", "4x", "101%", "99999999999999999999", "9999999p"] {
        assert!(size(wrong).unwrap_err().contains(&format!("`{wrong}`")), "{wrong}");
    }
    assert_eq!(values::nanoseconds("500ms", 1), Ok(500_000_000));
    assert_eq!(values::nanoseconds("2m", 1), Ok(120_000_000_000));
    assert!(values::nanoseconds("soon", 1).is_err());
}

#[test]
fn sizes_of_requests_are_split_as_stated() {
    let split = flow("bssplit=4k/60:64k/:128k/").workload.size.unwrap();
    let RequestSize::Mixed(shares) = split else { panic!("{split:?}") };
    let shares: Vec<(u32, f64)> = shares.iter().map(|it| (it.bytes, it.weight)).collect();
    assert_eq!(shares, [(4096, 0.6), (65_536, 0.2), (131_072, 0.2)]);
    let range = flow("bsrange=4k-16k").workload.size.unwrap();
    assert_eq!(range.mean_bytes(), 10_240.0);
    let error = read("[a]\nbsrange=1-1m\n").unwrap_err();
    assert!(error.contains("line 2: bsrange: `1-1m` has 1048576 multiples"), "{error}");
}

#[test]
fn files_lie_beside_each_other_and_one_file_is_shared() {
    let begins = |text: &str| -> Vec<(Begin, u64)> {
        let flows = read(text).unwrap().workload.flows;
        flows.iter().map(|flow| (flow.workload.begin, flow.copy_offset_bytes)).collect()
    };
    let own = begins("[global]\nsize=16m\n[a]\nnumjobs=3\n[b]\noffset=1m\n[c]\n");
    let expected = [(0, 16 << 20), (49 << 20, 0), (65 << 20, 0)];
    assert_eq!(own, expected.map(|(begin, step)| (Begin::Bytes(begin), step)));
    let shared =
        begins("[global]\nsize=16m\nfilename=f\n[a]\nnumjobs=2\noffset_increment=2m\n[b]\n");
    assert_eq!(shared, [(Begin::Bytes(0), 2 << 20), (Begin::Bytes(0), 0)]);
    let error = read("[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\n").unwrap_err();
    assert!(error.contains("several devices, `/dev/sda` and `/dev/sdb`"), "{error}");
}

#[test]
fn a_stone_wall_waits_for_the_jobs_before_it() {
    let text = "[global]\nruntime=1\n[a]\n[b]\n[c]\nstonewall\n[d]\n[e]\nwait_for_previous=1\n";
    let workload = read(text).unwrap().workload;
    assert_eq!(workload.phases().collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
    // The job of a whole device ends when it has used it.
    let fill = read("[a]\nfilename=/dev/sda\nloops=2\t; twice\n[b]\nstonewall\n").unwrap();
    assert_eq!(fill.workload.flows[0].passes, Some(2));
}

#[test]
fn a_synchronous_engine_has_no_depth() {
    let depth = |lines: &str| flow(lines).workload.load.outstanding();
    assert_eq!(depth("iodepth=32"), Some(1));
    assert_eq!(depth("iodepth=32\nioengine=io_uring"), Some(32));
    let remarks = read("[job]\niodepth=32\n").unwrap().remarks.join("; ");
    assert!(remarks.contains("ioengine psync makes one request at a time"), "{remarks}");
    let error = read("[job]\nioengine=net\n").unwrap_err();
    assert!(error.contains("ioengine = net makes no requests to a block device"), "{error}");
}

#[test]
fn places_follow_their_distribution() {
    let pattern = |lines: &str| flow(lines).workload.pattern;
    assert_eq!(pattern("rw=read\nnrfiles=4"), Pattern::Sequential { streams: 4 });
    assert_eq!(pattern("rw=randread"), Pattern::Random);
    let pareto = Pattern::Pareto { share: 0.3, scattered: true };
    assert_eq!(pattern("rw=randrw\nrandom_distribution=pareto:0.3"), pareto);
    let mixed = flow("rw=randrw\nrwmixwrite=30").workload.read_fraction;
    assert!((mixed - 0.7).abs() < 1e-9, "{mixed}");
    let trims = flow("rw=randtrim\nbs=4k,8k,16k").workload;
    assert_eq!((trims.trim_fraction, trims.write_size), (1.0, Some(RequestSize::Fixed(16_384))));
}

#[test]
fn what_is_not_built_is_refused_with_its_line_and_a_remedy() {
    for (lines, told) in [
        ("wait_for=a", "line 2: wait_for is not built: jobs wait for all jobs before them"),
        ("verify=crc32c", "line 2: verify is not built: data are not stored"),
        ("zonemode=zbd", "line 2: zonemode is not built"),
        ("rw=randread:8", "line 2: rw: `randread:8`"),
        ("rw=rundread", "line 1: job `job`: rw = `rundread` is not built; known are read, write"),
        ("rw=randread\nrandom_distribution=normal:1", "random_distribution = normal is not built"),
        ("bs=0", "line 2: bs: a request of 0 bytes"),
        ("iodepth=many", "line 2: iodepth: `many` is no whole number"),
        ("size=${SIZE}", "line 2: `${SIZE}`: environment variables are not read"),
        ("include other.fio", "line 2: include: other files are not read"),
        ("numjobs=5000", "flow `job`: copies = 5000 is more than 1024"),
        ("startdelay=1-3", "line 2: startdelay: a range of times is not built"),
    ] {
        let error = read(&format!("[job]\n{lines}\n")).unwrap_err();
        assert!(error.starts_with("mine.fio: ") && error.contains(told), "{told}: {error}");
    }
    assert!(read("rw=read\n").unwrap_err().contains("before the first section"));
    assert!(read("[global]\nrw=read\n").unwrap_err().contains("it has no job"));
    assert!(read("[job\n").unwrap_err().contains("has no `]`"));
    // Switched off, an option has its meaning.
    assert!(read("[job]\nverify=0\n").is_ok());
}

#[test]
fn two_jobs_of_one_name_are_told_apart() {
    let Jobs { workload, remarks } = read("[a]\n[a]\n[a-2]\n").unwrap();
    let names: Vec<&str> = workload.flows.iter().map(|flow| flow.name()).collect();
    assert_eq!(names, ["a", "a-2", "a-2-2"]);
    assert!(remarks.iter().any(|remark| remark == "a second job `a` is the flow `a-2`"));
}

#[test]
fn any_text_is_read_or_refused() {
    let seed = 0xf10;
    println!("seed {seed}");
    let mut rng = softflash_base::random::Rng::seeded(seed);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut text = JOBS.as_bytes().to_vec();
        for _ in 0..=rng.below(4) {
            let Some(at) = text.len().checked_sub(1) else { break };
            let at = rng.below(at as u64 + 1) as usize;
            match rng.below(3) {
                0 => text[at] = rng.below(256) as u8,
                1 => text.truncate(at),
                _ => _ = text.remove(at),
            }
        }
        refused += u32::from(read(&String::from_utf8_lossy(&text)).is_err());
    }
    assert!(refused > 100, "{refused}");
}
