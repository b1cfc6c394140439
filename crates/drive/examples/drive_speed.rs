//! Measures how many requests a page-mapped drive simulates in a CPU-second:
//! `drive_speed [write|read|mix] [OP %] [none|fill|steady] [requests] [device.toml] [bands]`, where
//! bands are a width, as 1/8.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use softflash_base::random::Rng;
use softflash_drive::{AccessKind, Drive, HostRequest, spec};

/// Requests of a batch; the map entries of the next one are prefetched.
const BATCH: usize = 16;

/// Requests under way.
const IN_FLIGHT: u64 = 256;

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = schedstat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize, or: &str| arguments.get(at).map_or(or.to_owned(), String::clone);
    let reads = match argument(1, "write").as_str() {
        "read" => 1.0,
        "mix" => 0.5,
        _ => 0.0,
    };
    let device: spec::DeviceSpec = toml::from_str(&std::fs::read_to_string(argument(
        5,
        "presets/devices/mqsim-default.toml",
    ))?)?;
    let bands = match arguments.get(6) {
        None => spec::Bands::None,
        Some(width) => {
            let width = spec::Share::parse(width).ok_or("bands: no share of 1, as 1/8")?;
            spec::Bands::Widths(vec![width])
        }
    };
    let layout = spec::PageMapped {
        copyback: bands == spec::Bands::None,
        bands,
        write_buffer: false,
        suspend: false,
        mapping_unit: spec::MappingUnit::Page,
        ..spec::PageMapped::default()
    };
    let mut drive = Drive::new(&device, &layout, argument(2, "7").parse()?)?;
    let before = cpu_seconds();
    match argument(3, "fill").as_str() {
        "none" => {}
        "steady" => drive.make_steady(1),
        _ => drive.fill(),
    }
    println!("prepared in {:.2} s", cpu_seconds() - before);
    let requests: u64 = argument(4, "10000000").parse()?;

    let (mut rng, pages) = (Rng::seeded(1), drive.capacity_bytes() / 8192);
    let mut next = || {
        let kind = if rng.chance(reads) { AccessKind::Read } else { AccessKind::Write };
        HostRequest::new(0, kind, rng.below(pages) * 8192, 8192)
    };
    let mut batch = || -> Vec<HostRequest> { (0..BATCH).map(|_| next()).collect() };
    let (mut now, mut soon) = (batch(), batch());
    let before = cpu_seconds();
    let (mut submitted, mut completed, mut done) = (0, 0, Vec::new());
    drive.clear_counters();
    while completed < requests {
        while submitted < requests && submitted - completed < IN_FLIGHT {
            drive.submit(drive.now(), now[submitted as usize % BATCH])?;
            submitted += 1;
            if (submitted as usize).is_multiple_of(BATCH) {
                now = std::mem::replace(&mut soon, batch());
                for write in now.iter().filter(|request| request.kind == AccessKind::Write) {
                    drive.prefetch_write(write.offset_bytes);
                }
                soon.iter().for_each(|request| drive.prefetch(request.offset_bytes));
            }
        }
        drive.step(&mut done);
        completed += done.len() as u64;
        done.clear();
    }
    let seconds = cpu_seconds() - before;
    println!(
        "{requests} requests in {seconds:.2} s: {:.2} million a CPU-second, WAF {:.3}, {:.2} bytes a page, {:.2} s simulated",
        requests as f64 / seconds / 1e6,
        drive.counters().waf(),
        drive.memory_bytes() as f64 / drive.flash_pages() as f64,
        drive.now().0 as f64 / 1e9,
    );
    Ok(())
}
