//! The state of a device before a measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The state of a device before a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Precondition {
    /// Erased, never written.
    None,
    /// All of the capacity written once, in order.
    #[default]
    Fill,
    /// Filled, then overwritten at random.
    #[schemars(extend("form" = "overwrite:TIMES"))]
    Overwrite {
        /// How many times the capacity is written at random.
        times: u32,
    },
    /// The steady state of the workload's writes: filled, then rewritten by them until write
    /// amplification is level. For uniform writes of single pages with `greedy` or `fifo`, the
    /// state is that of theory.
    #[schemars(extend("form" = "steady[:REWRITES]"))]
    Steady {
        /// Exactly so many rewrites instead, from a filled drive.
        rewrites: Option<u32>,
    },
    /// Filled, then written at random, 4 KiB at a time, for as long.
    #[serde(rename = "random-4k")]
    #[schemars(extend("form" = "random-4k:Ns"))]
    Random4k {
        /// Virtual time of the writes, in seconds.
        seconds: u32,
    },
}

/// Not the name of a state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no state of a device; it is none, fill, overwrite:TIMES (such as overwrite:1), steady, \
     steady:REWRITES (such as steady:16) or random-4k:SECONDS (such as random-4k:3600s)"
)]
pub struct NoSuchPrecondition(pub String);

impl Precondition {
    /// The steady state, by as many rewrites as it takes.
    pub const STEADY: Precondition = Precondition::Steady { rewrites: None };
}

impl FromStr for Precondition {
    type Err = NoSuchPrecondition;

    fn from_str(text: &str) -> Result<Precondition, NoSuchPrecondition> {
        match text {
            "none" => Ok(Precondition::None),
            "fill" => Ok(Precondition::Fill),
            "steady" => Ok(Precondition::STEADY),
            _ => with_number(text).ok_or_else(|| NoSuchPrecondition(text.to_owned())),
        }
    }
}

/// A state with a number.
fn with_number(text: &str) -> Option<Precondition> {
    let (state, number) = text.split_once(':')?;
    match state {
        "overwrite" => number.parse().ok().map(|times| Precondition::Overwrite { times }),
        "steady" => {
            let rewrites = number.parse().ok().filter(|&rewrites| rewrites > 0);
            rewrites.map(|rewrites| Precondition::Steady { rewrites: Some(rewrites) })
        }
        "random-4k" => {
            let seconds = number.strip_suffix('s')?.parse().ok()?;
            Some(Precondition::Random4k { seconds })
        }
        _ => None,
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precondition::None => f.write_str("none"),
            Precondition::Fill => f.write_str("fill"),
            Precondition::Overwrite { times } => write!(f, "overwrite:{times}"),
            Precondition::Steady { rewrites: None } => f.write_str("steady"),
            Precondition::Steady { rewrites: Some(rewrites) } => write!(f, "steady:{rewrites}"),
            Precondition::Random4k { seconds } => write!(f, "random-4k:{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_read_as_it_is_printed() {
        let overwrite = Precondition::Overwrite { times: 3 };
        let random = Precondition::Random4k { seconds: 3600 };
        let rewritten = Precondition::Steady { rewrites: Some(16) };
        let plain = [Precondition::None, Precondition::Fill, Precondition::STEADY];
        for state in plain.into_iter().chain([overwrite, rewritten, random]) {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        for wrong in
            ["", "Fill", "overwrite", "overwrite:", "overwrite:-1", "random-4k:9", "steady:0"]
        {
            let error = wrong.parse::<Precondition>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{wrong}'")) && error.contains("steady"), "{error}");
        }
    }
}
