//! Random requests, drawn layouts, and TLC flash, for tests of whole drives.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::random::Rng;
use softflash_drive::spec::{
    DeviceSpec, FrontierScope, MappingUnit, PageMapped, PlacementPolicy, Schedule, VictimPolicy,
    WearPolicy,
};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::{Cell, SlcTiming, presets};

/// Bytes of a mapping unit.
pub const UNIT: u64 = 4096;
/// Bytes of a flash page.
pub const PAGE: u32 = 16_384;
pub const READ_NS: u64 = 60_000;
pub const PROGRAM_NS: u64 = 2_000_000;
/// Times of blocks in SLC mode.
pub const SLC: SlcTiming = SlcTiming { read_ns: 20_000, program_ns: 150_000 };

/// TLC flash of four dies with pages of 16 KiB, behind a write buffer of so many bytes.
pub fn tlc_device(buffer_bytes: u64) -> DeviceSpec {
    let mut array = presets::small();
    array.geometry.page_bytes = PAGE;
    array.geometry.pages_per_block = 96;
    array.geometry.blocks_per_plane = 40;
    array.die.cell = Cell::Tlc;
    array.die.read_ns = vec![READ_NS];
    array.die.program_ns = vec![PROGRAM_NS];
    array.die.slc_mode = Some(SLC);
    let mut device = DeviceSpec::bare("tlc", &array);
    device.controller.write_buffer_bytes = buffer_bytes;
    device
}

/// A layout with drawn policies, frontiers and mapping unit.
pub fn drawn_layout(rng: &mut Rng) -> PageMapped {
    PageMapped {
        frontier: [FrontierScope::Die, FrontierScope::Plane][rng.below(2) as usize],
        mapping_unit: [MappingUnit::Page, MappingUnit::default()][rng.below(2) as usize],
        victim: [VictimPolicy::GREEDY, VictimPolicy::FIFO][rng.below(2) as usize],
        wear: [WearPolicy::FIFO, WearPolicy::DYNAMIC][rng.below(2) as usize],
        schedule: [Schedule::FIFO, Schedule::READS_FIRST][rng.below(2) as usize],
        placement: [PlacementPolicy::STATIC, PlacementPolicy::ROUND_ROBIN][rng.below(2) as usize],
        gather_us: 1000,
        ..PageMapped::default()
    }
}

/// Runs reads, trims and writes of three classes, of any length at any offset, in a closed loop;
/// returns the completions.
pub fn run(drive: &mut Drive, requests: usize, depth: usize, seed: u64) -> Vec<Done> {
    let mut rng = Rng::seeded(seed);
    let capacity = drive.capacity_bytes();
    let (mut submitted, mut done) = (0, Vec::new());
    while done.len() < requests {
        while submitted < requests && submitted - done.len() < depth {
            let kind = match rng.below(10) {
                0..=3 => AccessKind::Read,
                4 => AccessKind::Trim,
                _ => AccessKind::Write,
            };
            let bytes = 512 * (1 + rng.below(64));
            let offset_bytes = rng.below((capacity - bytes) / 512) * 512;
            let request = HostRequest::new(submitted as u64, kind, offset_bytes, bytes);
            let hint = submitted as u32 % 3;
            drive.submit(drive.now(), HostRequest { hint, ..request }).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} requests ended", done.len());
    }
    done
}
