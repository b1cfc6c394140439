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
    /// Turns that ended before their time, because much was staged or had changed.
    pub early_turns: Cell<u64>,
    /// Turns that took longer than their time, because the member was behind.
    pub late_turns: Cell<u64>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
