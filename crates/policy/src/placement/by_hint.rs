//! By the class of the request: each class of a stripe position has a write frontier of its own, so
//! that pages with one lifetime share blocks and become invalid together. The position is that of
//! the static stripe.
//!
//! Kang, Hyun, Maeng and Cho, *The multi-streamed solid-state drive*, HotStorage 2014; NVMe calls
//! the classes streams, or placement handles (FDP). What is collected stays in its class.

use super::view::Rule;
use crate::registry::{Entry, Parameter};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "by-hint",
    parameters: &[Parameter::new("CLASSES", "classes of data").within(2, MOST_CLASSES)],
    meaning: "The one of the page's number and of the request's class, of so many classes.",
    aliases: &[],
    rule: Rule { choose: None, classes: |[classes, _]| classes },
};

/// The most classes.
pub const MOST_CLASSES: u32 = 8;

/// The class of a hint; hints beyond the last class belong to the last.
#[inline]
pub fn class(hint: u32, classes: u32) -> u32 {
    hint.min(classes - 1)
}
