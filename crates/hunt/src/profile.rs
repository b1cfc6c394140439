//! What goes wrong in the scenarios that are drawn, by name.

use crate::client_model::{Pace, Resp};
use crate::scenario::Scenario;
use clap::ValueEnum;
use softflash_base::random::Rng;
use softflash_nand::faults::SilentFaults;

/// What goes wrong in the scenarios that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// Power cuts, torn and shorn pages, erases that are cut off, bad blocks, programs and erases that fail, operations
    /// that take a hundred times as long: all of which the store survives. Four scenarios in ten are of `mirrored`, `parity`,
    /// `clocks` or `unit`
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
    /// Keys that expire all the time, a wall clock that is set back, the loss of older pages of a word line, and cuts within
    /// milliseconds of a request
    Clocks,
}

impl Profile {
    /// The arguments that choose it.
    pub fn arguments(self) -> String {
        match self.to_possible_value() {
            Some(name) if self != Profile::default() => format!(" --profile {}", name.get_name()),
            _ => String::new(),
        }
    }

    /// The profile of a seed's scenario: of what is survived, some scenarios are of those whose store survives more.
    pub(crate) fn of_seed(self, seed: u64) -> Profile {
        if self != Profile::Survived {
            return self;
        }
        match Rng::seeded(seed).fork("profile").below(10) {
            0 => Profile::Mirrored,
            1 => Profile::Parity,
            2 => Profile::Clocks,
            3 => Profile::Unit,
            _ => Profile::Survived,
        }
    }

    /// Whether some of its scenarios are on a drive instead of flash.
    pub(crate) fn may_be_on_drive(self) -> bool {
        matches!(self, Profile::Survived | Profile::Mirrored | Profile::Parity)
    }

    /// What every scenario of the profile has, whatever else was drawn.
    pub(crate) fn force(self, scenario: &mut Scenario, rng: &mut Rng) {
        if self != Profile::Clocks {
            return;
        }
        scenario.faults.paired_page_loss = 1.0;
        scenario.store.interval_ms = 0;
        let mut apart = rng.fork("speech");
        let resp = scenario.resp.get_or_insert_with(|| Resp::drawn(rng, &mut apart, true));
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
        // A recovered clock runs on: what is lost of it is seen where nobody wrote for longer than a recovery takes.
        scenario.clients.count = 1 + scenario.clients.count % 3;
        scenario.clients.reads = 0.3 + 0.4 * rng.unit_f64();
        scenario.clients.keys = scenario.clients.keys.min(8);
    }

    /// Adds what may destroy data. Each kind is there or not.
    pub(crate) fn add(self, scenario: &mut Scenario, rng: &mut Rng) {
        let mut some = |rate: f64| if rng.chance(0.5) { rate } else { 0.0 };
        match self {
            Profile::Survived | Profile::Decaying | Profile::Paired | Profile::Clocks => {}
            Profile::Worn => {
                let law = &mut scenario.faults.bit_errors;
                // With one retry, five errors in a thousand bits are at the end of what the code corrects.
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
                // A shard that loses all of its units has nothing left that tells of it.
                scenario.flash.channels = scenario.store.shards * (2 + rng.below(3) as u16);
            }
            Profile::Mirrored => mirror(scenario, rng),
            Profile::Parity => parity(scenario, rng),
        }
    }
}

/// Two copies, and one kind of disaster that strikes one unit.
fn mirror(scenario: &mut Scenario, rng: &mut Rng) {
    scenario.store.copies = 2;
    scenario.flash.channels *= 2;
    strike_one_unit(scenario, rng);
}

/// Parity, mostly over patches so small that there are some of them, and one kind of disaster that strikes one unit.
fn parity(scenario: &mut Scenario, rng: &mut Rng) {
    scenario.store.parity = 2 + rng.below(3) as u8;
    // With many shards there are units enough.
    let most = if scenario.store.shards > 2 { 4 } else { 5 };
    scenario.flash.channels = scenario.store.shards * (3 + rng.below(3) as u16).min(most);
    if scenario.flash.pages > 8 && rng.chance(0.7) {
        scenario.flash.pages = 8;
        scenario.flash.blocks = 5 * scenario.flash.blocks / 2;
    }
    strike_one_unit(scenario, rng);
}

fn strike_one_unit(scenario: &mut Scenario, rng: &mut Rng) {
    match rng.below(4) {
        0 => scenario.fault_plan.deaths = 0.3,
        1 => scenario.fault_plan.old_images = 0.3,
        2 => scenario.fault_plan.strikes = 1 + rng.below(8) as u32,
        _ => {}
    }
}
