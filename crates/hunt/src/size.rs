//! Sizes of drawn scenarios.

use crate::scenario::Scenario;
use clap::ValueEnum;

/// One in this many scenarios of a mixed hunt is a full one.
const FULL: u64 = 4;

/// Factor between the cuts of dense and of small scenarios.
const MORE_CUTS: u32 = 24;

/// Size of drawn scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Size {
    /// One full scenario in four; the others are dense
    #[default]
    Mixed,
    /// Up to 64 requests of each client before each cut, values of up to 12 KB
    Full,
    /// As small, with ten times as many cuts: the most cuts per second
    Dense,
    /// Little flash, at most 8 requests before each of at most three cuts: the most scenarios per
    /// second
    Small,
}

impl Size {
    /// The command-line arguments that select the size.
    pub fn arguments(self) -> String {
        match self.to_possible_value() {
            Some(name) if self != Size::default() => format!(" --size {}", name.get_name()),
            _ => String::new(),
        }
    }

    /// Resizes a scenario.
    pub fn of(self, scenario: Scenario) -> Scenario {
        match self {
            Size::Full => scenario,
            // Copies and parity protect patches, and without much work there are hardly any
            // patches.
            Size::Mixed if scenario.store.is_redundant() => scenario,
            Size::Mixed if scenario.repairs > 0 => scenario,
            Size::Mixed if scenario.seed.is_multiple_of(FULL) => scenario,
            Size::Mixed | Size::Dense => {
                let cuts = MORE_CUTS + scenario.cuts;
                Scenario { cuts, ..small(scenario) }
            }
            Size::Small => small(scenario),
        }
    }
}

fn small(mut scenario: Scenario) -> Scenario {
    scenario.cuts = 1 + scenario.cuts % 3;
    if scenario.superblocks.is_some() || scenario.repairs > 0 {
        return scenario;
    }
    if scenario.clients.larges > 0.0 {
        // The flash is as large as its values need.
        scenario.clients.requests = scenario.clients.requests.min(8);
        return scenario;
    }
    if scenario.contends() {
        scenario.clients.requests = scenario.clients.requests.min(48);
        return scenario;
    }
    if scenario.is_filled() {
        scenario.clients.requests = scenario.clients.requests.min(32);
        return scenario;
    }
    scenario.clients.requests = scenario.clients.requests.min(8);
    scenario.clients.value_bytes = scenario.clients.value_bytes.min(3000);
    scenario.clients.keys = scenario.clients.keys.min(20);
    scenario.flash.blocks = if scenario.flash.pages == 8 { 80 } else { 32 };
    scenario
}
