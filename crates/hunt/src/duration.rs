//! Durations on the command line.

use std::time::Duration;

/// Parses 60s, 10m or 2h.
///
/// # Errors
/// The text is not a duration; the error says how to write one.
pub fn parsed(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write 60s, 10m or 2h");
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}
