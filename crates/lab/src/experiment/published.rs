//! What was published: a figure, or a bound of one.

use serde::{Deserialize, Serialize};

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged, expecting = "write a number, `{ at_least = NUMBER }` or `{ at_most = NUMBER }`")]
pub enum Published {
    /// So much.
    Figure(f64),
    /// So much or more.
    AtLeast {
        /// So much.
        at_least: f64,
    },
    /// So much or less.
    AtMost {
        /// So much.
        at_most: f64,
    },
}

/// On which side of what was published ours should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// So much or more.
    AtLeast,
    /// So much or less.
    AtMost,
}

impl Published {
    /// The number.
    pub fn value(self) -> f64 {
        match self {
            Published::Figure(value)
            | Published::AtLeast { at_least: value }
            | Published::AtMost { at_most: value } => value,
        }
    }

    /// Which bound it is, if it is one.
    pub fn bound(self) -> Option<Bound> {
        match self {
            Published::Figure(_) => None,
            Published::AtLeast { .. } => Some(Bound::AtLeast),
            Published::AtMost { .. } => Some(Bound::AtMost),
        }
    }
}

impl Bound {
    /// Whether ours is on the right side.
    pub fn holds(self, ours: f64, published: f64) -> bool {
        match self {
            Bound::AtLeast => ours >= published,
            Bound::AtMost => ours <= published,
        }
    }

    /// As it is read out before the number.
    pub fn words(self) -> &'static str {
        match self {
            Bound::AtLeast => "at least",
            Bound::AtMost => "at most",
        }
    }
}
