//! Batched command counters.

use crate::context::Context;

/// Counted commands that have not been added to the shared counters: clients mostly repeat the same
/// command.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: Vec<(usize, u64)>,
}

impl Tally {
    pub fn add(&mut self, index: usize) {
        match self.runs.iter_mut().find(|(of, _)| *of == index) {
            Some((_, count)) => *count += 1,
            None => self.runs.push((index, 1)),
        }
    }

    pub fn flush(&mut self, context: &Context) {
        for (index, count) in self.runs.drain(..) {
            context.count_commands(index, count);
        }
    }
}
