//! Commands between their acceptance and their completion.

use crate::command::{Completion, DeviceError, Tag};
use softflash_base::{IoBuf, Time};

/// A command that a device has accepted. Every backend keeps one beside a command and ends it once:
/// this is the only place that measures.
#[derive(Debug, Clone, Copy)]
pub struct Accepted {
    tag: Tag,
    at: Time,
    queue: u16,
}

impl Accepted {
    /// A command that is accepted now, behind so many others of its die.
    pub fn new(tag: Tag, now: Time, queue: u16) -> Accepted {
        Accepted { tag, at: now, queue }
    }

    /// Its completion.
    pub fn ended(
        self,
        now: Time,
        buffer: Option<IoBuf>,
        result: Result<(), DeviceError>,
    ) -> Completion {
        let Accepted { tag, at, queue } = self;
        let service_ns = now.since_ns(at);
        Completion { tag, buffer, result, retries: 0, queue, service_ns, finished_at: now }
    }
}
