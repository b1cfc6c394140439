//! Windows of sets that hold copies of the same data: one set programs and erases at a time, and
//! the others only read (NVM Express calls these windows non-deterministic and deterministic).
//!
//! ```text
//! Maintenance --its time is over--> Draining --at rest--> Deterministic --the turn--> Maintenance
//! ```
//!
//! A set leaves the deterministic window only when the one before it has entered it, so that all
//! sets but one are deterministic at any time. Time is an argument: the same machine serves real
//! and virtual time.

/// The window of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// It programs and erases.
    Maintenance,
    /// It starts no program and no erase, and waits for the end of those under way.
    Draining,
    /// It only reads.
    Deterministic,
}

/// The windows of the sets that hold copies of the same data.
#[derive(Debug)]
pub struct Windows {
    sets: usize,
    length_ns: u64,
    /// The set whose turn it is, and whether it drains.
    turn: usize,
    drains: bool,
    /// When its maintenance ends, or when it began to drain.
    at_ns: u64,
    /// Maintenance windows that have ended.
    ended: u64,
    /// The longest time from the end of a maintenance window to the rest of its set.
    longest_drain_ns: u64,
}

impl Windows {
    /// Windows of so many sets from `now_ns` on; the first set begins with maintenance.
    ///
    /// # Panics
    /// If there are fewer than two sets, or the length is 0.
    pub fn new(sets: usize, length_ns: u64, now_ns: u64) -> Windows {
        assert!(sets > 1, "the only copy would not be writable");
        assert!(length_ns > 0, "a window takes time");
        Windows {
            sets,
            length_ns,
            turn: 0,
            drains: false,
            at_ns: now_ns.saturating_add(length_ns),
            ended: 0,
            longest_drain_ns: 0,
        }
    }

    /// The window of a set.
    pub fn of(&self, set: usize) -> Window {
        match (set == self.turn, self.drains) {
            (false, _) => Window::Deterministic,
            (true, false) => Window::Maintenance,
            (true, true) => Window::Draining,
        }
    }

    /// The set that programs; `None` while it drains.
    pub fn programs(&self) -> Option<usize> {
        (!self.drains).then_some(self.turn)
    }

    /// The set that drains.
    pub fn drains(&self) -> Option<usize> {
        self.drains.then_some(self.turn)
    }

    /// When maintenance ends; `None` while the set drains, which takes as long as its work.
    pub fn ends_at_ns(&self) -> Option<u64> {
        (!self.drains).then_some(self.at_ns)
    }

    /// Ends maintenance: its time is over, or it ends early.
    ///
    /// # Panics
    /// If the set drains already.
    pub fn drain(&mut self, now_ns: u64) {
        assert!(!self.drains, "set {} drains already", self.turn);
        (self.drains, self.at_ns) = (true, now_ns);
        self.ended += 1;
    }

    /// The set that drains has come to rest: the next set begins maintenance.
    ///
    /// # Panics
    /// If no set drains.
    pub fn at_rest(&mut self, now_ns: u64) {
        assert!(self.drains, "set {} does not drain", self.turn);
        self.longest_drain_ns = self.longest_drain_ns.max(now_ns - self.at_ns);
        self.turn = (self.turn + 1) % self.sets;
        (self.drains, self.at_ns) = (false, now_ns.saturating_add(self.length_ns));
    }

    /// Maintenance windows that have ended.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// The longest time from the end of a maintenance window to the rest of its set, in
    /// nanoseconds.
    pub fn longest_drain_ns(&self) -> u64 {
        self.longest_drain_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_programs_at_a_time_and_each_in_turn() {
        let mut windows = Windows::new(3, 100, 7);
        for turn in [0, 1, 2, 0] {
            let ends_at_ns = windows.ends_at_ns().unwrap();
            assert_eq!((windows.programs(), windows.drains()), (Some(turn), None));
            windows.drain(ends_at_ns);
            assert_eq!((windows.programs(), windows.drains()), (None, Some(turn)));
            assert_eq!(windows.ends_at_ns(), None);
            let deterministic = (0..3).filter(|&set| windows.of(set) == Window::Deterministic);
            assert_eq!(deterministic.count(), 2, "while set {turn} drains");
            windows.at_rest(ends_at_ns + 5);
            assert_eq!(windows.ends_at_ns(), Some(ends_at_ns + 105));
        }
        assert_eq!((windows.ended(), windows.longest_drain_ns()), (4, 5));
    }

    #[test]
    #[should_panic(expected = "the only copy")]
    fn the_only_copy_has_no_windows() {
        Windows::new(1, 100, 0);
    }
}
