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
    step(&|world| world.store.slices = world.store.shards);
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
    let habits: [fn(&mut Resp); 10] = [
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
}
