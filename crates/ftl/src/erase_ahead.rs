//! The time of erases ahead of need: while no request waits for the unit, or, if it is never idle,
//! after superblocks have been short for a longer time; at once where all are to be erased.

use crate::config::FtlConfig;
use crate::superblock::FtlError;
use softflash_base::Time;

/// Time without erases ahead of need on a unit after one has failed.
const PAUSE_AFTER_FAILURE_NS: u64 = 1_000_000_000;

/// When the next superblock of a unit is erased ahead of need.
pub(crate) struct EraseAhead {
    /// Superblocks to keep erased.
    target: u32,
    idle_before_erase_ns: u64,
    shortage_patience_ns: u64,
    /// The time at which the number of erased superblocks fell below the target.
    short_since: Option<Time>,
    /// The earliest time of the next erase, after one has failed.
    not_before: Time,
    /// All free superblocks are to be erased.
    wants_all: bool,
    /// None is erased ahead of need.
    is_held: bool,
    /// Why they cannot be.
    failure: Option<FtlError>,
}

impl EraseAhead {
    pub fn new(config: &FtlConfig) -> EraseAhead {
        EraseAhead {
            target: config.erased_target,
            idle_before_erase_ns: config.idle_before_erase_ns,
            shortage_patience_ns: config.shortage_patience_ns,
            short_since: None,
            not_before: Time::ZERO,
            wants_all: false,
            is_held: false,
            failure: None,
        }
    }

    /// All free superblocks are to be erased, one after the other, or not any more.
    pub fn want_all(&mut self, wants_all: bool) {
        self.wants_all = wants_all;
        self.failure = None;
    }

    /// No superblock is erased ahead of need, or some are again.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// The path to the flash fails.
    pub fn fail(&mut self, error: FtlError) {
        self.failure.get_or_insert(error);
    }

    /// Why not all free superblocks can be erased.
    pub fn failure(&self) -> Option<&FtlError> {
        self.failure.as_ref()
    }

    /// Whether all free superblocks are to be erased.
    pub fn wants_all(&self) -> bool {
        self.wants_all
    }

    /// Records the number of erased superblocks.
    pub fn note_supply(&mut self, now: Time, erased: u32) {
        if erased >= self.target {
            self.short_since = None;
        } else {
            self.short_since.get_or_insert(now);
        }
    }

    /// Pauses after a failed erase.
    pub fn pause(&mut self, now: Time) {
        self.not_before = now + PAUSE_AFTER_FAILURE_NS;
    }

    /// The time of the next erase if superblocks are short. `idle_since` is the time since which
    /// the unit has no command; none if it has one.
    pub fn due(&self, idle_since: Option<Time>) -> Option<Time> {
        if self.wants_all {
            return Some(self.not_before);
        }
        if self.is_held {
            return None;
        }
        let latest = self.short_since? + self.shortage_patience_ns;
        let due = match idle_since {
            Some(idle_since) => latest.min(idle_since + self.idle_before_erase_ns),
            None => latest,
        };
        Some(due.max(self.not_before))
    }
}
