//! By sequentiality, frequency and recency: a write that continues the one before it has its class;
//! any other has the class of the writes that its range of pages has had lately, counted with a
//! weight that halves in each period.
//!
//! AutoStream: Yang, Pandurangan, Choi and Balakrishnan, SYSTOR 2017; the formula is that of US
//! patent 11,392,297, claims 3 and 4: the count of a range is divided by 2 to the power of the time
//! since its last write over the decay period, and its logarithm is the stream. There time is that
//! of a clock. Here the period is the writing of the whole drive, so that the class does not depend
//! on the load, and the unit of the count is a write of every page of the range: the last class has
//! what is overwritten no more often than the drive on the whole.

use super::view::{CHUNK_PAGES, Estimate, MOST_CLASSES, Rule, Write, older};
use crate::registry::{Entry, Numbers, Parameter};

/// The policy in the registry.
pub(super) static ENTRY: Entry<Rule> = Entry {
    name: "sfr",
    parameters: &[Parameter::new("CLASSES", "classes of lifetimes").within(2, MOST_CLASSES)],
    meaning: "Those that continue the same sequential writes; of others those whose neighbours of 256 pages were written about as often of late.",
    aliases: &[],
    rule: Rule {
        classes: |[classes, _]| classes,
        write,
        moved: |moved, [classes, _]| older(moved, classes),
    },
};

/// A write in the count of a range, whose last bits are a fraction.
const WRITE: u32 = 1 << 8;

fn write(write: &Write, estimate: &mut Estimate, [classes, _]: Numbers) -> u32 {
    let idle = write.clock.wrapping_sub(estimate.last);
    estimate.last = write.clock;
    estimate.writes = halved(estimate.writes, idle, write.capacity).saturating_add(WRITE);
    if let Some(class) = write.continues {
        return class;
    }
    let every_page = WRITE * CHUNK_PAGES;
    let hotter = (estimate.writes / every_page).checked_ilog2().unwrap_or(0);
    (classes - 1).saturating_sub(hotter)
}

/// The count divided by 2 to the power of `idle / period`; within a period it falls linearly.
fn halved(count: u32, idle: u32, period: u32) -> u32 {
    let (periods, rest) = (idle / period, u64::from(idle % period));
    let count = u64::from(count.checked_shr(periods).unwrap_or(0));
    (count - count * rest / (2 * u64::from(period))) as u32
}
