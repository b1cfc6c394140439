//! The operation with the earliest deadline: a read is due a time after its arrival, a write ten
//! times as long after its own. So reads go first, overdue ones before all others, and a write
//! waits for the reads of nine times that time at most.
//!
//! The proportion is that of the scheduler mq-deadline of Linux (`read_expire` 500 ms,
//! `write_expire` 5 s: `block/mq-deadline.c`, *Deadline IO scheduler tunables* in the kernel's
//! documentation). That serves batches in the order of sectors, which has no use on flash, and
//! limits by a count how long writes starve; here the deadlines alone decide.

use super::rule::{Allowances, Decides, PRIORITIES, Rule};
use crate::registry::{Entry, Numbers, Parameter};
use softflash_base::AccessKind;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "deadline",
    parameters: &[Parameter::new("MS", "milliseconds until a read is due")],
    meaning: "The earliest deadline first: reads are due after so many milliseconds, programs after ten times as many.",
    aliases: &[],
    rule: Rule { decides: Decides::Deadline, allowances: Some(allowances) },
};

/// The time until a write is due, over that of a read.
const WRITE_FACTOR: u64 = 10;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// Erases are due when programs are: without them programs wait for space.
fn allowances([read_ms, _]: Numbers) -> Allowances {
    let after = |kind| [due_at(0, kind, read_ms); PRIORITIES];
    let (reads, writes) = (after(AccessKind::Read), after(AccessKind::Write));
    Allowances { reads, programs: writes, erases: writes, renewed: false }
}

/// When an operation that arrives now is due, where reads are due after so many milliseconds.
#[inline]
pub(super) fn due_at(now_ns: u64, kind: AccessKind, read_ms: u32) -> u64 {
    let factor = if kind == AccessKind::Read { 1 } else { WRITE_FACTOR };
    now_ns.saturating_add(u64::from(read_ms) * MS * factor)
}
