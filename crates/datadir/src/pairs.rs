//! Pairs of sets: each has a copy of the same volumes.

use crate::set_table::SetError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Two mapped sets with a copy each of the same volumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairOfSets {
    /// The number of the first set.
    pub first: u16,
    /// The number of the second set.
    pub second: u16,
    /// The epoch of the table with which the pair came into being.
    pub since: u32,
    /// The time for which one set takes writes while the other one only reads, in milliseconds;
    /// omitted where both take every write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
}

impl PairOfSets {
    /// Whether a set is one of the pair.
    pub fn includes(&self, set: u16) -> bool {
        self.first == set || self.second == set
    }

    /// The other set.
    pub fn partner_of(&self, set: u16) -> u16 {
        if self.first == set { self.second } else { self.first }
    }

    /// A number that no other pair of the directory has.
    pub fn number(&self) -> u64 {
        let sets = u64::from(self.first) << 16 | u64::from(self.second);
        u64::from(self.since) << 32 | sets
    }

    /// The time for which a set takes writes.
    pub fn window(&self) -> Option<Duration> {
        self.window_ms.map(|ms| Duration::from_millis(ms.into()))
    }
}

/// Parses the length of windows: `none`, or a time such as `100ms` or `2s`, in milliseconds.
///
/// # Errors
/// [`SetError::BadWindow`].
pub fn parse_window(text: &str) -> Result<Option<u32>, SetError> {
    let (digits, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        _ if text.eq_ignore_ascii_case("none") => return Ok(None),
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1000),
        (None, None) => ("", 0),
    };
    let ms = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(scale));
    match ms.filter(|ms| (1..=MOST_WINDOW_MS).contains(ms)) {
        Some(ms) => Ok(Some(ms)),
        None => Err(SetError::BadWindow { text: text.to_owned() }),
    }
}

/// The longest window, in milliseconds: what is written in it has one copy until its end.
pub const MOST_WINDOW_MS: u32 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_with_a_unit_or_none() {
        for (text, ms) in [("100ms", Some(100)), ("2s", Some(2000)), ("60s", Some(60_000))] {
            assert_eq!(parse_window(text), Ok(ms));
        }
        assert_eq!((parse_window("none"), parse_window("NONE")), (Ok(None), Ok(None)));
        for text in ["", "100", "0ms", "61s", "-1ms", "1.5s", "ms", "s", "often", "4294968s"] {
            let error = parse_window(text).unwrap_err().to_string();
            assert!(error.contains("1ms to 60s, or none"), "{error}");
        }
    }
}
