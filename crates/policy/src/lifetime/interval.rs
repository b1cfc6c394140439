//! By the time between the last two writes of the page: what was overwritten soon is expected to be
//! overwritten soon again. A page that is moved has outlived that, and becomes a class older.
//!
//! The interval between updates as a predictor of the next: Stoica and Ailamaki, *Improving flash
//! write performance by using update frequency*, VLDB 2013.

use super::view::{MOST_CLASSES, Rule, by_halves, older};
use crate::registry::{Entry, Parameter};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "interval",
    parameters: &[Parameter::new("CLASSES", "classes of lifetimes").within(2, MOST_CLASSES)],
    meaning: "Those that were overwritten after about the same time; the classes halve it, from the capacity down.",
    aliases: &[],
    rule: Rule {
        classes: |[classes, _]| classes,
        write: |write, _, [classes, _]| match write.age {
            Some(age) => by_halves(age, write.capacity, classes),
            None => classes - 1,
        },
        moved: |moved, [classes, _]| older(moved, classes),
    },
};
