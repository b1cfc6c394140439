//! Values of the options of `serve`, and of others with such values.

use softflash_console::sizes::parse_size;
use softflash_console::values::{parse_interval, parse_time};
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
    Ok(parse_interval(text)?.map_or(Durability::Flash, Durability::Interval))
}
