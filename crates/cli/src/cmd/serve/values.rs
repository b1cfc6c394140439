//! Values of the options of `serve`, and of others with such values.

use crate::sizes::parse_size;
use softflash_store::Durability;
use softflash_store::value::MAX_VALUE_BYTES;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Address to listen on, if any.
#[derive(Debug, Clone, Copy)]
pub struct Listen(pub Option<SocketAddr>);

/// Parses an address, or `off`.
pub fn parse_listen(text: &str) -> Result<Listen, String> {
    match text {
        "off" => Ok(Listen(None)),
        address => parse_address(address).map(|address| Listen(Some(address))),
    }
}

/// A yes or no.
#[derive(Debug, Clone, Copy)]
pub struct Yes(pub bool);

/// Parses `yes` or `no`.
pub fn parse_yes(text: &str) -> Result<Yes, String> {
    match text {
        "yes" => Ok(Yes(true)),
        "no" => Ok(Yes(false)),
        _ => Err("write yes or no".to_owned()),
    }
}

/// Parses an address; names are resolved.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text
        .to_socket_addrs()
        .map_err(|error| format!("{error}; write HOST:PORT, as 127.0.0.1:6379"))?;
    addresses.next().ok_or_else(|| "the name has no address".to_owned())
}

/// Time in which the scrub reads all data once; none: it is off.
#[derive(Debug, Clone, Copy)]
pub struct ScrubPeriod(pub Option<Duration>);

/// Parses a time, or `off`.
pub fn parse_scrub(text: &str) -> Result<ScrubPeriod, String> {
    const SHORTEST: Duration = Duration::from_secs(60);
    let period = match text {
        "off" => return Ok(ScrubPeriod(None)),
        time => parse_time(time)
            .map_err(|_| format!("`{text}` is neither `off` nor a time such as `7d`"))?,
    };
    match period < SHORTEST {
        true => Err(format!("`{text}` is less than a minute, the shortest period of the scrub")),
        false => Ok(ScrubPeriod(Some(period))),
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

/// Parses the size of the longest value: from 1 MiB, as in Redis, to what a store takes.
pub fn parse_longest_value(text: &str) -> Result<usize, String> {
    const LEAST: usize = 1 << 20;
    let bytes = usize::try_from(parse_size(text)?).unwrap_or(usize::MAX);
    match (LEAST..=MAX_VALUE_BYTES).contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("`{text}` is not from 1MiB to 512MiB")),
    }
}

/// Parses `flash` or a time.
pub fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "flash" => Ok(Durability::Flash),
        time => match parse_time(time) {
            Ok(interval) if interval.is_zero() => Ok(Durability::Flash),
            Ok(interval) => Ok(Durability::Interval(interval)),
            Err(_) => {
                Err(format!("`{text}` is neither `flash` nor a time such as `1s` or `100ms`"))
            }
        },
    }
}

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
