//! When write amplification is level.

use crate::outcome::Settled;
use serde::{Deserialize, Serialize};

/// The largest relative change of write amplification from a window to the next.
const BOUND: f64 = 0.01;

/// The least rewrites of a level state: the first ones lead out of a filled device.
const LEAST_REWRITES: u32 = 4;

/// The windows of rewrites so far, and what they have shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Rewrites in all windows.
    rewrites: u32,
    /// The most rewrites.
    most: u32,
    /// So many level windows in a row are enough; `None` if it always takes the most rewrites.
    enough: Option<u32>,
    /// The write amplification of the last window, and its change from the one before.
    waf: Option<f64>,
    change: Option<f64>,
    /// The last windows that were level, each with the one before.
    level_windows: u32,
}

impl Level {
    /// Before the first of at most so many rewrites. It ends earlier when `enough` windows in a row
    /// are level.
    pub fn new(most: u32, enough: Option<u32>) -> Level {
        Level { rewrites: 0, most, enough, waf: None, change: None, level_windows: 0 }
    }

    /// Rewrites so far.
    pub fn rewrites(&self) -> u32 {
        self.rewrites
    }

    /// The most rewrites.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// The rewrites of the next window; `None` if there is none. It is as long as all before it.
    pub fn next_window(&self) -> Option<u32> {
        let left = self.most.saturating_sub(self.rewrites);
        let is_level = self.enough.is_some_and(|enough| self.level_windows >= enough);
        let is_done = is_level && self.rewrites >= LEAST_REWRITES;
        (left > 0 && !is_done).then(|| self.rewrites.clamp(1, left))
    }

    /// A window of so many rewrites is over.
    pub fn add(&mut self, rewrites: u32, waf: f64) {
        self.rewrites += rewrites;
        self.change = self.waf.map(|before| waf / before - 1.0);
        self.waf = Some(waf);
        let is_level = self.change.is_some_and(|change| change.abs() <= BOUND);
        self.level_windows = if is_level { self.level_windows + 1 } else { 0 };
    }

    /// The result, if it ends here.
    pub fn settled(&self) -> Settled {
        let Level { rewrites, change, waf, level_windows, .. } = *self;
        Settled { rewrites, change, waf: waf.unwrap_or(0.0), is_level: level_windows > 0 }
    }
}
