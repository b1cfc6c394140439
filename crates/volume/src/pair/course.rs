//! How a pair goes on: which members take writes, and which is read.

use softflash_mapping::window::{Window, Windows};
use std::cell::Cell;
use std::time::Duration;

/// The place of a member in its pair: 0 or 1.
pub(crate) type Member = usize;

/// The other member.
///
/// # Panics
/// If there is no such member.
pub(crate) fn partner(member: Member) -> Member {
    assert!(member < 2, "a pair has two members");
    1 - member
}

/// Time between two tries to use a lost member again.
pub(super) const REVIVAL: Duration = Duration::from_secs(60);

/// How a pair goes on.
#[derive(Debug)]
pub(crate) enum Course {
    /// Both members take every write.
    Together,
    /// The members take writes in turns, in windows.
    Turns(Windows),
    /// One member takes writes: the other is lost, or a copy of everything is being made for it.
    Alone {
        /// The one that takes writes.
        member: Member,
        /// Whether the other one is being built.
        builds: bool,
    },
}

impl Course {
    /// The members that take writes of clients now.
    pub fn writers(&self) -> [bool; 2] {
        match self {
            Course::Together => [true, true],
            Course::Turns(windows) => {
                [0, 1].map(|member| windows.of(member) != Window::Deterministic)
            }
            Course::Alone { member, .. } => [0, 1].map(|other| other == *member),
        }
    }

    /// A member that has everything, but for what it is behind.
    pub fn lead(&self) -> Member {
        match self {
            Course::Together => 0,
            Course::Turns(windows) => usize::from(windows.of(0) == Window::Deterministic),
            Course::Alone { member, .. } => *member,
        }
    }

    /// The member that is read first; `None` where both are as good.
    pub fn reader(&self) -> Option<Member> {
        match self {
            Course::Together => None,
            Course::Turns(_) => Some(partner(self.lead())),
            Course::Alone { member, .. } => Some(*member),
        }
    }

    /// Whether a member can be read at all.
    pub fn can_read(&self, member: Member) -> bool {
        match self {
            Course::Together | Course::Turns(_) => true,
            Course::Alone { member: only, .. } => *only == member,
        }
    }

    /// Whether data may be copied to a member now.
    pub fn takes_copies(&self, member: Member) -> bool {
        match self {
            Course::Together => true,
            Course::Turns(windows) => windows.of(member) == Window::Maintenance,
            Course::Alone { member: only, builds } => *builds || *only == member,
        }
    }
}

/// Counts of a pair since it was formed.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Windows that ended, and the longest time until a member was at rest, of turns that have been
    /// followed by another course.
    turns: Cell<u64>,
    longest_drain_ns: Cell<u64>,
    /// Turns that ended before their time, because much was staged or had changed.
    pub early_turns: Cell<u64>,
    /// Turns that took longer than their time, because the member was behind.
    pub late_turns: Cell<u64>,
    /// Whether the present turn is one of them.
    is_late: Cell<bool>,
    /// Mapping units that were read from staged data.
    pub staged_reads: Cell<u64>,
    /// Mapping units that were read from the other member: the first choice could not be read.
    pub healed: Cell<u64>,
    /// Mapping units that both members have lost.
    pub lost: Cell<u64>,
    /// Operations for which a member left its deterministic window.
    pub operations: Cell<u64>,
}

impl Figures {
    pub fn add(counter: &Cell<u64>, count: u64) {
        counter.set(counter.get() + count);
    }

    /// The turn of a member goes on, as it is behind. That is told again and again.
    pub fn turn_waits(&self, is_early: bool) {
        self.is_late.set(self.is_late.get() || !is_early);
    }

    /// The turn of a member ends, before its time or at it, if it is not late.
    pub fn turn_ends(&self, is_early: bool) {
        Figures::add(&self.early_turns, u64::from(is_early));
        Figures::add(&self.late_turns, u64::from(self.is_late.replace(false)));
    }

    /// Windows that ended so far, in this course and in those before it, and the longest time until
    /// a member was at rest.
    pub fn turns(&self, course: &Course) -> (u64, u64) {
        let (turns, drain_ns) = match course {
            Course::Turns(windows) => (windows.ended(), windows.longest_drain_ns()),
            Course::Together | Course::Alone { .. } => (0, 0),
        };
        (self.turns.get() + turns, self.longest_drain_ns.get().max(drain_ns))
    }

    /// Keeps the counts of a course that is over.
    pub fn keep(&self, over: &Course) {
        let (turns, longest_drain_ns) = self.turns(over);
        self.turns.set(turns);
        self.longest_drain_ns.set(longest_drain_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_late_once_and_only_behind_its_time() {
        let figures = Figures::default();
        let counts = || (figures.early_turns.get(), figures.late_turns.get());
        [true, false, false].into_iter().for_each(|is_early| figures.turn_waits(is_early));
        figures.turn_ends(false);
        assert_eq!(counts(), (0, 1));
        [true, true].into_iter().for_each(|is_early| figures.turn_waits(is_early));
        figures.turn_ends(true);
        assert_eq!(counts(), (1, 1));
        figures.turn_ends(false);
        assert_eq!(counts(), (1, 1));
    }

    #[test]
    fn the_counts_of_turns_stay_when_the_course_changes() {
        let figures = Figures::default();
        let windows = |drain_ns: u64| {
            let mut windows = Windows::new(2, 100, 0);
            windows.drain(50);
            windows.at_rest(50 + drain_ns);
            Course::Turns(windows)
        };
        figures.keep(&windows(30));
        figures.keep(&Course::Together);
        assert_eq!(figures.turns(&Course::Together), (1, 30));
        assert_eq!(figures.turns(&windows(20)), (2, 30));
        assert_eq!(figures.turns(&windows(40)), (2, 40));
    }

    #[test]
    fn in_turns_one_member_takes_writes_and_the_other_is_read() {
        let mut windows = Windows::new(2, 100, 0);
        for writer in [0, 1, 0] {
            let mut course = Course::Turns(windows);
            assert_eq!((course.lead(), course.reader()), (writer, Some(partner(writer))));
            assert!(course.writers()[writer]);
            assert!(course.takes_copies(writer) && !course.takes_copies(partner(writer)));
            let Course::Turns(of_course) = &mut course else { unreachable!() };
            of_course.drain(50);
            assert!(!course.takes_copies(writer));
            let Course::Turns(mut next) = course else { unreachable!() };
            next.at_rest(60);
            windows = next;
        }
    }
}
