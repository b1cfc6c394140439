//! Fault profiles: which faults are injected into drawn scenarios, by name.

use crate::client_model::{Pace, Resp};
use crate::fault_plan::FaultPlan;
use crate::scenario::Scenario;
use clap::ValueEnum;
use softflash_base::random::Rng;
use softflash_nand::faults::{FaultConfig, SilentFaults};
use softflash_store::layout::one_copy;

/// Which faults are injected into drawn scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// Power cuts, torn pages, interrupted erases, bad blocks, program and erase failures,
    /// operations that take a hundred times as long: faults that the store survives. Five scenarios
    /// in ten have the profile `mirrored`, `parity`, `clocks`, `unit` or `superblocks`
    #[default]
    Survived,
    /// Also pages whose program was cut by a power loss, which first read correctly and decay later
    Decaying,
    /// Also loss of older pages of the word line that was being programmed
    Paired,
    /// Also bit errors by wear, retention and read disturb, beyond the correction capability: the
    /// store must report losses
    Worn,
    /// Also reads that return wrong data as success: the store must report losses
    Misread,
    /// Also programs that silently fail or write elsewhere: the store must report losses, except
    /// the last page of a log
    Silent,
    /// Also dies that fail: the store must report losses
    Dead,
    /// Also one whole unit whose contents are replaced by random bytes, by zeros, or by an old
    /// image: the store must report losses
    Unit,
    /// Two copies of all data, and one unit that fails, is restored from an old image, or has
    /// silent faults: nothing may be lost, and full redundancy must be restored. Volumes, which
    /// have one copy, must report losses
    Mirrored,
    /// Parity over patches, and one unit with the same faults: nothing may be lost, and full
    /// redundancy must be restored. Volumes, which have one copy, must report losses
    Parity,
    /// Frequent expiry, a wall clock that is set back, loss of older pages of a word line, and cuts
    /// within milliseconds of a request
    Clocks,
    /// Volumes with snapshots and clones instead of a store; half of the scenarios also lose older
    /// pages of a word line, or have pages that decay after a cut
    Volumes,
    /// Volumes with two copies, in sets that are a pair, half of them with windows; in some
    /// scenarios the flash of one set is lost: nothing may be lost, and the set must be made again
    Pairs,
    /// Parity over patches that are merged all the time, so that groups are rewritten, and units
    /// that return again and again in their state before the last cut: nothing may be lost. Volumes
    /// must report losses
    Regrouped,
    /// No other faults than power cuts; at the end some patches, or pages of volumes, are damaged,
    /// and the store or the volumes are repaired: every key has its value or is reported as lost,
    /// and so has every mapping unit
    Repaired,
    /// The FTL alone: superblocks that are allocated, written, and released, some unused, on units
    /// of several dies with blocks that fail often
    Superblocks,
}

impl Profile {
    /// The command-line arguments that select the profile.
    pub fn arguments(self) -> String {
        match self.to_possible_value() {
            Some(name) if self != Profile::default() => format!(" --profile {}", name.get_name()),
            _ => String::new(),
        }
    }

    /// The profile of a seed's scenario: `survived` uses other profiles for some seeds.
    pub(crate) fn of_seed(self, seed: u64) -> Profile {
        if self != Profile::Survived {
            return self;
        }
        match Rng::seeded(seed).fork("profile").below(10) {
            0 => Profile::Mirrored,
            1 => Profile::Parity,
            2 => Profile::Clocks,
            3 => Profile::Unit,
            4 => Profile::Superblocks,
            _ => Profile::Survived,
        }
    }

    /// Whether some scenarios of the profile run on a drive instead of flash.
    pub(crate) fn may_be_on_drive(self) -> bool {
        use Profile::*;
        matches!(self, Survived | Mirrored | Parity | Volumes | Superblocks)
    }

    /// Whether the profile damages data, also while the power is off: some of its scenarios are of
    /// volumes then.
    pub(crate) fn damages(self) -> bool {
        use Profile::*;
        match self {
            Survived | Clocks | Volumes | Pairs | Superblocks => false,
            Decaying | Paired | Worn | Misread | Silent | Dead | Unit => true,
            Mirrored | Parity | Regrouped | Repaired => true,
        }
    }

    /// Fits a scenario of the profile to volumes, which have one copy of their data. Where the
    /// profile changes what is read, a quarter of the scenarios have bits that flip and ranges of
    /// pages that change places instead.
    pub(crate) fn fit_to_volumes(self, scenario: &mut Scenario, rng: &mut Rng) {
        use Profile::*;
        (scenario.store.copies, scenario.store.parity) = (one_copy(), 0);
        let changes_what_is_read = matches!(self, Worn | Misread | Silent | Mirrored | Parity);
        if changes_what_is_read && scenario.drive.is_none() && rng.chance(0.25) {
            let FaultConfig { bit_errors, silent, .. } = FaultConfig::default();
            (scenario.faults.bit_errors, scenario.faults.silent) = (bit_errors, silent);
            scenario.fault_plan = FaultPlan { changed_pages: 0.5, ..FaultPlan::default() };
        }
    }

    /// Sets the properties that every scenario of the profile has.
    pub(crate) fn force(self, scenario: &mut Scenario, rng: &mut Rng) {
        match self {
            Profile::Clocks => {}
            Profile::Repaired => return scenario.draw_repairs(rng),
            _ => return,
        }
        scenario.faults.paired_page_loss = 1.0;
        scenario.store.interval_ms = 0;
        let mut extra_rng = rng.fork("speech");
        let resp = scenario.resp.get_or_insert_with(|| Resp::drawn(rng, &mut extra_rng, true));
        resp.scans = resp.scans.max(0.1);
        resp.expiry = 0.5 + 0.5 * rng.unit_f64();
        resp.longest_life_ms = 4 << rng.below(7);
        scenario.pace = Pace {
            pauses: 0.3 + 0.4 * rng.unit_f64(),
            longest_pause_ms: 1 << (6 + rng.below(5)),
            longest_outage_ms: 1,
            steps_back: true,
            prompt_cuts: true,
        };
        // A recovered clock continues from its last persisted value. A loss of clock time is
        // visible only if no write occurs for longer than a recovery takes.
        scenario.clients.count = 1 + scenario.clients.count % 3;
        scenario.clients.reads = 0.3 + 0.4 * rng.unit_f64();
        scenario.clients.keys = scenario.clients.keys.min(8);
    }

    /// Adds faults that may destroy data. Each kind is present or absent.
    pub(crate) fn add(self, scenario: &mut Scenario, rng: &mut Rng) {
        let mut some = |rate: f64| if rng.chance(0.5) { rate } else { 0.0 };
        match self {
            Profile::Survived
            | Profile::Decaying
            | Profile::Paired
            | Profile::Clocks
            | Profile::Repaired
            | Profile::Superblocks => {}
            Profile::Volumes => match rng.below(8) {
                0 | 1 => scenario.faults.paired_page_loss = 0.5,
                2 | 3 => scenario.faults.cut_pages.unstable = 1.0,
                4 => damage_volumes(scenario, rng),
                _ => {}
            },
            Profile::Pairs => match rng.below(4) {
                0 => scenario.faults.paired_page_loss = 0.5,
                1 => scenario.faults.cut_pages.unstable = 1.0,
                _ => {}
            },
            Profile::Worn => {
                let law = &mut scenario.faults.bit_errors;
                // With one retry, five errors in a thousand bits are the limit of the correction
                // capability.
                law.retry_steps = 1;
                law.rber_fresh = 4e-3 + some(1e-3);
                law.wear_cycles = some(100.0);
                law.retention_days = some(0.1);
                law.disturb_per_read = some(1e-6);
            }
            Profile::Misread => {
                scenario.faults.silent = SilentFaults {
                    miscorrected_read: 1e-4 + some(1e-3),
                    misdirected_read: some(1e-3),
                    stale_read: some(1e-3),
                    ..SilentFaults::default()
                };
            }
            Profile::Silent => {
                let misdirected_program = some(1e-3);
                let phantom_program = 1e-4 + some(1e-3);
                scenario.faults.silent = SilentFaults {
                    misdirected_program,
                    phantom_program,
                    ..SilentFaults::default()
                };
            }
            Profile::Dead => scenario.fault_plan.deaths = 0.1 + some(0.2),
            Profile::Unit => {
                scenario.fault_plan.replacements = 0.1 + some(0.2);
                // A shard that loses all of its units has no record left from which to report the
                // loss.
                scenario.flash.channels = scenario.store.shards * (2 + rng.below(3) as u16);
            }
            Profile::Mirrored => mirror(scenario, rng),
            Profile::Parity => parity(scenario, rng),
            Profile::Regrouped => regroup(scenario, rng),
        }
    }
}

/// One kind of damage of those that stores have, or changed pages. A drive only returns in an
/// earlier state.
fn damage_volumes(scenario: &mut Scenario, rng: &mut Rng) {
    if scenario.drive.is_some() {
        scenario.fault_plan.old_images = 0.3;
        return;
    }
    match rng.below(8) {
        0 => Profile::Worn.add(scenario, rng),
        1 => Profile::Misread.add(scenario, rng),
        2 => Profile::Silent.add(scenario, rng),
        3 => Profile::Dead.add(scenario, rng),
        4 => scenario.fault_plan.old_images = 0.3,
        5 => Profile::Unit.add(scenario, rng),
        _ => scenario.fault_plan.changed_pages = 0.3 + 0.7 * rng.unit_f64(),
    }
}

/// Two copies, and one kind of fault that strikes one unit.
fn mirror(scenario: &mut Scenario, rng: &mut Rng) {
    scenario.store.copies = 2;
    scenario.flash.channels *= 2;
    // Units with different numbers of good superblocks. A stream of its own, so that earlier seeds
    // keep their other properties.
    let mut uneven = Rng::seeded(scenario.seed).fork("uneven units");
    if scenario.drive.is_none() && uneven.chance(0.5) {
        scenario.faults.factory_bad_block = 0.03;
    }
    fault_one_unit(scenario, rng);
}

/// Parity, mostly over patches that are small enough for many groups, and one kind of fault that
/// strikes one unit.
fn parity(scenario: &mut Scenario, rng: &mut Rng) {
    scenario.store.parity = 2 + rng.below(3) as u8;
    // With many shards there are enough units in total.
    let most = if scenario.store.shards > 2 { 4 } else { 5 };
    scenario.flash.channels = scenario.store.shards * (3 + rng.below(3) as u16).min(most);
    if scenario.flash.pages > 8 && rng.chance(0.7) {
        scenario.flash.pages = 8;
        scenario.flash.blocks = 5 * scenario.flash.blocks / 2;
    }
    fault_one_unit(scenario, rng);
}

/// Parity over small patches, erases at once, and keys that are overwritten all the time.
fn regroup(scenario: &mut Scenario, rng: &mut Rng) {
    scenario.store.parity = 2 + rng.below(2) as u8;
    scenario.store.eager_erases = true;
    scenario.store.memory_kib = 512;
    scenario.flash.channels = scenario.store.shards * (3 + rng.below(2) as u16);
    scenario.flash.pages = 8;
    scenario.flash.planes = 1;
    scenario.flash.blocks = 90 + rng.below(40) as u32;
    scenario.faults = FaultConfig::default();
    scenario.fault_plan.returns = 0.5;
    scenario.clients.count = 4;
    scenario.clients.keys = 20;
    scenario.clients.value_bytes = 3000;
    scenario.clients.requests = 32;
    scenario.clients.reads = 0.1;
    scenario.cuts = 4 + scenario.cuts % 5;
}

fn fault_one_unit(scenario: &mut Scenario, rng: &mut Rng) {
    match rng.below(4) {
        0 => scenario.fault_plan.deaths = 0.3,
        1 => scenario.fault_plan.old_images = 0.3,
        2 => scenario.fault_plan.planned_faults = 1 + rng.below(8) as u32,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind of damage, and whether a scenario has it.
    type Kind = (&'static str, fn(&Scenario) -> bool);

    const CHANGED: Kind = ("flipped bits and swapped ranges", |s| s.fault_plan.changed_pages > 0.0);
    const WORN: Kind = ("bit errors", |s| s.faults.bit_errors.is_on());
    const SILENT: Kind = ("silent faults", |s| s.faults.silent != SilentFaults::default());
    const DEAD: Kind = ("dead dies", |s| s.fault_plan.deaths > 0.0);
    const OLD: Kind = ("old images", |s| s.fault_plan.old_images > 0.0);
    const STRUCK: Kind = ("commands that do something else", |s| s.fault_plan.planned_faults > 0);
    const REPLACED: Kind = ("replaced units", |s| s.fault_plan.replacements > 0.0);
    const RETURNED: Kind = ("units that return", |s| s.fault_plan.returns > 0.0);
    const PAIRED: Kind = ("lost pages of a word line", |s| s.faults.paired_page_loss > 0.0);
    const DECAYED: Kind = ("pages that decay", |s| s.faults.cut_pages.unstable > 0.0);
    const REPAIRED: Kind = ("repairs", |s| s.repairs > 0);

    #[test]
    fn damage_that_a_profile_has_for_keys_is_drawn_for_volumes_too() {
        use Profile::*;
        let kinds: [(Profile, &[Kind]); 12] = [
            (Decaying, &[DECAYED]),
            (Paired, &[PAIRED]),
            (Worn, &[WORN, CHANGED]),
            (Misread, &[SILENT, CHANGED]),
            (Silent, &[SILENT, CHANGED]),
            (Dead, &[DEAD]),
            (Unit, &[REPLACED]),
            (Mirrored, &[DEAD, OLD, STRUCK, CHANGED]),
            (Parity, &[DEAD, OLD, STRUCK, CHANGED]),
            (Regrouped, &[RETURNED]),
            (Repaired, &[REPAIRED]),
            (Volumes, &[WORN, SILENT, DEAD, OLD, REPLACED, PAIRED, DECAYED, CHANGED]),
        ];
        for (profile, kinds) in kinds {
            let drawn: Vec<Scenario> = (0..1000)
                .map(|seed| Scenario::drawn(seed, profile))
                .filter(|scenario| scenario.volumes.is_some())
                .collect();
            for (kind, has) in kinds {
                let count = drawn.iter().filter(|scenario| has(scenario)).count();
                assert!(count >= 4, "{profile:?}: {kind} in {count} of {} scenarios", drawn.len());
            }
        }
    }
}
