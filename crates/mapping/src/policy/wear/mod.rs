//! Wear policies: which free block of a group is used next, and which block is collected because
//! its data are cold while others wear out.

mod dynamic;
mod static_threshold;
#[cfg(test)]
mod tests;
mod view;

use crate::policy::text::{PolicyError, with_number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub use view::{FreeView, WearView};

/// How the erases of a group are levelled. In text: `fifo`, `dynamic`, `static:20`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum WearPolicy {
    /// Free blocks in the order of their erases (round-robin); no data are moved.
    #[default]
    Fifo,
    /// The free block with the fewest erases; no data are moved.
    Dynamic,
    /// As [`Dynamic`](WearPolicy::Dynamic), and the block with the fewest erases is collected when
    /// another has more than so many erases more.
    #[schemars(extend("form" = "static:N"))]
    Static(u32),
}

impl FromStr for WearPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<WearPolicy, PolicyError> {
        match (text, with_number(text)) {
            ("fifo", _) => Ok(WearPolicy::Fifo),
            ("dynamic", _) => Ok(WearPolicy::Dynamic),
            (_, Some(("static", number))) => Ok(WearPolicy::Static(number)),
            _ => Err(PolicyError::Wear(text.to_owned())),
        }
    }
}

impl fmt::Display for WearPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WearPolicy::Fifo => f.write_str("fifo"),
            WearPolicy::Dynamic => f.write_str("dynamic"),
            WearPolicy::Static(number) => write!(f, "static:{number}"),
        }
    }
}

impl TryFrom<String> for WearPolicy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<WearPolicy, PolicyError> {
        text.parse()
    }
}

impl From<WearPolicy> for String {
    fn from(policy: WearPolicy) -> String {
        policy.to_string()
    }
}

/// The free block to use, counted from the front; `None` if there is none.
#[inline]
pub fn choose_free(policy: WearPolicy, view: &FreeView<'_>) -> Option<usize> {
    match policy {
        WearPolicy::Fifo => (!view.free.is_empty()).then_some(0),
        WearPolicy::Dynamic | WearPolicy::Static(_) => dynamic::choose(view),
    }
}

/// The block to collect for the sake of wear, counted in its group; `None` if wear is level enough.
#[inline]
pub fn level(policy: WearPolicy, view: &WearView<'_>) -> Option<u32> {
    match policy {
        WearPolicy::Fifo | WearPolicy::Dynamic => None,
        WearPolicy::Static(threshold) => static_threshold::level(view, threshold),
    }
}
