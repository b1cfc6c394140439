//! By the real lifetimes, which the host foretells with each write: the bound for predictions.
//! Pages that are moved are of the class of the time that is left to them, in the mean of their
//! block, because a block is moved as one.

use super::view::{MOST_CLASSES, Rule, by_halves, older};
use crate::registry::{Entry, Parameter};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "oracle",
    parameters: &[Parameter::new("CLASSES", "classes of lifetimes").within(2, MOST_CLASSES)],
    meaning: "Those that will be overwritten after about the same time, as the requests to come show; the classes halve it, from the capacity down.",
    aliases: &[],
    rule: Rule {
        classes: |[classes, _]| classes,
        write: |write, _, [classes, _]| match write.foretold {
            Some(lifetime) => by_halves(lifetime, write.capacity, classes),
            None => classes - 1,
        },
        moved: |moved, [classes, _]| match moved.foretold {
            Some(left) => by_halves(left, moved.capacity, classes),
            None => older(moved, classes),
        },
    },
};
