//! Random commands of dies.

use super::super::*;
use softflash_base::random::Rng;
use std::collections::VecDeque;

/// Commands of a die.
const COMMANDS: u32 = 60;

/// The blocks that are written, alternately; one more is only read.
const WRITTEN: u32 = 2;

/// A command of a die. It is given when the die accepts it, after the commands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    /// Not before this time.
    pub(super) at: u64,
    pub(super) block: u32,
    pub(super) work: Work,
}

/// The commands of each die, in order.
pub(super) type Commands = Vec<VecDeque<Given>>;

/// Random commands of each die: pages of a block in order, no program without erase. They come all
/// at once, or at random times, some of them long after the end of those before.
pub(super) fn commands(config: &ArrayConfig, rng: &mut Rng) -> Commands {
    let spread = rng.chance(0.7);
    (0..config.geometry.dies()).map(|_| commands_of_die(config, spread, rng)).collect()
}

fn commands_of_die(config: &ArrayConfig, spread: bool, rng: &mut Rng) -> VecDeque<Given> {
    let geometry = &config.geometry;
    let mut next_pages = [0; WRITTEN as usize];
    let mut at = 0;
    let reads = 2 + rng.below(6);
    (0..COMMANDS)
        .map(|tag| {
            // From nothing to 8 ms, as times of operations range from microseconds to milliseconds.
            let scale = rng.below(24);
            at += if spread { rng.below(1 << scale) } else { 0 };
            let written = rng.below(WRITTEN.into()) as u32;
            let next = &mut next_pages[written as usize];
            let full = u32::from(*next) == geometry.pages_per_block;
            let kind = match rng.below(10) {
                drawn if drawn < reads => WorkKind::Read,
                _ if full => WorkKind::Erase,
                9 if *next > 0 => WorkKind::Erase,
                _ => WorkKind::Program,
            };
            let (block, page, pages) = match kind {
                WorkKind::Read => {
                    let page = rng.below(geometry.pages_per_block.into()) as u16;
                    // Of so many planes, or the head of a page.
                    let pages = rng.below(u64::from(geometry.planes_per_die) + 1) as u8;
                    (rng.below(u64::from(WRITTEN) + 1) as u32, page, pages)
                }
                // Programs and erases on all planes keep the blocks of a die in step.
                WorkKind::Program => {
                    *next += 1;
                    (written, *next - 1, geometry.planes_per_die)
                }
                _ => {
                    *next = 0;
                    (written, 0, geometry.planes_per_die)
                }
            };
            Given { at, block, work: Work { tag, page, pages, kind } }
        })
        .collect()
}

/// The times at which a command comes, in order, then the end of time.
pub(super) fn arrivals(commands: &Commands) -> Vec<u64> {
    let mut times: Vec<u64> = commands.iter().flatten().map(|given| given.at).collect();
    times.push(u64::MAX);
    times.sort_unstable();
    times.dedup();
    times
}
