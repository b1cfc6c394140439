//! In the order of arrival: a read goes first if it is older than every write that waits.

use super::rule::{Allowances, Decides, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "fifo",
    parameters: &[],
    meaning: "Host commands in the order of their arrival.",
    aliases: &[],
    rule: Rule { decides: Decides::Arrival, allowances: Some(|_| Allowances::NONE) },
};

/// Whether a read is older than all writes; numbers of arrivals wrap.
#[inline(always)]
pub fn read_is_older(read: u32, mut writes: impl Iterator<Item = u32>) -> bool {
    !writes.any(|write| (write.wrapping_sub(read) as i32) < 0)
}
