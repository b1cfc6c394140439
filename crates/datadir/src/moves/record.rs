//! The record of a move in the manifest. It decides which of two sets has the volumes.

use serde::{Deserialize, Serialize};

/// The `[unfinished_move]` table of the manifest: volumes of which two sets hold copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedMove {
    /// The volumes.
    pub volumes: Vec<String>,
    /// The number of the set that they leave.
    pub from: u16,
    /// The number of the set that they come to.
    pub to: u16,
    /// Whether the second set has them by now. What the other one holds counts for nothing.
    pub has_arrived: bool,
    /// The version of the directory when the move is finished.
    pub format_version: u32,
}

impl UnfinishedMove {
    /// The set whose copies count for nothing.
    pub fn leftover_set(&self) -> u16 {
        if self.has_arrived { self.from } else { self.to }
    }

    /// The reason why it cannot be the one of a directory whose version during a move is this, if
    /// there is one.
    pub(crate) fn problem(&self, version_of_moves: u32) -> Option<String> {
        (self.format_version >= version_of_moves || self.from == self.to)
            .then(|| "[unfinished_move] is no move between two sets".to_owned())
    }
}
