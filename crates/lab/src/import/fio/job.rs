//! A job as a flow.

use super::file::Job;
use super::options::{Notes, Options};
use super::values::{self, Bytes, by_kind};
use crate::import::ImportError;
use softflash_workload::{BlockWorkload, Flow, Load, Pattern, RateCaps, RequestSize, SizeShare};

/// fio's request size.
const DEFAULT_SIZE: u32 = 4096;

/// The most sizes of a range of sizes.
const MOST_SIZES: u32 = 256;

/// Engines that make one request at a time, whatever `iodepth` is.
const SYNCHRONOUS: [&str; 8] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "falloc", "dev-dax"];

/// Engines that make many requests at a time to a block device or a file.
const ASYNCHRONOUS: [&str; 13] = [
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "sg",
    "null",
    "libblkio",
    "nvme",
    "xnvme",
    "spdk",
    "syslet-rw",
];

/// A job as a flow, before it has its place on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFlow {
    pub flow: Flow,
    /// What the job reads and writes.
    pub target: Target,
    /// Where its part of the target begins, from the beginning of the target.
    pub offset: Bytes,
    /// Each copy begins so many bytes behind the one before, on the same target.
    pub offset_increment: u64,
    /// Bytes that a copy of the job uses; none for all of the target.
    pub size: Option<Bytes>,
    /// Virtual time before the measured part.
    pub warm_up_ns: u64,
}

/// What a job reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A block device.
    Device(String),
    /// A file, or a device under another name.
    File(String),
    /// A file of each copy of the job.
    OwnFiles,
}

/// Reads, writes and trims, in order or at random.
#[derive(Debug, Clone, Copy)]
struct Requests {
    read_fraction: f64,
    trim_fraction: f64,
    random: bool,
}

pub fn flow(file: &str, job: Job, notes: &mut Notes) -> Result<JobFlow, ImportError> {
    let mut options = Options::of(file, job);
    let job = read(&mut options, notes)?;
    options.leave(notes)?;
    Ok(job)
}

/// Takes the options that have a meaning here.
fn read(options: &mut Options, notes: &mut Notes) -> Result<JobFlow, ImportError> {
    let kb_base = options.read(&["kb_base"], 1024, values::number)?;
    let requests = requests(options, notes)?;
    let sizes = sizes(options, kb_base, requests, notes)?;
    let pattern = pattern(options, requests, notes)?;
    let mut workload = BlockWorkload::new(options.name.clone(), sizes.0.clone(), pattern);
    workload.title = "A job of fio".to_owned();
    (workload.read_fraction, workload.trim_fraction) =
        (requests.read_fraction, requests.trim_fraction);
    if sizes.0 != sizes.1 {
        workload.size = None;
        (workload.read_size, workload.write_size) = (Some(sizes.0.clone()), Some(sizes.1.clone()));
    }
    workload.align_bytes = align(options, kb_base)?;
    let mean_bytes = {
        let [reads, writes] = [&sizes.0, &sizes.1].map(RequestSize::mean_bytes);
        reads * requests.read_fraction + writes * (1.0 - requests.read_fraction)
    };
    workload.load = load(options, notes)?;
    workload.rate_caps = caps(options, kb_base, &sizes, notes)?;
    let size = options.read(&["size"], None, |text| values::bytes(text, kb_base).map(Some))?;
    let filesize =
        options.read(&["filesize"], None, |text| values::bytes(text, kb_base).map(Some))?;
    let size = size.or(filesize);
    let passes = limits(options, kb_base, size, mean_bytes, &mut workload)?;
    flushes(options, &mut workload, notes)?;
    let copies = options.read(&["numjobs"], 1, values::number)?;
    let copies = u32::try_from(copies)
        .map_err(|_| options.wrong_job(format!("numjobs = {copies} is too large")))?;
    let second = 1_000_000_000;
    let start_ns = options.read(&["startdelay", "start_delay"], 0, |text| {
        values::nanoseconds(text, second).map_err(|problem| match text.contains('-') {
            true => "a range of times is not built; write one time, as 5s".to_owned(),
            false => problem,
        })
    })?;
    let warm_up_ns = options.read(&["ramp_time"], 0, |text| values::nanoseconds(text, second))?;
    let offset =
        options.read(&["offset"], Bytes::Number(0), |text| values::bytes(text, kb_base))?;
    let offset_increment =
        options.read(&["offset_increment"], 0, |text| values::plain_bytes(text, kb_base))?;
    let target = target(options)?;
    let after_previous = options.read(&["stonewall", "wait_for_previous"], false, values::flag)?;
    let flow = Flow { copies, copy_offset_bytes: 0, start_ns, passes, after_previous, workload };
    Ok(JobFlow { flow, target, offset, offset_increment, size, warm_up_ns })
}

/// What is read and written, and in which order.
fn requests(options: &mut Options, notes: &mut Notes) -> Result<Requests, ImportError> {
    let reads = options.read(&["rwmixread"], None, |text| values::share(text).map(Some))?;
    let writes = options.read(&["rwmixwrite"], None, |text| values::share(text).map(Some))?;
    let mixed = reads.or(writes.map(|share| 1.0 - share)).unwrap_or(0.5);
    let name = options.name.clone();
    let requests = options.read(&["rw", "readwrite"], "read".to_owned(), |text| {
        match text.split_once(':') {
            None => Ok(text.to_lowercase()),
            Some((word, _)) => Err(format!(
                "`{text}`: a number behind {word} is not built; write rw={word}, for each request its own place"
            )),
        }
    });
    let word = requests?;
    let of =
        |read_fraction, trim_fraction, random| Requests { read_fraction, trim_fraction, random };
    Ok(match word.as_str() {
        "read" => of(1.0, 0.0, false),
        "write" => of(0.0, 0.0, false),
        "trim" => of(0.0, 1.0, false),
        "randread" => of(1.0, 0.0, true),
        "randwrite" => of(0.0, 0.0, true),
        "randtrim" => of(0.0, 1.0, true),
        "randrw" => of(mixed, 0.0, true),
        "rw" | "readwrite" => {
            notes.add(format!(
                "{name}: reads and writes go through the same places in one order; fio has an order of each"
            ));
            of(mixed, 0.0, false)
        }
        other => {
            return Err(options.wrong_job(format!(
                "rw = `{other}` is not built; known are read, write, trim, rw, randread, randwrite, randtrim, randrw"
            )));
        }
    })
}

/// The sizes of reads, and of writes and trims.
fn sizes(
    options: &mut Options,
    kb_base: u64,
    requests: Requests,
    notes: &mut Notes,
) -> Result<(RequestSize, RequestSize), ImportError> {
    let trims = requests.trim_fraction == 1.0;
    let both = |text: &str, read: &dyn Fn(&str) -> Result<RequestSize, String>| {
        let [reads, writes, only_trims] = by_kind(text);
        let default = || Ok(RequestSize::Fixed(DEFAULT_SIZE));
        let writes = if trims { only_trims } else { writes };
        Ok((reads.map_or_else(default, read)?, writes.map_or_else(default, read)?))
    };
    let plain = (RequestSize::Fixed(DEFAULT_SIZE), RequestSize::Fixed(DEFAULT_SIZE));
    let one = |text: &str| values::plain_bytes(text, kb_base).and_then(size);
    let fixed = options.read(&["bs", "blocksize"], plain, |text| {
        both(text, &|text| one(text).map(RequestSize::Fixed))
    })?;
    let range = options.read(&["bsrange", "blocksize_range"], None, |text| {
        both(text, &|text| size_range(text, &one)).map(Some)
    })?;
    if range.is_some() {
        notes.add(format!(
            "{}: all multiples of the least size of bsrange are equally frequent",
            options.name
        ));
    }
    let split = options
        .read(&["bssplit"], None, |text| both(text, &|text| size_split(text, &one)).map(Some))?;
    Ok(split.or(range).unwrap_or(fixed))
}

fn size(bytes: u64) -> Result<u32, String> {
    let size = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
    size.ok_or_else(|| format!("a request of {bytes} bytes; it must be from 1 byte to 4 GiB"))
}

/// `1k-4k`.
fn size_range(
    text: &str,
    one: &dyn Fn(&str) -> Result<u32, String>,
) -> Result<RequestSize, String> {
    let (least, most) = text.split_once('-').ok_or(format!("`{text}` is no range, as 4k-64k"))?;
    let (least, most) = (one(least)?, one(most)?);
    let count = most / least;
    if count == 0 || count > MOST_SIZES {
        return Err(format!(
            "`{text}` has {count} multiples of its least size; 1 to {MOST_SIZES} can be: write bssplit"
        ));
    }
    let share = |times| SizeShare { bytes: least * times, weight: 1.0 };
    Ok(RequestSize::Mixed((1..=count).map(share).collect()))
}

/// `4k/60:64k/40`; sizes without a percentage share the rest evenly.
fn size_split(
    text: &str,
    one: &dyn Fn(&str) -> Result<u32, String>,
) -> Result<RequestSize, String> {
    let mut all = Vec::new();
    for part in text.split(':') {
        let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
        let share = if percent.is_empty() { None } else { Some(values::share(percent)?) };
        all.push((one(bytes)?, share));
    }
    let given: f64 = all.iter().filter_map(|(_, share)| *share).sum();
    let open = all.iter().filter(|(_, share)| share.is_none()).count().max(1) as f64;
    let rest = (1.0 - given).max(0.0) / open;
    let share =
        |(bytes, share): (u32, Option<f64>)| SizeShare { bytes, weight: share.unwrap_or(rest) };
    Ok(RequestSize::Mixed(all.into_iter().map(share).collect()))
}

fn align(options: &mut Options, kb_base: u64) -> Result<Option<u32>, ImportError> {
    options.read(&["blockalign", "ba"], None, |text| {
        let [first, ..] = by_kind(text);
        first.map(|text| values::plain_bytes(text, kb_base).and_then(size)).transpose()
    })
}

/// The order of places.
fn pattern(
    options: &mut Options,
    requests: Requests,
    notes: &mut Notes,
) -> Result<Pattern, ImportError> {
    let files = options.read(&["nrfiles"], 1, values::number)?;
    let streams = u32::try_from(files.max(1))
        .map_err(|_| options.wrong_job(format!("nrfiles = {files} is too large")))?;
    let service =
        options.read(&["file_service_type"], String::new(), |text| Ok(text.to_owned()))?;
    if streams > 1 && !requests.random && !(service.is_empty() || service == "roundrobin") {
        return Err(options.wrong_job(format!(
            "file_service_type = {service} is not built: files take turns; remove it"
        )));
    }
    let exhaustive = options.take(&["norandommap"]).is_none();
    let distribution = options
        .read(&["random_distribution"], "random".to_owned(), |text| Ok(text.to_lowercase()))?;
    if !requests.random {
        return Ok(Pattern::Sequential { streams });
    }
    let mut parts = distribution.split(':');
    let word = parts.next().unwrap_or_default();
    let number = |text: Option<&str>, default: f64| match text {
        None => Ok(default),
        Some(text) => text.parse::<f64>().map_err(|_| {
            options.wrong_job(format!("random_distribution: `{text}` is no number, as zipf:1.2"))
        }),
    };
    let parameter = parts.next();
    if word != "zoned" && word != "zoned_abs" && parts.next().is_some() {
        return Err(options.wrong_job(
            "random_distribution: a centre of the popular places is not built; remove it"
                .to_owned(),
        ));
    }
    match word {
        "random" => {
            if exhaustive {
                notes.add(
                    "random places may repeat before all have been used, as with norandommap".to_owned(),
                );
            }
            Ok(Pattern::Random)
        }
        "zipf" => Ok(Pattern::Zipf { exponent: number(parameter, 1.1)?, scattered: true }),
        "pareto" => Ok(Pattern::Pareto { share: number(parameter, 0.2)?, scattered: true }),
        other => Err(options.wrong_job(format!(
            "random_distribution = {other} is not built; known are random, zipf:EXPONENT and pareto:SHARE"
        ))),
    }
}

/// The closed loop of a copy of the job.
fn load(options: &mut Options, notes: &mut Notes) -> Result<Load, ImportError> {
    let depth = options.read(&["iodepth"], 1, values::number)?;
    let engine = options.read(&["ioengine"], "psync".to_owned(), |text| Ok(text.to_lowercase()))?;
    let synchronous = SYNCHRONOUS.contains(&engine.as_str());
    if !synchronous && !ASYNCHRONOUS.contains(&engine.as_str()) {
        return Err(options.wrong_job(format!(
            "ioengine = {engine} makes no requests to a block device; use libaio, io_uring or psync"
        )));
    }
    if synchronous && depth > 1 {
        notes.add(format!(
            "{}: ioengine {engine} makes one request at a time, so iodepth = {depth} has no effect, as in fio",
            options.name
        ));
    }
    let depth = if synchronous { 1 } else { depth };
    let queue_depth = u32::try_from(depth)
        .map_err(|_| options.wrong_job(format!("iodepth = {depth} is too large")))?;
    let think_ns = options.read(&["thinktime"], 0, |text| values::nanoseconds(text, 1000))?;
    if options.take(&["thinktime_blocks"]).is_some_and(|setting| setting.value != "1") {
        return Err(options.wrong_job(
            "thinktime_blocks is not built: clients think after each request; remove it".to_owned(),
        ));
    }
    Ok(Load::Closed { threads: 1, queue_depth, batch: None, barrier: false, think_ns })
}

/// `rate` and `rate_iops`, each of reads and of writes.
fn caps(
    options: &mut Options,
    kb_base: u64,
    sizes: &(RequestSize, RequestSize),
    notes: &mut Notes,
) -> Result<RateCaps, ImportError> {
    let both = |text: &str, read: &dyn Fn(&str) -> Result<u64, String>| {
        let [reads, writes, _] = by_kind(text);
        Ok([reads.map(read).transpose()?, writes.map(read).transpose()?])
    };
    let bytes = options.read(&["rate"], [None; 2], |text| {
        both(text, &|text| values::plain_bytes(text, kb_base))
    })?;
    let iops = options.read(&["rate_iops"], [None; 2], |text| {
        both(text, &|text| values::plain_bytes(text, 1000))
    })?;
    let mixed = [&sizes.0, &sizes.1].into_iter().any(|size| matches!(size, RequestSize::Mixed(_)));
    if iops != [None; 2] && mixed {
        notes.add(format!(
            "{}: rate_iops caps the bytes of so many requests of the mean size",
            options.name
        ));
    }
    let of_iops = |iops: Option<u64>, size: &RequestSize| {
        iops.map(|iops| (iops as f64 * size.mean_bytes()).round() as u64)
    };
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let ([read_bytes, write_bytes], [read_iops, write_iops]) = (bytes, iops);
    // A rate of 0 is none, as in fio.
    let some = |rate: &u64| *rate > 0;
    Ok(RateCaps {
        read_bytes_per_second: least(read_bytes, of_iops(read_iops, &sizes.0)).filter(some),
        write_bytes_per_second: least(write_bytes, of_iops(write_iops, &sizes.1)).filter(some),
        burst_bytes: 0,
    })
}

/// When the job ends: after its bytes, unless it is time-based, and after its time. Returns how
/// many times it uses its part of the device, where the bytes are those of the device.
fn limits(
    options: &mut Options,
    kb_base: u64,
    size: Option<Bytes>,
    mean_bytes: f64,
    workload: &mut BlockWorkload,
) -> Result<Option<u32>, ImportError> {
    let second = 1_000_000_000;
    let runtime =
        options.read(&["runtime", "timeout"], 0, |text| values::nanoseconds(text, second))?;
    let time_based = options.read(&["time_based"], false, values::flag)? && runtime > 0;
    let io_size = options
        .read(&["io_size", "io_limit"], None, |text| values::bytes(text, kb_base).map(Some))?;
    let loops = options.read(&["loops"], 1, values::number)?;
    let most =
        options.read(&["number_ios"], None, |text| values::plain_bytes(text, kb_base).map(Some))?;
    workload.duration_ns = (runtime > 0).then_some(runtime);
    if time_based {
        return Ok(None);
    }
    let (requests, passes) = match io_size.or(size) {
        Some(Bytes::Number(bytes)) => {
            let all = bytes.saturating_mul(loops) as f64 / mean_bytes;
            (Some((all.ceil() as u64).max(1)), None)
        }
        _ => (None, Some(u32::try_from(loops).unwrap_or(u32::MAX).max(1))),
    };
    workload.requests = requests.into_iter().chain(most).min();
    Ok(passes)
}

/// Flushes, and writes that end when they are durable.
fn flushes(
    options: &mut Options,
    workload: &mut BlockWorkload,
    notes: &mut Notes,
) -> Result<(), ImportError> {
    let every = [["fsync"], ["fdatasync"]].map(|name| options.read(&name, 0, values::number));
    let [sync, data] = every;
    let every = [sync?, data?].into_iter().filter(|&every| every > 0).min().unwrap_or(0);
    workload.flush_every = u32::try_from(every).unwrap_or(u32::MAX);
    workload.fua_every = options.read(&["sync"], 0, |text| match text {
        "0" | "none" => Ok(0),
        "1" | "sync" | "dsync" => Ok(1),
        _ => Err(format!("`{text}`: write none, sync or dsync")),
    })?;
    if let Some(setting) = options.take(&["sync_file_range"]).filter(|setting| setting.value != "0")
    {
        notes.add(format!("sync_file_range (line {}) has no effect", setting.line));
    }
    Ok(())
}

/// What the job reads and writes.
fn target(options: &mut Options) -> Result<Target, ImportError> {
    let Some(setting) = options.take(&["filename"]) else { return Ok(Target::OwnFiles) };
    let name = setting.value;
    let is_device = |name: &str| name.starts_with("/dev/") || name.starts_with("\\\\");
    // On Windows a colon belongs to the name.
    if is_device(&name) && name.contains(":/dev/") {
        return Err(options.wrong(
            setting.line,
            format!("`{name}`: a job of several devices is not built; write a job for one of them"),
        ));
    }
    Ok(if is_device(&name) { Target::Device(name) } else { Target::File(name) })
}
