//! Reads before all writes that wait: a read takes a tenth of the time of a program, and somebody
//! waits for it, while most writes wait in a buffer. In a drive, writes starve as long as reads
//! fill the die.
//!
//! The host's FTL serves reads before programs before erases, each by priority, with ageing: a read
//! takes about 0.1 ms, a program 1 ms, an erase 5 ms, so some dozens of reads overtake a program,
//! and some dozens of programs overtake an erase. Then one command of the overtaken kind goes
//! before the next read of a client: no kind starves, and each is served at least once in 100 ms.

use super::rule::{Allowances, Decides, Rule};
use crate::registry::Entry;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "reads-first",
    parameters: &[],
    meaning: "Reads before programs.",
    aliases: &[],
    rule: Rule { decides: Decides::ReadsFirst, allowances: Some(|_| AGEING) },
};

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

const AGEING: Allowances = Allowances {
    reads: [0, MS, 4 * MS],
    programs: [8 * MS, 12 * MS, 24 * MS],
    erases: [40 * MS, 60 * MS, 100 * MS],
    renewed: true,
};
