//! Operations that are acknowledged and did something else.

use super::check::{self, Checked};
use serde::{Deserialize, Serialize};

/// How often operations are acknowledged that did something else. Every rate is a probability a
/// page, 0 to 1, and 0 by default. [`InjectedFaults`](crate::InjectedFaults) counts what has been
/// done.
///
/// Maneas et al. (FAST 2020), as TigerBeetle quotes them, saw silent corruption on 0.031 % of SSDs
/// a year and misdirected operations on 0.023 %. TigerBeetle's simulator draws up to 10 % of the
/// writes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SilentFaults {
    /// A read that would succeed returns, as success, data with wrong bits in one codeword: more
    /// errors than ECC corrects, which it took for another word.
    pub miscorrected_read: f64,
    /// A read that would succeed returns the same page of another block of its plane, if there is
    /// one that holds data.
    pub misdirected_read: f64,
    /// A read that would succeed returns what the die's register still held of an earlier command,
    /// if that is something else and not all zeros.
    pub stale_read: f64,
    /// A program that would succeed lands on the same page of another good block of its plane that
    /// is programmed up to there or further; with none, it does not land anywhere else. Its own
    /// page stays erased. A page that was the next of the other block holds the data until that is
    /// programmed, too, and is uncorrectable then; one that was programmed is uncorrectable.
    pub misdirected_program: f64,
    /// A program that would succeed changes nothing: its page stays erased, and cannot be
    /// programmed again.
    pub phantom_program: f64,
}

impl SilentFaults {
    pub(super) fn validate(&self) -> Checked {
        check::rate("miscorrected_read", self.miscorrected_read)?;
        check::rate("misdirected_read", self.misdirected_read)?;
        check::rate("stale_read", self.stale_read)?;
        check::rate("misdirected_program", self.misdirected_program)?;
        check::rate("phantom_program", self.phantom_program)
    }
}
