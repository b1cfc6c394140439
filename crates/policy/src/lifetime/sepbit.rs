//! By the lifetime of the version that is replaced and, for pages that are moved, by their age, as
//! multiples of the mean lifetime of blocks of short-lived pages.
//!
//! Wang, Yang, Zhang, Zhou, Xu, Lee and Cui, *Separating data via block invalidation time inference
//! for write amplification reduction in log-structured storage* (SepBIT), FAST 2022: classes 0 and
//! 1 are written by the host, 2 has what is moved from class 0, and 3 to 5 the rest by age, up to
//! 4, 16 and more times that lifetime.

use super::view::{Moved, Rule, class_of};
use crate::registry::Entry;

/// The ratio of the ages of neighbouring classes of moved data, and the first age, as multiples of
/// the lifetime of short-lived blocks.
pub const AGE_FACTOR: u64 = 4;

/// Classes of data that are moved, by their age.
const AGES: u8 = 3;

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "sepbit",
    parameters: &[],
    meaning: "Those that replace short-lived pages; those that replace others; and of pages that are moved those of about the same age.",
    aliases: &[],
    rule: Rule {
        classes: |_| 3 + u32::from(AGES),
        write: |write, _, _| match write.age {
            Some(age) if age < write.short => 0,
            _ => 1,
        },
        moved: |moved, _| class_of_moved(moved),
    },
};

fn class_of_moved(moved: &Moved) -> u32 {
    match moved.class {
        0 => 2,
        _ => {
            let first = u64::from(moved.short) * AGE_FACTOR;
            3 + u32::from(class_of(moved.age.into(), first.max(1), AGE_FACTOR, AGES))
        }
    }
}
