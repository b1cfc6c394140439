//! By the decaying average of the lifetimes of a small range of pages: of the last one half, of the
//! one before a quarter, and so on.
//!
//! PLAN (Toshiba) predicts lifetimes by the history of writes to a chunk of the address space; its
//! slides give the idea and no constants. Here a chunk is of 256 pages, and the average decays by
//! half at each write.

use super::view::{Estimate, MOST_CLASSES, Rule, Write, by_halves, older};
use crate::registry::{Entry, Numbers, Parameter};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "decay",
    parameters: &[Parameter::new("CLASSES", "classes of lifetimes").within(2, MOST_CLASSES)],
    meaning: "Those whose neighbours of 256 pages lived about as long, by a decaying average; the classes halve it, from the capacity down.",
    aliases: &[],
    rule: Rule {
        classes: |[classes, _]| classes,
        write,
        moved: |moved, [classes, _]| older(moved, classes),
    },
};

fn write(write: &Write, estimate: &mut Estimate, [classes, _]: Numbers) -> u32 {
    if let Some(age) = write.age {
        estimate.lifetime = match estimate.lifetime {
            0 => age.max(1),
            known => known.midpoint(age),
        };
    }
    match estimate.lifetime {
        0 => classes - 1,
        lifetime => by_halves(lifetime, write.capacity, classes),
    }
}
