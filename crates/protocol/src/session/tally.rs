//! Batched command counters.

use crate::command::CommandId;
use crate::shared::command_stats::CommandStats;

/// Counted commands that have not been added to the shared counters: clients mostly repeat the same
/// command.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: Vec<(CommandId, u64)>,
}

impl Tally {
    pub fn add(&mut self, id: CommandId) {
        match self.runs.iter_mut().find(|(of, _)| *of == id) {
            Some((_, count)) => *count += 1,
            None => self.runs.push((id, 1)),
        }
    }

    /// Adds the counted commands to the shared counters, with the time that the batch took; returns
    /// how many they are.
    pub fn flush(&mut self, stats: &CommandStats, took_ns: u64) -> u64 {
        let mut all = 0;
        for (id, count) in self.runs.drain(..) {
            stats.add_calls(id, count, took_ns);
            all += count;
        }
        all
    }
}
