//! The beginning of the span: the place of the accessed part on a device.

use crate::error::{Problem, share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the accessed part of the capacity begins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Begin {
    /// A share of the capacity, from 0 to below 1, rounded down to the alignment of requests.
    Share(f64),
    /// A number of bytes.
    Bytes(u64),
}

impl Default for Begin {
    fn default() -> Begin {
        Begin::Bytes(0)
    }
}

impl Begin {
    /// Whether it is the default, the beginning of the device.
    pub(crate) fn is_zero(&self) -> bool {
        *self == Begin::default()
    }

    pub(crate) fn validate(&self) -> Result<(), Problem> {
        match *self {
            Begin::Share(value) => share("begin.share", value),
            Begin::Bytes(_) => Ok(()),
        }
    }

    /// The offset on a device of `capacity_bytes`, for requests aligned to `align_bytes`, which is
    /// above 0.
    pub(crate) fn of(&self, capacity_bytes: u64, align_bytes: u32) -> Result<u64, Problem> {
        let begin_bytes = match *self {
            Begin::Share(share) => {
                let exact = (capacity_bytes as f64 * share) as u64;
                exact - exact % u64::from(align_bytes.max(1))
            }
            Begin::Bytes(begin_bytes) => begin_bytes,
        };
        match begin_bytes < capacity_bytes {
            true => Ok(begin_bytes),
            false => Err(Problem::BeginBeyond { begin_bytes, capacity_bytes }),
        }
    }
}
