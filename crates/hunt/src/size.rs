//! How large the worlds are that are drawn.

use crate::world::World;
use clap::ValueEnum;

/// In mixed hunts one world in so many is a full one.
const FULL: u64 = 4;

/// What dense worlds have more than small ones.
const MORE_CUTS: u32 = 24;

/// How large the worlds are that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Size {
    /// One full world in four, the others dense
    #[default]
    Mixed,
    /// Up to 64 requests of each client before each cut, values of up to 12 KB
    Full,
    /// As small, with ten times as many cuts: most cuts for the time
    Dense,
    /// Little flash, at most 8 requests before each of at most three cuts: most worlds for the time
    Small,
}

impl Size {
    /// The arguments that choose it.
    pub fn arguments(self) -> String {
        match self.to_possible_value() {
            Some(name) if self != Size::default() => format!(" --size {}", name.get_name()),
            _ => String::new(),
        }
    }

    /// The world at this size.
    pub fn of(self, world: World) -> World {
        match self {
            Size::Full => world,
            // Without much work there are hardly any patches, whose copies and parity these are for.
            Size::Mixed if world.store.is_redundant() => world,
            Size::Mixed if world.seed.is_multiple_of(FULL) => world,
            Size::Mixed | Size::Dense => {
                let cuts = MORE_CUTS + world.cuts;
                World { cuts, ..small(world) }
            }
            Size::Small => small(world),
        }
    }
}

fn small(mut world: World) -> World {
    world.cuts = 1 + world.cuts % 3;
    if world.clients.larges > 0.0 {
        // Of as much flash as its values need.
        world.clients.requests = world.clients.requests.min(8);
        return world;
    }
    if world.is_filled() {
        world.clients.requests = world.clients.requests.min(32);
        return world;
    }
    world.clients.requests = world.clients.requests.min(8);
    world.clients.value_bytes = world.clients.value_bytes.min(3000);
    world.clients.keys = world.clients.keys.min(20);
    world.flash.blocks = if world.flash.pages == 8 { 80 } else { 32 };
    world
}
