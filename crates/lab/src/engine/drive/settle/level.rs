//! When write amplification is level.

use crate::outcome::Settled;
use serde::{Deserialize, Serialize};

/// The largest relative change of write amplification from a window to the next, twice in a row;
/// once if the last window is the longest.
const BOUND: f64 = 0.01;

/// The windows of rewrites so far, and what they have shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    /// Rewrites in all windows.
    rewrites: u32,
    /// The most rewrites.
    most: u32,
    /// Whether it ends when write amplification is level.
    ends_early: bool,
    /// The write amplification of the last window, and its change from the one before.
    waf: Option<f64>,
    change: Option<f64>,
    /// Whether the last two windows, and the last three, were level.
    is_level: bool,
    was_level: bool,
}

impl Level {
    pub(super) fn new(most: u32, ends_early: bool) -> Level {
        let (waf, change) = (None, None);
        Level { rewrites: 0, most, ends_early, waf, change, is_level: false, was_level: false }
    }

    /// Rewrites so far.
    pub(super) fn rewrites(&self) -> u32 {
        self.rewrites
    }

    /// The most rewrites.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// The rewrites of the next window; `None` if there is none. It is as long as all before it.
    pub(super) fn next_window(&self) -> Option<u32> {
        let left = self.most.saturating_sub(self.rewrites);
        let is_done = self.ends_early && self.is_level && self.was_level;
        (left > 0 && !is_done).then(|| self.rewrites.clamp(1, left))
    }

    /// A window of so many rewrites is over.
    pub(super) fn add(&mut self, rewrites: u32, waf: f64) {
        self.rewrites += rewrites;
        self.change = self.waf.map(|before| waf / before - 1.0);
        self.waf = Some(waf);
        self.was_level = self.is_level;
        self.is_level = self.change.is_some_and(|change| change.abs() <= BOUND);
    }

    /// The result, if it ends here.
    pub(super) fn settled(&self) -> Settled {
        let Level { rewrites, change, waf, is_level, .. } = *self;
        Settled { rewrites, change, waf: waf.unwrap_or(0.0), is_level }
    }
}
