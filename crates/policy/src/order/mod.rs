//! Orders: which of the operations that wait for a die goes next, and which tenant of a shared
//! resource (a domain, a die) is served next.

mod arrival;
mod deadline;
mod reads_first;
mod rule;
#[cfg(test)]
mod tests;
mod waiting;
mod weighted_fair;

use crate::registry::{Entry, Kind, Policy};
use waiting::Shares;

pub use arrival::read_is_older;
pub use rule::{Allowances, Decides, PRIORITIES, Rule};
pub use waiting::Waiting;
pub use weighted_fair::{StartTag, WeightedFair};

/// The order of the operations of a die.
#[derive(Debug)]
pub struct Order;

impl Kind for Order {
    type Rule = Rule;
    const NAME: &'static str = "order";
    const TITLE: &'static str = "schedule";
    const MEANING: &'static str = "The order of the operations of a die.";
    const ENTRIES: &'static [&'static Entry<Rule>] =
        &[&arrival::ENTRY, &reads_first::ENTRY, &weighted_fair::ENTRY, &deadline::ENTRY];
}

/// The order of the operations of a die. In text: `fifo`, `reads-first`, `weighted-fair:3:1`,
/// `deadline:5`.
pub type Schedule = Policy<Order>;

/// Those that code names.
impl Schedule {
    /// Host commands in the order of their arrival.
    pub const FIFO: Schedule = Policy::of(&arrival::ENTRY);
    /// Reads before programs.
    pub const READS_FIRST: Schedule = Policy::of(&reads_first::ENTRY);

    /// The earliest deadline first: reads are due after so many milliseconds.
    ///
    /// # Panics
    /// If the time is 0.
    pub fn deadline(read_ms: u32) -> Schedule {
        Policy::with(&deadline::ENTRY, &[read_ms])
    }

    /// Reads and programs share the die's time by these weights.
    ///
    /// # Panics
    /// If a weight is 0.
    pub fn weighted_fair(reads: u32, writes: u32) -> Schedule {
        Policy::with(&weighted_fair::ENTRY, &[reads, writes])
    }
}

impl Schedule {
    /// What decides between a read and a write of a drive.
    #[inline(always)]
    pub fn decides(&self) -> Decides {
        self.rule().decides
    }

    /// How long commands of the host's FTL wait for more urgent ones; none where this order is for
    /// drives only.
    pub fn allowances(&self) -> Option<Allowances> {
        self.rule().allowances.map(|of| of(self.numbers()))
    }

    /// Whether commands are served in the order of their arrival, and none overtakes another.
    pub fn is_fifo(&self) -> bool {
        self.decides() == Decides::Arrival
    }

    /// An empty queue, if operations are ranked when they arrive.
    pub fn waiting(&self) -> Option<Waiting> {
        let [first, second] = self.numbers();
        match self.decides() {
            Decides::Arrival | Decides::ReadsFirst => None,
            Decides::Deadline => Some(Waiting::by_deadline(first)),
            Decides::Share => Some(Waiting::by_share(Shares { reads: first, writes: second })),
        }
    }
}
