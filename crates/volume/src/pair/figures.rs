//! What a pair tells of itself.

use super::course::{Course, Member, partner};
use super::{Pair, comparing};
use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::pairing::{PairFigures, WindowState};
use softflash_base::cast;
use softflash_mapping::window::Window;
use std::cell::RefCell;
use std::rc::Rc;

impl Pair {
    /// Its state and its counts.
    pub fn figures(&self) -> PairFigures {
        let course = self.course.borrow();
        let of = |of: fn(&super::behind::Behind) -> u64| self.behind.iter().map(of).sum::<u64>();
        let counts = &self.figures;
        let (turns, longest_drain_ns) = counts.turns(&course);
        PairFigures {
            is_whole: !matches!(*course, Course::Alone { .. }),
            is_building: matches!(*course, Course::Alone { builds: true, .. }),
            behind_bytes: (0..2).map(|member| self.behind_bytes(member)).sum(),
            staged_bytes: of(|behind| behind.staged_bytes().0),
            most_staged_units: self.behind.iter().map(|it| it.most()).max().unwrap_or(0),
            turns,
            early_turns: counts.early_turns.get(),
            late_turns: counts.late_turns.get(),
            longest_drain_ns,
            operations: counts.operations.get(),
            staged_reads: counts.staged_reads.get(),
            healed_units: counts.healed.get(),
            lost_units: counts.lost.get(),
        }
    }

    /// The window of a member; `None` without windows.
    pub fn window_of(&self, member: Member) -> Option<WindowState> {
        let length_ns = self.window_ns.get()?;
        let course = self.course.borrow();
        let Course::Turns(windows) = &*course else { return None };
        let writer = course.lead();
        let now = self.member(writer).tasks.now().0;
        let left = windows.ends_at_ns().map_or(0, |ends| ends.saturating_sub(now));
        let (changed, most) = self.changed(writer);
        let room = self.behind[partner(writer)].staged_room();
        let ranges = u64::from(most.saturating_sub(changed) / 2) * cast::wide(MAPPING_UNIT_BYTES);
        Some(WindowState {
            is_deterministic: windows.of(member) == Window::Deterministic
                && !self.is_interrupted.get(),
            length_ns,
            left_ns: left,
            writes_left_bytes: room.min(ranges),
        })
    }

    /// The mapping units that both members have room for.
    pub fn usable_units(&self) -> Option<u64> {
        let whole = (0..2).filter(|&member| !self.is_lost(member));
        whole.map(|member| u64::from(self.member(member).space.usable())).min()
    }

    /// Whether a member has everything.
    pub fn has_everything(&self, core: &Shared) -> bool {
        self.place_of(core).is_some_and(|member| !self.is_lost(member))
    }

    /// Whether one of the members refuses writes that take more space.
    pub fn is_full(&self) -> bool {
        (0..2).any(|member| !self.is_lost(member) && self.member(member).is_full())
    }

    /// Compares the members once both have everything.
    pub async fn compare(self: &Rc<Self>) -> Result<Option<String>, VolumeError> {
        let exclusive = self.exclusive().await?;
        if matches!(*self.course.borrow(), Course::Alone { .. }) {
            return Ok(None);
        }
        let (pair, found) = (Rc::clone(self), Rc::new(RefCell::new(None)));
        let difference = Rc::clone(&found);
        let compare = async move {
            pair.at_level().await?;
            difference.replace(comparing::contents(&pair.members[0], &pair.members[1]));
            Ok(())
        };
        self.whole(exclusive, compare).await?;
        Ok(found.take())
    }

    /// Makes both members level, and the next mount fast. A checkpoint of both is the caller's.
    pub async fn settle(self: &Rc<Self>) -> Result<(), VolumeError> {
        let exclusive = self.exclusive().await?;
        let pair = Rc::clone(self);
        self.whole(exclusive, async move { pair.settle_now().await }).await
    }

    async fn settle_now(&self) -> Result<(), VolumeError> {
        if matches!(*self.course.borrow(), Course::Alone { .. }) {
            self.lead().tasks.flush().await?;
            return Ok(());
        }
        if matches!(*self.course.borrow(), Course::Turns(_)) {
            self.end_turns().await?;
        } else {
            self.level().await?;
            self.next_epoch(&[0, 1]).await?;
        }
        Ok(())
    }
}
