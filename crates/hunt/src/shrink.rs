//! A smaller world that fails as well.

use crate::habits::Resp;
use crate::world::World;

/// Tries to make a world that fails smaller, property by property, for as long as `fails` says that it still does.
/// Equal worlds give equal results.
pub fn shrink(mut world: World, mut fails: impl FnMut(&World) -> bool) -> World {
    loop {
        let smaller = steps(&world).into_iter().find(|smaller| fails(smaller));
        match smaller {
            Some(smaller) => world = smaller,
            None => return world,
        }
    }
}

/// Worlds that are smaller by one step, the largest steps first.
fn steps(world: &World) -> Vec<World> {
    let mut worlds = Vec::new();
    let mut step = |change: &dyn Fn(&mut World)| {
        let mut smaller = world.clone();
        change(&mut smaller);
        if smaller != *world {
            worlds.push(smaller);
        }
    };
    step(&|world| world.faults = Default::default());
    step(&|world| world.cuts = world.cuts.div_ceil(2));
    step(&|world| world.cuts -= u32::from(world.cuts > 1));
    step(&|world| world.clients.count = world.clients.count.div_ceil(2));
    step(&|world| world.clients.requests = world.clients.requests.div_ceil(2));
    step(&|world| world.clients.keys = world.clients.keys.div_ceil(2));
    step(&|world| world.clients.batch = world.clients.batch.div_ceil(2));
    step(&|world| world.clients.value_bytes /= 2);
    step(&|world| world.clients.reads = 0.0);
    step(&|world| world.clients.deletes = 0.0);
    step(&|world| world.set_shards(1));
    step(&|world| world.set_shards(world.store.shards.div_ceil(2)));
    step(&|world| world.set_shards(world.store.shards.max(2) - 1));
    step(&|world| world.store.slices = world.store.shards);
    step(&|world| (world.clients.larges, world.clients.large_bytes) = (0.0, 0));
    step(&|world| world.clients.large_bytes /= 2);
    step(&|world| world.store.watch_sweep = 0);
    // Where a value fits a superblock only in pieces, there is no world without them.
    if world.clients.larges == 0.0 {
        step(&|world| world.store.fragment_bytes = 0);
    }
    step(&|world| world.drive = None);
    step(&|world| world.faults.factory_bad_block = 0.0);
    step(&|world| world.faults.program_failure = 0.0);
    step(&|world| world.faults.erase_failure = 0.0);
    step(&|world| world.faults.paired_page_loss = 0.0);
    step(&|world| world.faults.shorn_page_readable = 0.0);
    step(&|world| world.faults.cut_pages = Default::default());
    step(&|world| world.faults.cut_erases = Default::default());
    step(&|world| world.faults.slow = Default::default());
    step(&|world| world.pace = Default::default());
    step(&|world| world.pace.pauses = 0.0);
    step(&|world| world.pace.steps_back = false);
    step(&|world| world.faults.silent = Default::default());
    step(&|world| world.faults.bit_errors = Default::default());
    step(&|world| world.disasters = Default::default());
    let habits: [fn(&mut Resp); 12] = [
        |resp| resp.pipeline = resp.pipeline.div_ceil(2),
        |resp| resp.transactions = 0.0,
        |resp| resp.expiry = 0.0,
        |resp| (resp.lists, resp.list_share) = (0, 0.0),
        |resp| (resp.clears, resp.clears_beside) = (0.0, false),
        |resp| resp.clears_beside = false,
        |resp| resp.scans = 0.0,
        |resp| resp.watched = 1,
        |resp| resp.litter = 0.0,
        |resp| resp.vanishing = 0.0,
        |resp| resp.memory = Default::default(),
        |resp| resp.memory.rests = 0.0,
    ];
    for change in habits {
        step(&|world| world.resp.iter_mut().for_each(change));
    }
    worlds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let world = World::drawn(5, crate::world::Profile::Paired);
        let mut fat = world.clone();
        fat.clients.requests = 64;
        fat.cuts = 12;
        let shrunk = shrink(fat, |world| world.cuts >= 3);
        assert_eq!((shrunk.cuts, shrunk.clients.requests, shrunk.clients.count), (3, 1, 1));
        assert_eq!(shrunk.faults, Default::default());
    }

    #[test]
    fn what_makes_a_world_wide_goes_unless_it_matters() {
        let mut fat = World::drawn(5, crate::world::Profile::Parity);
        fat.set_shards(4);
        fat.store.fragment_bytes = 300;
        fat.store.watch_sweep = 2;
        let units = fat.units_of_a_shard();
        let shrunk = shrink(fat.clone(), |world| world.store.shards >= 3);
        assert_eq!((shrunk.store.shards, shrunk.units_of_a_shard()), (3, units));
        assert_eq!((shrunk.store.fragment_bytes, shrunk.store.watch_sweep), (0, 0));
        assert_eq!(shrunk.layout().problem(), None);
        (fat.clients.larges, fat.clients.large_bytes) = (0.1, 1 << 20);
        let shrunk = shrink(fat, |world| world.clients.large_bytes > 0);
        assert_eq!((shrunk.store.shards, shrunk.store.fragment_bytes), (1, 300));
    }
}
