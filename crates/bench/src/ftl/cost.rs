//! Processor time, cycles and instructions of a part of the benchmark, and the cost of what the
//! volume layer calls for every mapping unit: checksum, copy, and the commands of the null device.

use super::counters::Counters;
use super::null_device::{Commands, FILLER, Medium, NullQueue, PAGE_BYTES, SharedMedium, Traffic};
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_base::{IoBuf, Time, UnitId, cast, checksum};
use softflash_console::measure::Stopwatch;
use softflash_device::{Command, Described, Hint, Operation, QueuePair, Tag, Target, UnitGeometry};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

/// Mapping units that are checked or copied in turn: as many as a frame has, which stay in the
/// cache of a core as frames do.
const IN_TURN: usize = 64;
/// Repetitions, enough for a tenth of a second.
const REPETITIONS: u64 = 400_000;
/// Commands of a kind that the device is measured with.
const COMMANDS: u64 = 100_000;

/// The cost of so many operations.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    operations: u64,
    cpu_seconds: f64,
    instructions: Option<u64>,
    cycles: Option<u64>,
}

impl Spent {
    /// The cost of `work`, which does so many operations.
    pub fn by<E>(operations: u64, work: impl FnOnce() -> Result<(), E>) -> Result<Spent, E> {
        let counters = Counters::start();
        let watch = Stopwatch::start();
        work()?;
        let cost = watch.stop();
        let (instructions, cycles) = counters.stop();
        Ok(Spent { operations, cpu_seconds: cost.cpu_seconds, instructions, cycles })
    }

    pub fn ns(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.operations.max(1) as f64
    }

    pub fn instructions(&self) -> Option<f64> {
        self.instructions.map(|count| count as f64 / self.operations.max(1) as f64)
    }

    pub fn cycles(&self) -> Option<f64> {
        self.cycles.map(|count| count as f64 / self.operations.max(1) as f64)
    }
}

/// The cost of the parts of every write and read, measured alone.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct UnitCosts {
    /// Processor time of the checksum of a mapping unit, in nanoseconds.
    pub checksum_ns: f64,
    /// The same of its copy.
    pub copy_ns: f64,
}

impl UnitCosts {
    /// Measures them by the functions that the volume layer calls.
    pub fn measure() -> UnitCosts {
        let (from, mut to) = (vec![0xa5_u8; PAGE_BYTES], IoBuf::zeroed(PAGE_BYTES * IN_TURN));
        let copy_ns = ns_of(|turn| {
            let at = turn * PAGE_BYTES;
            to[at..at + PAGE_BYTES].copy_from_slice(black_box(&from));
        });
        let checksum_ns = ns_of(|turn| {
            let at = turn * PAGE_BYTES;
            black_box(checksum::checksum64(cast::wide(turn), black_box(&to[at..at + PAGE_BYTES])));
        });
        UnitCosts { checksum_ns, copy_ns }
    }
}

fn ns_of(mut work: impl FnMut(usize)) -> f64 {
    let watch = Stopwatch::start();
    for turn in 0..REPETITIONS {
        work(black_box(turn as usize % IN_TURN));
    }
    watch.stop().cpu_seconds * 1e9 / REPETITIONS as f64
}

/// The processor time in seconds that the null device takes for such commands: reads at random
/// places of the medium, programs one behind the other.
pub fn of_device(medium: &SharedMedium, commands: Commands) -> f64 {
    let (reads, programs) = (commands.reads, commands.programs);
    let mut rng = Rng::seeded(0);
    let read = seconds_of(reads, medium, Operation::Read, |geometry, rows| {
        let page = rng.below(u64::from(geometry.pages_per_block - rows));
        (rng.below(geometry.blocks_per_plane.into()), page)
    });
    let apart: SharedMedium = Rc::new(RefCell::new(Medium::new(1, 1, 1 << 14)));
    let mut next = 0;
    let program = |data| Operation::Program { data, durable: false };
    let program = seconds_of(programs, &apart, program, |geometry, rows| {
        let page = next;
        next = (next + u64::from(rows)) % u64::from(geometry.pages_per_block - rows);
        (0, page)
    });
    read + program
}

/// The time of such commands at the blocks and pages that `place` chooses.
fn seconds_of(
    traffic: Traffic,
    medium: &SharedMedium,
    operation: impl Fn(IoBuf) -> Operation,
    mut place: impl FnMut(&UnitGeometry, u32) -> (u64, u64),
) -> f64 {
    let rows = cast::saturating_u32(traffic.pages_of_one());
    let mut queue = NullQueue::new(medium);
    let geometry = *queue.geometry();
    let mut completions = Vec::new();
    let mut buffer = IoBuf::zeroed(PAGE_BYTES * cast::index(rows));
    buffer.fill(FILLER);
    if rows > 1 {
        // The head of a frame, if these are programs.
        buffer[..PAGE_BYTES].fill(0);
    }
    let mut buffer = Some(buffer);
    let watch = Stopwatch::start();
    for tag in 0..COMMANDS {
        let Some(data) = buffer.take() else { break };
        let (block, page) = place(&geometry, rows);
        let target = Target {
            unit: UnitId(0),
            die: 0,
            plane: 0,
            planes: 1,
            blocks: [cast::low_u32(block), 0, 0, 0],
            page: cast::low_u32(page),
            rows,
        };
        let command =
            Command { tag: Tag(tag), target, operation: operation(data), hint: Hint::FOREGROUND };
        let _ = queue.submit(Time::ZERO, command);
        queue.poll(Time::ZERO, &mut completions);
        buffer = completions.pop().and_then(|done| done.buffer);
    }
    watch.stop().cpu_seconds / COMMANDS as f64 * traffic.commands as f64
}
