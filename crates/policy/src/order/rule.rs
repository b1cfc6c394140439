//! How an order decides: between reads and writes of a drive's die, and among all commands that the
//! host's FTL queues for a die.

use crate::registry::Numbers;

/// How an order decides.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What decides between the oldest read and the oldest write of a drive's die.
    pub(super) decides: Decides,
    /// How long commands of the host's FTL wait for more urgent ones; none where the order is for
    /// drives only.
    pub(super) allowances: Option<fn(Numbers) -> Allowances>,
}

/// What decides whether the oldest read of a die goes before its oldest write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// Their arrivals.
    Arrival,
    /// Reads always go first.
    ReadsFirst,
    /// Their deadlines, which they get when they arrive.
    Deadline,
    /// The start tags that they get when they arrive.
    Share,
}

/// For how many nanoseconds more urgent commands may overtake a command of the host's FTL, for each
/// priority from the most urgent on. A command is due when its allowance has passed, and the die
/// serves the one that is due first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowances {
    /// Of reads.
    pub reads: [u64; PRIORITIES],
    /// Of programs.
    pub programs: [u64; PRIORITIES],
    /// Of erases.
    pub erases: [u64; PRIORITIES],
    /// Whether the allowance of a kind and priority begins anew when one of its commands is served:
    /// then only one of many that are due goes before a new read.
    pub renewed: bool,
}

/// Priorities of commands.
pub const PRIORITIES: usize = 3;

impl Allowances {
    /// No command overtakes another one.
    pub(super) const NONE: Allowances = Allowances {
        reads: [0; PRIORITIES],
        programs: [0; PRIORITIES],
        erases: [0; PRIORITIES],
        renewed: false,
    };
}
