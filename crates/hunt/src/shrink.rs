//! Shrinks a failing scenario.

use crate::client_model::Resp;
use crate::scenario::Scenario;
use crate::volume_shape::VolumeShape;

/// Reduces a failing scenario, property by property, as long as `fails` says that it still fails.
/// Equal scenarios have equal results.
pub fn shrink(mut scenario: Scenario, mut fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    loop {
        let smaller = steps(&scenario).into_iter().find(|smaller| fails(smaller));
        match smaller {
            Some(smaller) => scenario = smaller,
            None => return scenario,
        }
    }
}

/// Scenarios that are one step smaller, the largest steps first.
fn steps(scenario: &Scenario) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    let mut step = |change: &dyn Fn(&mut Scenario)| {
        let mut smaller = scenario.clone();
        change(&mut smaller);
        if smaller != *scenario {
            scenarios.push(smaller);
        }
    };
    step(&|scenario| scenario.faults = Default::default());
    step(&|scenario| scenario.cuts = scenario.cuts.div_ceil(2));
    step(&|scenario| scenario.cuts -= u32::from(scenario.cuts > 1));
    step(&|scenario| scenario.clients.count = scenario.clients.count.div_ceil(2));
    step(&|scenario| scenario.clients.requests = scenario.clients.requests.div_ceil(2));
    step(&|scenario| scenario.clients.keys = scenario.clients.keys.div_ceil(2));
    step(&|scenario| scenario.clients.batch = scenario.clients.batch.div_ceil(2));
    step(&|scenario| scenario.clients.value_bytes /= 2);
    step(&|scenario| scenario.clients.reads = 0.0);
    step(&|scenario| scenario.clients.deletes = 0.0);
    step(&|scenario| scenario.set_shards(1));
    step(&|scenario| scenario.set_shards(scenario.store.shards.div_ceil(2)));
    step(&|scenario| scenario.set_shards(scenario.store.shards.max(2) - 1));
    step(&|scenario| scenario.store.slices = scenario.store.shards);
    step(&|scenario| (scenario.clients.larges, scenario.clients.large_bytes) = (0.0, 0));
    step(&|scenario| scenario.clients.large_bytes /= 2);
    step(&|scenario| scenario.clients.scans = 0.0);
    step(&|scenario| scenario.clients.again = 0.0);
    step(&|scenario| scenario.clients.pause_us = 0);
    step(&|scenario| scenario.store.watch_sweep = 0);
    step(&|scenario| scenario.store.frame_bytes = 0);
    step(&|scenario| scenario.store.value_threshold = 0);
    // Where a value fits into a superblock only in fragments, no scenario without fragments exists.
    if scenario.clients.larges == 0.0 {
        step(&|scenario| scenario.store.fragment_bytes = 0);
    }
    step(&|scenario| scenario.store.hand_overs = 0.0);
    step(&|scenario| scenario.drive = None);
    step(&|scenario| scenario.drive.iter_mut().for_each(|drive| drive.failed_flushes = 0.0));
    step(&|scenario| scenario.flash.dies = 1);
    step(&|scenario| scenario.repairs = scenario.repairs.div_ceil(2));
    step(&|scenario| scenario.faults.factory_bad_block = 0.0);
    step(&|scenario| scenario.faults.program_failure = 0.0);
    step(&|scenario| scenario.faults.erase_failure = 0.0);
    step(&|scenario| scenario.faults.paired_page_loss = 0.0);
    step(&|scenario| scenario.faults.shorn_page_readable = 0.0);
    step(&|scenario| scenario.faults.cut_pages = Default::default());
    step(&|scenario| scenario.faults.cut_erases = Default::default());
    step(&|scenario| scenario.faults.slow = Default::default());
    step(&|scenario| scenario.pace = Default::default());
    step(&|scenario| scenario.pace.pauses = 0.0);
    step(&|scenario| scenario.pace.steps_back = false);
    step(&|scenario| scenario.faults.silent = Default::default());
    step(&|scenario| scenario.faults.bit_errors = Default::default());
    step(&|scenario| scenario.fault_plan = Default::default());
    let resp_changes: [fn(&mut Resp); 12] = [
        |resp| resp.pipeline = resp.pipeline.div_ceil(2),
        |resp| resp.transactions = 0.0,
        |resp| resp.expiry = 0.0,
        |resp| (resp.lists, resp.list_share) = (0, 0.0),
        |resp| (resp.clears, resp.clears_beside) = (0.0, false),
        |resp| resp.clears_beside = false,
        |resp| resp.scans = 0.0,
        |resp| resp.watched = 1,
        |resp| resp.unused_watches = 0.0,
        |resp| resp.vanishing = 0.0,
        |resp| resp.memory = Default::default(),
        |resp| resp.memory.rests = 0.0,
    ];
    for change in resp_changes {
        step(&|scenario| scenario.resp.iter_mut().for_each(change));
    }
    let volume_changes: [fn(&mut VolumeShape); 15] = [
        |volumes| volumes.contest = false,
        |volumes| volumes.hand_overs = 0.0,
        |volumes| (volumes.has_table, volumes.hand_overs) = (false, 0.0),
        |volumes| volumes.bursts = 0.0,
        |volumes| {
            if let Some(pair) = &mut volumes.pair {
                pair.losses = 0.0;
            }
        },
        |volumes| {
            if let Some(pair) = &mut volumes.pair {
                pair.window_us = 0;
            }
        },
        |volumes| volumes.lifts = 0.0,
        |volumes| volumes.reshapes = 0.0,
        |volumes| volumes.units = volumes.units.div_ceil(2),
        |volumes| volumes.longest = volumes.longest.div_ceil(2),
        |volumes| volumes.discards = 0.0,
        |volumes| volumes.flushes = 0.0,
        |volumes| volumes.operations = 0.0,
        |volumes| volumes.settings = 0.0,
        |volumes| volumes.checkpoint_entries *= 2,
    ];
    for change in volume_changes {
        step(&|scenario| {
            let small = scenario
                .volumes
                .as_ref()
                .is_some_and(|volumes| volumes.checkpoint_entries < 1 << 20);
            scenario.volumes.iter_mut().filter(|_| small).for_each(change);
        });
    }
    scenarios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn irrelevant_properties_are_removed() {
        let scenario = Scenario::drawn(5, Profile::Paired);
        let mut fat = scenario.clone();
        fat.clients.requests = 64;
        fat.cuts = 12;
        let shrunk = shrink(fat, |scenario| scenario.cuts >= 3);
        assert_eq!((shrunk.cuts, shrunk.clients.requests, shrunk.clients.count), (3, 1, 1));
        assert_eq!(shrunk.faults, Default::default());
    }

    #[test]
    fn properties_of_width_are_removed_unless_they_matter() {
        let mut fat = Scenario::drawn(5, Profile::Parity);
        fat.set_shards(4);
        fat.store.fragment_bytes = 300;
        fat.store.watch_sweep = 2;
        fat.store.value_threshold = 64;
        let units = fat.units_of_a_shard();
        let shrunk = shrink(fat.clone(), |scenario| scenario.store.shards >= 3);
        assert_eq!((shrunk.store.shards, shrunk.units_of_a_shard()), (3, units));
        assert_eq!((shrunk.store.fragment_bytes, shrunk.store.watch_sweep), (0, 0));
        assert_eq!(shrunk.store.value_threshold, 0);
        assert_eq!(shrunk.layout().problem(), None);
        (fat.clients.larges, fat.clients.large_bytes) = (0.1, 1 << 20);
        let shrunk = shrink(fat, |scenario| scenario.clients.large_bytes > 0);
        assert_eq!((shrunk.store.shards, shrunk.store.fragment_bytes), (1, 300));
    }
}
