//! Ghosts: the tags of entries that were evicted unread, as many as there are entries in the cache.

use hashbrown::HashSet;
use std::collections::VecDeque;

/// Tags, the oldest first.
#[derive(Default)]
pub(super) struct Ghosts {
    tags: HashSet<u32>,
    order: VecDeque<u32>,
}

impl Ghosts {
    /// Adds a tag and forgets the oldest ones, so that about `most` are left.
    pub(super) fn add(&mut self, tag: u32, most: usize) {
        if self.tags.insert(tag) {
            self.order.push_back(tag);
        }
        while self.order.len() > most {
            let Some(oldest) = self.order.pop_front() else { return };
            self.tags.remove(&oldest);
        }
    }

    /// Whether a tag is known; it is forgotten.
    pub(super) fn take(&mut self, tag: u32) -> bool {
        // Its place in the order stays until it is the oldest; a ghost that is taken and added
        // again may be forgotten early.
        self.tags.remove(&tag)
    }
}
