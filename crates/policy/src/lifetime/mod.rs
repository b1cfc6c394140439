//! Lifetime policies: which pages become invalid at about the same time, so that they share blocks.
//!
//! A policy gives a class to each page that the host writes and to each block whose pages are
//! moved; class 0 lives shortest. Time is counted in pages that the host has written, so that a
//! choice does not depend on the load.

mod decay;
mod interval;
mod none;
mod oracle;
mod sepbit;
mod sfr;
#[cfg(test)]
mod tests;
mod view;

use crate::registry::{Entry, Kind, Policy};

pub use sepbit::AGE_FACTOR;
pub use view::{CHUNK_PAGES, Estimate, MOST_CLASSES, Moved, Rule, Write, class_of};

/// The prediction of lifetimes.
#[derive(Debug)]
pub struct Lifetime;

impl Kind for Lifetime {
    type Rule = Rule;
    const NAME: &'static str = "lifetime";
    const TITLE: &'static str = "lifetime policy";
    const MEANING: &'static str =
        "Which pages are expected to become invalid at about the same time, and share blocks.";
    const ENTRIES: &'static [&'static Entry<Rule>] = &[
        &none::ENTRY,
        &interval::ENTRY,
        &decay::ENTRY,
        &sfr::ENTRY,
        &sepbit::ENTRY,
        &oracle::ENTRY,
    ];
}

/// Which pages share blocks. In text: `none`, `sepbit`, `decay:6`.
pub type LifetimePolicy = Policy<Lifetime>;

/// Those that code names.
impl LifetimePolicy {
    /// All pages share blocks.
    pub const NONE: LifetimePolicy = Policy::of(&none::ENTRY);

    /// Whether the host foretells the lifetimes: the policy needs requests to come.
    pub fn is_foretold(self) -> bool {
        self.is(&oracle::ENTRY)
    }
}

/// The number of classes.
pub fn classes(policy: LifetimePolicy) -> u32 {
    (policy.rule().classes)(policy.numbers())
}

/// The class of a page that the host writes; `estimate` is what the policy has kept of the page's
/// neighbourhood.
#[inline]
pub fn class_of_write(policy: LifetimePolicy, write: &Write, estimate: &mut Estimate) -> u32 {
    (policy.rule().write)(write, estimate, policy.numbers())
}

/// The class of the pages of a block that is collected.
#[inline]
pub fn class_of_moved(policy: LifetimePolicy, moved: &Moved) -> u32 {
    (policy.rule().moved)(moved, policy.numbers())
}
