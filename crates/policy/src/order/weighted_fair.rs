//! Start-time fair queueing: each request gets a start tag, and the one with the least is served
//! next. Tags are in cost per weight, on a virtual time that is the start tag of the request in
//! service: tenants that wait advance together, whatever the rate of the service.
//!
//! While two tenants wait, their services per weight differ by at most the cost of the largest
//! request per weight of the one plus that of the other. A tenant that was idle begins at the
//! virtual time: it has saved no credit, and waits for at most one request of each other tenant.
//!
//! Goyal, Vin and Cheng, *Start-time fair queuing: a scheduling algorithm for integrated services
//! packet switching networks*, SIGCOMM 1996, section 2; the bounds are its theorems 1 and 4.

use super::rule::{Decides, Rule};
use crate::registry::{Entry, Parameter};
use softflash_base::planted::{self, Bug};
use std::collections::BTreeMap;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "weighted-fair",
    parameters: &[
        Parameter::new("R", "the weight of reads"),
        Parameter::new("W", "the weight of writes"),
    ],
    meaning: "Reads and programs share the die's time.",
    aliases: &[],
    // The host's FTL does not know how long a device takes for a command.
    rule: Rule { decides: Decides::Share, allowances: None },
};

/// The place of a request in the order: the least is served next, of equals the first to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StartTag(u128);

/// The fraction bits of a tag: the error of a division is far below the cost of any request.
const FRACTION_BITS: u32 = 32;

/// The tags of the tenants of one resource. It holds no requests: the caller queues them by tag.
#[derive(Debug, Clone, Default)]
pub struct WeightedFair {
    virtual_time: StartTag,
    /// The finish tag of the last request of each tenant: the start of its next one, if that
    /// arrives in time.
    finish: BTreeMap<u32, StartTag>,
}

impl WeightedFair {
    /// No tenant has been served.
    pub fn new() -> WeightedFair {
        WeightedFair::default()
    }

    /// The start tag of a request that arrives: the finish of the tenant's request before it, or
    /// the virtual time if that is later. Costs have any unit; a weight of 0 counts as 1.
    pub fn arrive(&mut self, tenant: u32, weight: u32, cost: u64) -> StartTag {
        let finish = self.finish.entry(tenant).or_default();
        let saved = planted::bug(Bug::AbsenceSaved);
        let start = if saved { *finish } else { self.virtual_time.max(*finish) };
        let length = (u128::from(cost) << FRACTION_BITS) / u128::from(weight.max(1));
        *finish = StartTag(start.0.saturating_add(length));
        start
    }

    /// A request with this tag, the least of those that wait, is served.
    pub fn serve(&mut self, tag: StartTag) {
        self.virtual_time = self.virtual_time.max(tag);
    }

    /// Nothing waits and nothing is served: all tenants begin anew as equals. Without it, the
    /// tenant that was served last may wait for one request of another.
    pub fn rest(&mut self) {
        let finished = std::mem::take(&mut self.finish);
        self.virtual_time = finished.into_values().fold(self.virtual_time, StartTag::max);
    }
}
