//! Runs random drives under random requests and prints a checksum of all completions and counters:
//! `drive_fingerprint [configurations] [first seed]`. A change that must not change results prints
//! the same numbers before and after. The second line of totals is of drives that place, rank or
//! look up pages.

#![expect(clippy::print_stdout, reason = "it prints what it found")]

use softflash_base::checksum::checksum64;
use softflash_base::random::Rng;
use softflash_drive::spec::{
    ControllerSpec, DeviceSpec, FrontierScope, HostSpec, LinkSpec, PageMapped, Schedule,
    VictimPolicy,
};
use softflash_drive::spec::{MapKind, PlacementPolicy, Share, WearPolicy};
use softflash_drive::{AccessKind, Done, Drive, DriveCounters, HostRequest};
use softflash_nand::presets;

/// Requests of a run.
const REQUESTS: usize = 6000;

/// A random device and a random layout.
fn draw(rng: &mut Rng) -> (DeviceSpec, PageMapped) {
    let mut array = presets::small();
    let geometry = &mut array.geometry;
    geometry.channels = 1 + rng.below(3) as u16;
    geometry.planes_per_die = 1 << rng.below(3);
    geometry.blocks_per_plane = 8 + rng.below(40) as u32;
    geometry.pages_per_block = 2 * (2 + rng.below(30) as u32);
    array.die.cache_read = rng.chance(0.5);
    array.die.cache_program = rng.chance(0.5);
    let mut device = DeviceSpec::bare("random", &array);
    if rng.chance(0.5) {
        device.link = LinkSpec {
            read_bytes_per_second: 300_000_000,
            write_bytes_per_second: 200_000_000,
            half_duplex: rng.chance(0.5),
        };
    }
    device.controller = ControllerSpec {
        request_ns: 2_000 * rng.below(2),
        read_page_ns: 3_000 * rng.below(2),
        write_page_ns: 5_000 * rng.below(2),
        write_buffer_bytes: 64 * 4096 * rng.below(2),
        queue_depth: 8 * rng.below(3) as u32,
        ..ControllerSpec::default()
    };
    device.host = HostSpec {
        submit_ns: 1_000 * rng.below(2),
        complete_ns: 2_000 * rng.below(2),
        completions_per_interrupt: 1,
    };
    let layout = PageMapped {
        frontier: if rng.chance(0.5) { FrontierScope::Plane } else { FrontierScope::Die },
        victim: if rng.chance(0.5) { VictimPolicy::GREEDY } else { VictimPolicy::FIFO },
        schedule: if rng.chance(0.5) { Schedule::FIFO } else { Schedule::READS_FIRST },
        parity_data_pages: [0, 0, 3, 10][rng.below(4) as usize],
        copyback: rng.chance(0.5),
        write_buffer: rng.chance(0.5),
        suspend: false,
        ..PageMapped::default()
    };
    (device, layout)
}

/// As the layout, with other policies, streams, and a map that may lie on flash.
fn placed(layout: PageMapped, rng: &mut Rng) -> PageMapped {
    let placements = [
        PlacementPolicy::STATIC,
        PlacementPolicy::ROUND_ROBIN,
        PlacementPolicy::LEAST_QUEUE,
        PlacementPolicy::LEAST_WORN,
        PlacementPolicy::by_hint(2),
        PlacementPolicy::by_hint(3),
    ];
    let schedules = [
        Schedule::FIFO,
        Schedule::READS_FIRST,
        Schedule::deadline(1),
        Schedule::weighted_fair(3, 1),
    ];
    let victims = [VictimPolicy::COST_BENEFIT, VictimPolicy::d_choices(3), layout.victim];
    let cached = Share::new(1, 1 + rng.below(8) as u32).map(MapKind::Cached);
    PageMapped {
        placement: placements[rng.below(6) as usize],
        schedule: schedules[rng.below(4) as usize],
        victim: victims[rng.below(3) as usize],
        wear: [WearPolicy::FIFO, WearPolicy::DYNAMIC][rng.below(2) as usize],
        map: cached.filter(|_| rng.chance(0.4)).unwrap_or_default(),
        suspend: rng.chance(0.5),
        ..layout
    }
}

/// Runs random requests in a closed loop; returns the completions.
fn run(
    drive: &mut Drive,
    rng: &mut Rng,
    hints: u64,
) -> Result<Vec<Done>, Box<dyn std::error::Error>> {
    let (capacity, depth) = (drive.capacity_bytes(), 1 + rng.below(40) as usize);
    let largest = 1 + rng.below(64).min(capacity / 1024);
    let (mut submitted, mut done) = (0, Vec::new());
    while done.len() < REQUESTS {
        while submitted < REQUESTS && submitted - done.len() < depth {
            let kind = match rng.below(12) {
                0..=3 => AccessKind::Read,
                4 => AccessKind::Trim,
                _ => AccessKind::Write,
            };
            let bytes = 512 * (1 + rng.below(largest));
            let offset_bytes = rng.below((capacity - bytes) / 512 + 1) * 512;
            let request = HostRequest::new(submitted as u64, kind, offset_bytes, bytes);
            let hint = if hints > 0 { rng.below(hints) as u32 } else { 0 };
            drive.submit(drive.now(), HostRequest { hint, ..request })?;
            submitted += 1;
        }
        if !drive.step(&mut done) {
            return Err("nothing is under way".into());
        }
    }
    Ok(done)
}

/// The counters, in an order that stays when others are added.
fn counts(counters: &DriveCounters) -> [u64; 12] {
    [
        counters.submitted,
        counters.completed,
        counters.host_pages_written,
        counters.host_pages_read,
        counters.programmed_for_host,
        counters.programmed_for_collection,
        counters.programmed_for_parity,
        counters.read_for_host,
        counters.read_for_partial_writes,
        counters.read_without_flash,
        counters.absorbed,
        counters.erases,
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let configurations: u64 = arguments.next().map_or(Ok(200), |given| given.parse())?;
    let first: u64 = arguments.next().map_or(Ok(1), |given| given.parse())?;
    for is_placed in [false, true] {
        let (mut all, mut erases) = (0, 0);
        for seed in first..first + configurations {
            let mut rng = Rng::seeded(seed);
            let (device, mut layout) = draw(&mut rng);
            if is_placed {
                layout = placed(layout, &mut rng.fork("placed"));
            }
            let op_percent = 60.0 * rng.unit_f64();
            let mut drive = match Drive::new(&device, &layout, op_percent) {
                // Of a few blocks, several streams leave none for data.
                Err(_) if is_placed => continue,
                made => made?,
            };
            match rng.below(3) {
                0 => {}
                1 => drive.fill(),
                _ => drive.make_steady(seed),
            }
            let done = run(&mut drive, &mut rng, if is_placed { 3 } else { 0 })?;
            drive.check()?;
            let counters = drive.counters();
            let mut text = format!("{done:?} {:?} {}", counts(&counters), drive.now().0);
            if is_placed {
                text += &format!("{} {:?}", counters.programmed_for_map, drive.map_counters());
            }
            all = checksum64(all, text.as_bytes());
            erases += counters.erases;
            if seed % 20 == 0 {
                println!("seed {seed}: {all:016x}");
            }
        }
        println!("{configurations} configurations, {erases} erases: {all:016x}");
    }
    Ok(())
}
