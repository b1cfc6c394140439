//! Batched command counters.

use crate::shared::command_counts::CommandCounts;

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

    /// Adds the counted commands to the shared counts; returns how many they are.
    pub fn flush(&mut self, counts: &CommandCounts) -> u64 {
        let mut all = 0;
        for (index, count) in self.runs.drain(..) {
            counts.count_calls(index, count);
            all += count;
        }
        all
    }
}
