//! The closed block with the fewest erases, when any block has more than `threshold` erases more:
//! its data are cold, and moving them lets it take part.
//!
//! Static wear levelling by the difference of erase counts: Gal and Toledo, *Algorithms and data
//! structures for flash memories*, ACM Computing Surveys 37(2), 2005, section 2.3; Chang, *On
//! efficient wear leveling for large-scale flash-memory storage systems* (dual-pool), SAC 2007,
//! triggers on the same difference.

use super::dynamic;
use super::view::{Rule, WearView};
use crate::registry::{Entry, Numbers, Parameter};
use crate::victim::NOT_CLOSED;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "static",
    parameters: &[Parameter::new("N", "erases by which the most worn block may lead")],
    meaning: "As `dynamic`, and the block with the fewest erases is collected when another has more than so many erases more.",
    aliases: &[],
    rule: Rule { choose_free: dynamic::choose_free, level },
};

fn level(view: &WearView<'_>, [threshold, _]: Numbers) -> Option<u32> {
    let most = view.erases.iter().copied().max()?;
    let closed = view.valid.iter().zip(view.erases).enumerate();
    let (block, least) = closed
        .filter(|&(_, (&valid, _))| valid < NOT_CLOSED)
        .map(|(block, (_, &erases))| (block, erases))
        .min_by_key(|&(_, erases)| erases)?;
    (most - least > threshold).then_some(block as u32)
}
