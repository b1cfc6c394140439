//! The host's side of a drive: requests that wait to be admitted, and completions that the host has
//! not taken.

use crate::request::{Done, HostRequest};
use std::collections::VecDeque;

/// The host's side of a drive.
pub(crate) struct HostQueue {
    /// Completed requests that have not been returned.
    completed: Vec<Done>,
    /// Requests beyond the queue depth, and when they were submitted.
    waiting: VecDeque<(u64, HostRequest)>,
    queue_depth: usize,
}

impl HostQueue {
    /// No requests. A `queue_depth` of 0 is no limit.
    pub(crate) fn new(queue_depth: u32) -> HostQueue {
        HostQueue {
            completed: Vec::new(),
            waiting: VecDeque::new(),
            queue_depth: match queue_depth {
                0 => usize::MAX,
                depth => depth as usize,
            },
        }
    }

    /// Whether the drive admits one more request than those under way.
    #[inline]
    pub(crate) fn admits(&self, under_way: usize) -> bool {
        under_way < self.queue_depth
    }

    /// Adds a request that waits to be admitted.
    #[inline]
    pub(crate) fn add_waiting(&mut self, now: u64, request: HostRequest) {
        self.waiting.push_back((now, request));
    }

    /// Requests that wait to be admitted.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the first request that waits, with the time of its submission.
    pub(crate) fn take_waiting(&mut self) -> Option<(u64, HostRequest)> {
        self.waiting.pop_front()
    }

    /// Adds a completed request.
    #[inline]
    pub(crate) fn add_completed(&mut self, done: Done) {
        self.completed.push(done);
    }

    /// Whether completed requests have not been returned.
    #[inline]
    pub(crate) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Returns the completed requests.
    #[inline]
    pub(crate) fn move_completed(&mut self, done: &mut Vec<Done>) {
        if done.is_empty() {
            std::mem::swap(done, &mut self.completed);
        } else {
            done.append(&mut self.completed);
        }
    }
}
