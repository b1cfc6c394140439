//! Silent faults: operations acknowledged as success with a wrong effect.

use super::check::{self, Checked};
use serde::{Deserialize, Serialize};

/// The rates of silent faults: operations acknowledged as success with a wrong effect. Every rate
/// is a probability per page, 0 to 1, and 0 by default. [`InjectedFaults`](crate::InjectedFaults)
/// counts the injected faults.
///
/// Maneas et al. (FAST 2020), as TigerBeetle quotes them, saw silent corruption on 0.031 % of SSDs
/// a year and misdirected operations on 0.023 %. TigerBeetle's simulator draws up to 10 % of the
/// writes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SilentFaults {
    /// A read that would succeed returns, as success, data with wrong bits in one codeword: more
    /// errors than ECC corrects, decoded as another codeword.
    pub miscorrected_read: f64,
    /// A read that would succeed returns the same page of another block of its plane, if there is
    /// one that holds data.
    pub misdirected_read: f64,
    /// A read that would succeed returns the register's contents of an earlier command, if they
    /// differ from the page and are not all zeros.
    pub stale_read: f64,
    /// A program that would succeed writes the same page of another good block of its plane whose
    /// write pointer has reached that page; without such a block it has no effect. Its own page
    /// stays erased. If the page is the next one of the other block, it holds the data until it is
    /// programmed, and is uncorrectable then; if it was programmed, it is uncorrectable.
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
