//! How often each command has run.

use crate::command::{COMMANDS, Spec};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of calls of each command since the start or the last CONFIG RESETSTAT.
pub(crate) struct CommandCounts {
    /// In the order of [`COMMANDS`].
    counts: Box<[AtomicU64]>,
}

impl CommandCounts {
    /// No calls.
    pub fn new() -> CommandCounts {
        CommandCounts { counts: COMMANDS.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds calls of the command at an index of [`COMMANDS`].
    pub fn count_calls(&self, index: usize, count: u64) {
        if let Some(counter) = self.counts.get(index) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The counts without commands never called.
    pub fn called(&self) -> Vec<(&'static Spec, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        COMMANDS.iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// Sets all counts to 0.
    pub fn reset(&self) {
        self.counts.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}
