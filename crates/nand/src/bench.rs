//! A benchmark of the simulator: a closed loop that keeps every die busy. It reads no clock; the
//! caller measures the time.

use crate::address::{BlockAddress, DieIndex};
use crate::array::Array;
use crate::block::BlockRecord;
use crate::command::{CommandKind, DieCommand, Refused};
use crate::config::{ArrayConfig, ConfigError};
use crate::faults::FaultConfig;
use crate::geometry::{Geometry, MAX_PLANES};
use crate::storage::Storage;
use softflash_base::Time;
use softflash_base::random::Rng;
use thiserror::Error;

/// The mix of operations, as weights: pages read, pages programmed, blocks erased. A read covers
/// one plane; programs and erases cover all planes of a die, as drives write superblocks. These
/// erases are in addition to those that programs need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchmarkMix {
    /// Reads of random programmed pages.
    pub read: u32,
    /// Programs, block after block.
    pub program: u32,
    /// Erases of the next block to be programmed.
    pub erase: u32,
}

impl BenchmarkMix {
    /// Only reads.
    pub const READ: BenchmarkMix = BenchmarkMix { read: 1, program: 0, erase: 0 };
    /// Only programs, with the erases that they need.
    pub const PROGRAM: BenchmarkMix = BenchmarkMix { read: 0, program: 1, erase: 0 };
    /// 70 % reads, 29 % programs, 1 % erases.
    pub const MIXED: BenchmarkMix = BenchmarkMix { read: 70, program: 29, erase: 1 };
}

/// The counts of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchmarkResult {
    /// Pages read and programmed and blocks erased.
    pub operations: u64,
    /// Commands completed.
    pub commands: u64,
    /// Events processed.
    pub events: u64,
    /// Virtual time of the array.
    pub simulated_ns: u64,
    /// Memory of the array.
    pub memory_bytes: u64,
    /// Pages of the array.
    pub pages: u64,
}

/// Why the benchmark cannot run.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BenchmarkError {
    /// The array cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// All weights of the mix are 0.
    #[error("the mix is empty; give at least one kind of operation a part above 0")]
    EmptyMix,
    /// The planes are too small to read one half and write the other.
    #[error("the benchmark needs at least 4 blocks in a plane; there are {blocks}")]
    TooFewBlocks {
        /// Blocks in a plane.
        blocks: u32,
    },
    /// A defect of the benchmark.
    #[error("the array refused an operation of the benchmark: {0}")]
    Refused(#[from] Refused),
}

/// Runs at least `operations` operations on a timing-only array, with the queue of each die always
/// full. The first half of each plane is full and is read; the second half is written. Commands run
/// in order: suspend is off.
pub fn array_benchmark(
    config: &ArrayConfig,
    mix: BenchmarkMix,
    operations: u64,
    seed: u64,
) -> Result<BenchmarkResult, BenchmarkError> {
    let mut config = config.clone();
    config.die.program_suspend = None;
    config.die.erase_suspend = None;
    let mut array = Array::new(&config, Storage::TimingOnly, &FaultConfig::default(), seed)?;
    let geometry = config.geometry;
    if geometry.blocks_per_plane < 4 {
        return Err(BenchmarkError::TooFewBlocks { blocks: geometry.blocks_per_plane });
    }
    if mix.read == 0 && mix.program == 0 && mix.erase == 0 {
        return Err(BenchmarkError::EmptyMix);
    }
    let mut load = Load::new(geometry, mix, seed);
    fill_readable_half(&mut array);
    for _ in 0..config.die_queue_depth() {
        for die in 0..geometry.dies() {
            array.submit(Time::ZERO, &load.next(DieIndex(die)), &[])?;
        }
    }
    let mut finished = Vec::with_capacity(64);
    let mut done = 0;
    while done < operations
        && let Some(at) = array.step(&mut finished)
    {
        for ended in &finished {
            done += u64::from(ended.planes);
            array.submit(at, &load.next(ended.die), &[])?;
        }
        finished.clear();
    }
    Ok(BenchmarkResult {
        operations: done,
        commands: array.counters().finished,
        events: array.counters().events,
        simulated_ns: array.now().0,
        memory_bytes: array.memory_bytes(),
        pages: geometry.pages(),
    })
}

fn fill_readable_half(array: &mut Array) {
    let geometry = *array.geometry();
    let full =
        BlockRecord { write_pointer: Some(geometry.pages_per_block), ..BlockRecord::default() };
    for die in (0..geometry.dies()).map(DieIndex) {
        for plane in 0..geometry.planes_per_die {
            for block in 0..geometry.blocks_per_plane / 2 {
                let imported = array.import_block(BlockAddress { die, plane, block }, &full);
                assert!(imported.is_ok(), "a full block of an idle die");
            }
        }
    }
}

/// The write position of a die.
#[derive(Clone, Copy)]
struct Cursor {
    block: u32,
    page: u32,
}

/// Chooses the next command of each die.
struct Load {
    geometry: Geometry,
    rng: Rng,
    /// Cumulative weights of the commands: below the first a read, below the second a program,
    /// below the third an erase.
    until: [u64; 3],
    cursors: Vec<Cursor>,
}

impl Load {
    fn new(geometry: Geometry, mix: BenchmarkMix, seed: u64) -> Load {
        let start = Cursor { block: geometry.blocks_per_plane / 2, page: 0 };
        let planes = u64::from(geometry.planes_per_die);
        let read = u64::from(mix.read) * planes;
        let program = read + u64::from(mix.program);
        Load {
            geometry,
            rng: Rng::seeded(seed).fork("array benchmark"),
            until: [read, program, program + u64::from(mix.erase)],
            cursors: vec![start; geometry.dies() as usize],
        }
    }

    #[inline]
    fn next(&mut self, die: DieIndex) -> DieCommand {
        let [read, program, all] = self.until;
        // One draw for all choices: each choice uses a part of the random bits and leaves the rest.
        let (kind, left) = choose(self.rng.next_u64(), all);
        if kind < read { self.read(die, left) } else { self.write(die, kind >= program) }
    }

    #[inline]
    fn read(&self, die: DieIndex, drawn: u64) -> DieCommand {
        let (plane, left) = choose(drawn, self.geometry.planes_per_die.into());
        let (block, left) = choose(left, u64::from(self.geometry.blocks_per_plane / 2));
        let (page, _) = choose(left, self.geometry.pages_per_block.into());
        command(die, CommandKind::Read, plane as u8, 1, block as u32, page as u32)
    }

    /// The next program of the die, or the erase of its blocks if they are full or an erase is
    /// wanted.
    #[inline]
    fn write(&mut self, die: DieIndex, erase: bool) -> DieCommand {
        let planes = self.geometry.planes_per_die;
        let cursor = &mut self.cursors[die.index()];
        if erase || cursor.page == self.geometry.pages_per_block {
            cursor.page = 0;
            cursor.block += 1;
            if cursor.block == self.geometry.blocks_per_plane {
                cursor.block = self.geometry.blocks_per_plane / 2;
            }
            command(die, CommandKind::Erase, 0, planes, cursor.block, 0)
        } else {
            cursor.page += 1;
            command(die, CommandKind::Program, 0, planes, cursor.block, cursor.page - 1)
        }
    }
}

/// A number below `range` from random bits, and the remaining bits: the two halves of a product.
#[inline]
fn choose(bits: u64, range: u64) -> (u64, u64) {
    let product = u128::from(bits) * u128::from(range);
    ((product >> 64) as u64, product as u64)
}

#[inline]
fn command(
    die: DieIndex,
    kind: CommandKind,
    plane: u8,
    planes: u8,
    block: u32,
    page: u32,
) -> DieCommand {
    DieCommand { tag: 0, die, kind, plane, planes, blocks: [block; MAX_PLANES], page, head: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn equal_seeds_do_equal_work_in_little_memory() {
        let run =
            |seed| array_benchmark(&presets::sdf(), BenchmarkMix::MIXED, 50_000, seed).unwrap();
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).simulated_ns, run(2).simulated_ns);
        let result = run(1);
        assert!(result.memory_bytes <= 4 * result.pages, "{result:?}");
        assert!(result.operations >= 50_000);
    }

    #[test]
    fn reads_run_at_the_rate_of_the_buses() {
        let result = array_benchmark(&presets::sdf(), BenchmarkMix::READ, 100_000, 3).unwrap();
        let rate = result.operations as f64 * 8192.0 / result.simulated_ns as f64;
        // 44 channels of 40 MB/s are 1.76 GB/s.
        assert!((rate - 1.76).abs() < 0.002, "{rate} GB/s");
    }

    #[test]
    fn what_cannot_be_measured_is_told() {
        let none = BenchmarkMix { read: 0, program: 0, erase: 0 };
        let empty = array_benchmark(&presets::small(), none, 1, 1);
        assert_eq!(empty, Err(BenchmarkError::EmptyMix));
        let mut tiny = presets::small();
        tiny.geometry.blocks_per_plane = 3;
        let refused = array_benchmark(&tiny, BenchmarkMix::READ, 1, 1);
        assert_eq!(refused, Err(BenchmarkError::TooFewBlocks { blocks: 3 }));
    }
}
