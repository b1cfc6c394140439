//! How large the scenarios are that are drawn.

use crate::scenario::Scenario;
use clap::ValueEnum;

/// In mixed hunts one scenario in so many is a full one.
const FULL: u64 = 4;

/// What dense scenarios have more than small ones.
const MORE_CUTS: u32 = 24;

/// How large the scenarios are that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Size {
    /// One full scenario in four, the others dense
    #[default]
    Mixed,
    /// Up to 64 requests of each client before each cut, values of up to 12 KB
    Full,
    /// As small, with ten times as many cuts: most cuts for the time
    Dense,
    /// Little flash, at most 8 requests before each of at most three cuts: most scenarios for the time
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

    /// The scenario at this size.
    pub fn of(self, scenario: Scenario) -> Scenario {
        match self {
            Size::Full => scenario,
            // Without much work there are hardly any patches, whose copies and parity these are for.
            Size::Mixed if scenario.store.is_redundant() => scenario,
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
    if scenario.clients.larges > 0.0 {
        // Of as much flash as its values need.
        scenario.clients.requests = scenario.clients.requests.min(8);
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
