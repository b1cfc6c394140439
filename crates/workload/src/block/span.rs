//! The span: the accessed part of a device.

use crate::error::{Problem, count, some_share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest capacity: leaves room above for rounding up.
const MAX_CAPACITY_BYTES: u64 = 1 << 62;

/// The length of the accessed part of the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// A share of the capacity, above 0 and at most 1; 1 is all of it from `begin` on.
    Share(f64),
    /// A number of bytes.
    Bytes(u64),
}

impl Default for Span {
    fn default() -> Span {
        Span::Share(1.0)
    }
}

impl Span {
    pub(crate) fn validate(&self) -> Result<(), Problem> {
        match *self {
            Span::Share(value) => some_share("span.share", value),
            Span::Bytes(0) => Err(Problem::Zero { field: "span.bytes" }),
            Span::Bytes(_) => Ok(()),
        }
    }

    /// The span in bytes on a device of `capacity_bytes`, from `begin_bytes` on, which is below
    /// the capacity.
    pub(crate) fn of(&self, capacity_bytes: u64, begin_bytes: u64) -> Result<u64, Problem> {
        count("the capacity", capacity_bytes, MAX_CAPACITY_BYTES)?;
        let left_bytes = capacity_bytes.saturating_sub(begin_bytes);
        let span_bytes = match *self {
            Span::Share(1.0) => left_bytes,
            Span::Share(share) => ((capacity_bytes as f64 * share) as u64).min(capacity_bytes),
            Span::Bytes(span_bytes) => span_bytes,
        };
        match span_bytes <= left_bytes {
            true => Ok(span_bytes),
            false => Err(Problem::SpanBeyond { span_bytes, begin_bytes, capacity_bytes }),
        }
    }
}
