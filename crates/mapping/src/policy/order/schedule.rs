//! The orders of the operations of a die, and their text.

use crate::policy::text::{PolicyError, number, with_number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::AccessKind;
use std::fmt;
use std::str::FromStr;

/// The order of the operations of a die. In text: `fifo`, `reads-first`, `weighted-fair:3:1`,
/// `deadline:5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(!try_from, !into, rename_all = "kebab-case")]
pub enum Schedule {
    /// Host commands in the order of their arrival.
    #[default]
    Fifo,
    /// Reads before programs.
    ReadsFirst,
    /// Reads and programs share the die's time.
    #[schemars(extend("form" = "weighted-fair:R:W"))]
    WeightedFair(#[schemars(with = "String")] Shares),
    /// The earliest deadline first: reads are due after so many milliseconds, programs after ten
    /// times as many.
    #[schemars(extend("form" = "deadline:MS"))]
    Deadline(u32),
}

/// The shares of reads and of writes, as weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// The weight of reads.
    pub reads: u32,
    /// The weight of writes.
    pub writes: u32,
}

impl Shares {
    pub(super) fn of(self, kind: AccessKind) -> u32 {
        if kind == AccessKind::Read { self.reads } else { self.writes }
    }
}

impl Schedule {
    /// Whether it ranks operations when they arrive, as [`Waiting`](super::Waiting) does.
    pub fn ranks(self) -> bool {
        matches!(self, Schedule::WeightedFair(_) | Schedule::Deadline(_))
    }
}

impl FromStr for Schedule {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Schedule, PolicyError> {
        match (text, with_number(text)) {
            ("fifo", _) => Ok(Schedule::Fifo),
            ("reads-first", _) => Ok(Schedule::ReadsFirst),
            (_, Some(("deadline", read_ms))) => Ok(Schedule::Deadline(read_ms)),
            _ => match text.strip_prefix("weighted-fair:").and_then(shares) {
                Some(shares) => Ok(Schedule::WeightedFair(shares)),
                None => Err(PolicyError::Schedule(text.to_owned())),
            },
        }
    }
}

/// Two weights, `3:1`.
fn shares(text: &str) -> Option<Shares> {
    let (reads, writes) = text.split_once(':')?;
    Some(Shares { reads: number(reads)?, writes: number(writes)? })
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Fifo => f.write_str("fifo"),
            Schedule::ReadsFirst => f.write_str("reads-first"),
            Schedule::WeightedFair(Shares { reads, writes }) => {
                write!(f, "weighted-fair:{reads}:{writes}")
            }
            Schedule::Deadline(read_ms) => write!(f, "deadline:{read_ms}"),
        }
    }
}

impl TryFrom<String> for Schedule {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<Schedule, PolicyError> {
        text.parse()
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> String {
        schedule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_schedule_gives_the_schedule() {
        let shares = Shares { reads: 3, writes: 1 };
        for (schedule, text) in [
            (Schedule::Fifo, "fifo"),
            (Schedule::ReadsFirst, "reads-first"),
            (Schedule::WeightedFair(shares), "weighted-fair:3:1"),
            (Schedule::Deadline(5), "deadline:5"),
        ] {
            assert_eq!((schedule.to_string().as_str(), text.parse()), (text, Ok(schedule)));
        }
        for text in [
            "",
            "deadline",
            "deadline:0",
            "weighted-fair:3",
            "weighted-fair:0:1",
            "weighted-fair:1:2:3",
        ] {
            let error = text.parse::<Schedule>().unwrap_err();
            assert_eq!(error, PolicyError::Schedule(text.to_owned()));
            assert!(error.to_string().contains("deadline:MILLISECONDS"), "{error}");
        }
    }
}
