//! The sibling of a large drive settles for it. Its state after each window is kept, so that an
//! interrupted run goes on there, and others of the same inputs begin with the settled state.

use super::rewriting::{Rewriting, Rewritten};
use super::{PRECONDITION, Way};
use crate::cell::Control;
use crate::engine::drive::writing::Writes;
use crate::engine::level::Level;
use crate::error::LabError;
use crate::outcome::Settled;
use crate::states::StateKey;
use softflash_base::random::Rng;
use softflash_drive::{Drive, Sibling};
use softflash_workload::Scatter;

/// A sibling, and what is written to it.
pub(super) struct BySibling {
    pub(super) sibling: Sibling,
    /// The requests in the order of their popularity.
    pub(super) by_rank: Writes,
    /// How that order is scattered over the drive.
    pub(super) scatter: Scatter,
    /// The inputs that give the state.
    pub(super) key: StateKey,
}

impl BySibling {
    /// Settles the sibling, and brings the drive into its state.
    pub(super) fn settle(
        mut self,
        drive: &mut Drive,
        way: Way,
        run: &Rng,
        control: &Control,
    ) -> Result<Settled, LabError> {
        let rng = run.fork(PRECONDITION);
        let level = self.rewrite(way, &rng, control)?;
        let place = |offset_bytes| self.scatter.place(offset_bytes);
        let mut stages = rng.fork("stages");
        let mut source = self.by_rank.with_rng(stages.fork("writes"));
        self.sibling.expand_into(drive, &place, &mut |sibling| {
            advance(sibling, &mut source, &mut stages);
        });
        Ok(level.settled())
    }

    /// Rewrites until write amplification is level. After each window the sibling is restored from
    /// its saved state, whether that is kept or not: so the result is the same for a run that goes
    /// on and for one that begins there.
    fn rewrite(&mut self, way: Way, rng: &Rng, control: &Control) -> Result<Level, LabError> {
        let mut level = match self.find(control) {
            Some(level) => level,
            None => {
                way.begin(self.sibling.drive());
                way.level()
            }
        };
        while let Some(rewrites) = level.next_window() {
            let of_window = rng.fork(level.rewrites().to_le_bytes());
            let source = self.by_rank.clone().with_rng(of_window);
            let on_sibling = Rewritten::Sibling(&mut self.sibling);
            let mut rewriting = Rewriting::new(on_sibling, source, control);
            let whole = rewriting.window(&mut level, rewrites)?;
            let saved = self.sibling.save();
            let restored = self.sibling.restore(&saved);
            restored.ok_or_else(|| LabError::Simulation("a saved state is not one".to_owned()))?;
            if !whole {
                break;
            }
            if let Some(states) = control.states {
                states.keep(&self.key, &level, &saved)?;
            }
        }
        Ok(level)
    }

    /// The state that was kept last.
    fn find(&mut self, control: &Control) -> Option<Level> {
        let (level, saved) = control.states?.find(&self.key)?;
        self.sibling.restore(&saved)?;
        Some(level)
    }
}

/// Advances a sibling by up to a block of every write frontier.
fn advance(sibling: &mut Sibling, source: &mut Writes, rng: &mut Rng) {
    let page_bytes = u64::from(sibling.drive().page_bytes());
    for _ in 0..rng.below(sibling.drive().frontier_pages()) {
        Rewritten::Sibling(sibling).play(source.next(), page_bytes);
    }
}
