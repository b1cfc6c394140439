//! Drives with every placement, schedule and kind of map under random requests: all requests
//! complete, no page is lost, and equal seeds give equal results.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]
#![expect(clippy::print_stdout, reason = "the seed of a test that fails")]

use softflash_base::random::Rng;
use softflash_drive::spec::{
    DeviceSpec, FrontierScope, PageMapped, PlacementPolicy, Schedule, VictimPolicy, WearPolicy,
};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::presets;

/// Requests of a run.
const REQUESTS: usize = 3000;

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// A random drive, with small pages of the map so that it has several.
fn draw(rng: &mut Rng) -> (DeviceSpec, PageMapped) {
    let mut array = presets::small();
    let geometry = &mut array.geometry;
    geometry.channels = 1 + rng.below(3) as u16;
    geometry.planes_per_die = 1 << rng.below(2);
    geometry.blocks_per_plane = 20 + rng.below(40) as u32;
    geometry.pages_per_block = 2 * (2 + rng.below(12) as u32);
    geometry.page_bytes = one_of(rng, &[512, 4096]);
    array.die.cache_program = rng.chance(0.5);
    let mut device = DeviceSpec::bare("random", &array);
    device.controller.write_buffer_bytes = rng.below(2) * 32 * 4096;
    device.controller.queue_depth = 8 * rng.below(3) as u32;
    let (reads, writes) = (1 + rng.below(4) as u32, 1 + rng.below(4) as u32);
    let schedules = [
        Schedule::FIFO,
        Schedule::READS_FIRST,
        Schedule::weighted_fair(reads, writes),
        Schedule::deadline(1 + rng.below(5) as u32),
    ];
    let placements = [
        PlacementPolicy::STATIC,
        PlacementPolicy::ROUND_ROBIN,
        PlacementPolicy::LEAST_QUEUE,
        PlacementPolicy::LEAST_WORN,
        PlacementPolicy::by_hint(2 + rng.below(3) as u32),
    ];
    let maps = ["page", "cached:1/8", "cached:50%", "cached:1"].map(|map| map.parse().unwrap());
    let victims = [VictimPolicy::GREEDY, VictimPolicy::FIFO, VictimPolicy::COST_BENEFIT];
    let layout = PageMapped {
        frontier: one_of(rng, &[FrontierScope::Plane, FrontierScope::Die]),
        victim: one_of(rng, &victims),
        wear: one_of(rng, &[WearPolicy::FIFO, WearPolicy::level_by(3)]),
        schedule: one_of(rng, &schedules),
        placement: one_of(rng, &placements),
        map: one_of(rng, &maps),
        parity_data_pages: one_of(rng, &[0, 0, 3]),
        copyback: rng.chance(0.5),
        write_buffer: rng.chance(0.5),
        ..PageMapped::default()
    };
    (device, layout)
}

/// Runs random requests in a closed loop; returns the completions.
fn run(drive: &mut Drive, rng: &mut Rng, requests: usize) -> Vec<Done> {
    let (capacity, depth) = (drive.capacity_bytes(), 1 + rng.below(200) as usize);
    let (mut submitted, mut done) = (0, Vec::new());
    while done.len() < requests {
        while submitted < requests && submitted - done.len() < depth {
            let kind = match rng.below(12) {
                0..=3 => AccessKind::Read,
                4 => AccessKind::Trim,
                _ => AccessKind::Write,
            };
            let bytes = 512 * (1 + rng.below(16));
            let offset_bytes = rng.below((capacity - bytes) / 512 + 1) * 512;
            let hint = rng.below(4) as u32;
            let request = HostRequest::new(submitted as u64, kind, offset_bytes, bytes);
            drive.submit(drive.now(), HostRequest { hint, ..request }).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} requests ended", done.len());
    }
    done
}

/// A drive in a random state after random requests.
fn used(seed: u64) -> (Drive, Vec<Done>) {
    let mut rng = Rng::seeded(seed).fork("policies");
    let (device, layout) = draw(&mut rng);
    println!("seed {seed}: {layout:?}");
    let mut drive = Drive::new(&device, &layout, 60.0 * rng.unit_f64()).unwrap();
    match rng.below(4) {
        0 => {}
        1 => drive.fill(),
        2 => drive.make_steady(seed),
        _ => {
            drive.fill();
            let pages = drive.capacity_bytes() / u64::from(drive.page_bytes());
            for _ in 0..2 * pages {
                let offset_bytes = rng.below(pages) * u64::from(drive.page_bytes());
                drive.overwrite_hinted_now(offset_bytes, rng.below(3) as u32);
            }
        }
    }
    assert_eq!(drive.check(), Ok(()), "seed {seed}");
    let done = run(&mut drive, &mut rng, REQUESTS);
    (drive, done)
}

#[test]
fn all_requests_complete_and_no_page_is_lost() {
    for seed in 0..150 {
        let (mut drive, done) = used(seed);
        assert_eq!(drive.check(), Ok(()), "seed {seed}");
        assert_eq!(done.len(), REQUESTS, "seed {seed}");
        while drive.step(&mut Vec::new()) {}
        assert_eq!(drive.check(), Ok(()), "seed {seed}");
        assert_eq!(drive.in_flight(), 0, "seed {seed}");
    }
}

#[test]
fn equal_seeds_give_equal_results() {
    for seed in 0..20 {
        let ((first, of_first), (second, of_second)) = (used(seed), used(seed));
        assert_eq!(of_first, of_second, "seed {seed}");
        assert_eq!(first.counters(), second.counters(), "seed {seed}");
        assert_eq!(first.map_counters(), second.map_counters(), "seed {seed}");
    }
}
