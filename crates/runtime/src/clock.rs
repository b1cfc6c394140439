//! What tells a virtual executor from a real one: how time passes and how it waits.

use crate::descriptors::Descriptors;
use crate::ready::ReadyQueue;
use softflash_base::Time;

/// A clock that an executor runs by.
pub(crate) trait Clock {
    /// Time since the clock's start; never runs back.
    fn now(&self) -> Time;

    /// Milliseconds since the Unix epoch.
    fn wall_ms(&self) -> u64;

    /// Nothing is ready: waits until `next_timer`, a descriptor or a wake from elsewhere. False
    /// where none of these can ever come.
    fn wait(
        &self,
        next_timer: Option<Time>,
        descriptors: &mut Descriptors,
        ready: &ReadyQueue,
    ) -> bool;

    /// Called now and then while tasks are ready, so that busy tasks do not starve descriptors.
    fn glance(&self, descriptors: &mut Descriptors);
}
