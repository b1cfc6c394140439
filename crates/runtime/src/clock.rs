//! The difference between a virtual and a real executor: how time passes and how it waits.

use crate::descriptors::Descriptors;
use crate::ready::ReadyQueue;
use softflash_base::Time;

/// The clock of an executor.
pub(crate) trait Clock {
    /// Time since the clock's start; never decreases.
    fn now(&self) -> Time;

    /// Milliseconds since the Unix epoch.
    fn wall_ms(&self) -> u64;

    /// No task is ready: waits until `next_timer`, a descriptor or a wake from another thread.
    /// False where none of these can occur.
    fn wait(
        &self,
        next_timer: Option<Time>,
        descriptors: &mut Descriptors,
        ready: &ReadyQueue,
    ) -> bool;

    /// Called periodically while tasks are ready, with the number of polls since the last time, so
    /// that busy tasks do not starve descriptors.
    fn glance(&self, descriptors: &mut Descriptors, polls: u32);
}
