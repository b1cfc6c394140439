//! What goes wrong in the worlds that are drawn, by name.

use crate::world::World;
use clap::ValueEnum;
use softflash_base::random::Rng;
use softflash_nand::faults::SilentFaults;

/// What goes wrong in the worlds that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// Power cuts, torn and shorn pages, erases that are cut off, bad blocks, programs and erases that fail, operations
    /// that take a hundred times as long: all of which the store survives
    #[default]
    Survived,
    /// Also pages that were being programmed when the power was cut, read well after it and decay later
    Decaying,
    /// Also the loss of older pages of the word line that was being programmed
    Paired,
    /// Also bit errors by wear, age and reads, more than the code corrects: losses must be told
    Worn,
    /// Also reads that return something else as success: losses must be told
    Misread,
    /// Also programs that did something else and were acknowledged: losses must be told, but for the last page of a log
    Silent,
    /// Also dies that die: losses must be told
    Dead,
    /// Also one whole unit that reads as random bytes, as zeros, or as it was: losses must be told
    Unit,
    /// Two copies of everything, and one unit that dies, comes back as it was, or silently does something else: nothing may
    /// be lost, and all must be made whole
    Mirrored,
    /// Parity over patches, and one unit that does any of that: nothing may be lost, and all must be made whole
    Parity,
}

impl Profile {
    /// The arguments that choose it.
    pub fn arguments(self) -> String {
        match self.to_possible_value() {
            Some(name) if self != Profile::default() => format!(" --profile {}", name.get_name()),
            _ => String::new(),
        }
    }

    /// Adds what may destroy data. Each kind is there or not.
    pub(crate) fn add(self, world: &mut World, rng: &mut Rng) {
        let mut some = |rate: f64| if rng.chance(0.5) { rate } else { 0.0 };
        match self {
            Profile::Survived | Profile::Decaying | Profile::Paired => {}
            Profile::Worn => {
                let law = &mut world.faults.bit_errors;
                // With one retry, five errors in a thousand bits are at the end of what the code corrects.
                law.retry_steps = 1;
                law.rber_fresh = 4e-3 + some(1e-3);
                law.wear_cycles = some(100.0);
                law.retention_days = some(0.1);
                law.disturb_per_read = some(1e-6);
            }
            Profile::Misread => {
                world.faults.silent = SilentFaults {
                    miscorrected_read: 1e-4 + some(1e-3),
                    misdirected_read: some(1e-3),
                    stale_read: some(1e-3),
                    ..SilentFaults::default()
                };
            }
            Profile::Silent => {
                let misdirected_program = some(1e-3);
                let phantom_program = 1e-4 + some(1e-3);
                world.faults.silent = SilentFaults {
                    misdirected_program,
                    phantom_program,
                    ..SilentFaults::default()
                };
            }
            Profile::Dead => world.disasters.deaths = 0.1 + some(0.2),
            Profile::Unit => {
                world.disasters.replacements = 0.1 + some(0.2);
                // A shard that loses all of its units has nothing left that tells of it.
                world.flash.channels = world.store.shards * (2 + rng.below(3) as u16);
            }
            Profile::Mirrored => mirror(world, rng),
            Profile::Parity => parity(world, rng),
        }
    }
}

/// Two copies, and one kind of disaster that strikes one unit.
fn mirror(world: &mut World, rng: &mut Rng) {
    world.store.copies = 2;
    world.flash.channels *= 2;
    strike_one_unit(world, rng);
}

/// Parity, mostly over patches so small that there are some of them, and one kind of disaster that strikes one unit.
fn parity(world: &mut World, rng: &mut Rng) {
    world.store.parity = 2 + rng.below(3) as u8;
    world.flash.channels = world.store.shards * (3 + rng.below(3) as u16);
    if world.flash.pages > 8 && rng.chance(0.7) {
        world.flash.pages = 8;
        world.flash.blocks = 5 * world.flash.blocks / 2;
    }
    strike_one_unit(world, rng);
}

fn strike_one_unit(world: &mut World, rng: &mut Rng) {
    match rng.below(4) {
        0 => world.disasters.deaths = 0.3,
        1 => world.disasters.old_images = 0.3,
        2 => world.disasters.strikes = 1 + rng.below(8) as u32,
        _ => {}
    }
}
