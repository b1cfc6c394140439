//! Values of options.

use crate::sizes::parse_size;
use std::time::Duration;

/// Parses a time such as `100ms`, `1s` or `5m`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a time; write `100ms`, `1s` or `5m`"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        "d" => Ok(Duration::from_secs(number.saturating_mul(86_400))),
        _ => Err(format!("`{text}` has no unit; write `100ms`, `1s` or `5m`")),
    }
}

/// Parses the interval of a durability: a time, or none for `flash`.
pub fn parse_interval(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "flash" => Ok(None),
        time => match parse_time(time) {
            Ok(interval) => Ok(Some(interval).filter(|interval| !interval.is_zero())),
            Err(_) => {
                Err(format!("`{text}` is neither `flash` nor a time such as `1s` or `100ms`"))
            }
        },
    }
}

/// The least size of a separated value; none: all values are in the tree.
#[derive(Debug, Clone, Copy)]
pub struct ValueThreshold(pub Option<usize>);

/// Parses a size of at least a kibibyte, or `off`.
pub fn parse_value_threshold(text: &str) -> Result<ValueThreshold, String> {
    const LEAST: u64 = 1 << 10;
    match text {
        "off" => Ok(ValueThreshold(None)),
        size => match parse_size(size)? {
            bytes if bytes < LEAST => {
                Err(format!("`{text}` is less than 1KiB, the least size of a separated value"))
            }
            bytes => Ok(ValueThreshold(Some(usize::try_from(bytes).unwrap_or(usize::MAX)))),
        },
    }
}
