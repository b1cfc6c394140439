//! Client of FLASH.RECORD: the recorded events of a server.

use super::source::Source;
use crate::client::{Client, Reply, RespError};
use std::str;

/// Events per request.
pub const BATCH_EVENTS: u32 = 4096;

const COMMAND: &str = "FLASH.RECORD READ";

/// The events of one reply.
#[derive(Debug)]
pub struct Batch<E> {
    /// In order of time.
    pub events: Vec<E>,
    /// Events that the server has dropped since the previous reply.
    pub dropped: u64,
}

/// Starts a recording of a source with a buffer of `buffer` events.
pub fn start<S: Source>(client: &mut Client, source: &S, buffer: u32) -> Result<(), RespError> {
    let capacity = buffer.to_string();
    let mut words: Vec<&[u8]> = vec![b"FLASH.RECORD", b"START", b"CAPACITY", capacity.as_bytes()];
    if let Some(volume) = source.volume() {
        words.extend([&b"VOLUME"[..], volume.as_bytes()]);
    }
    client.ask(&words).map(drop)
}

/// Takes recorded events.
pub fn take<S: Source>(client: &mut Client, count: u32) -> Result<Batch<S::Event>, RespError> {
    let count = count.to_string();
    ask::<S>(client, &[b"FLASH.RECORD", b"READ", b"COUNT", count.as_bytes()])
}

/// Takes the last events, of a buffer of `buffer` events; also those of requests under way.
pub fn take_last<S: Source>(
    client: &mut Client,
    buffer: u32,
) -> Result<Batch<S::Event>, RespError> {
    let count = buffer.to_string();
    ask::<S>(client, &[b"FLASH.RECORD", b"READ", b"COUNT", count.as_bytes(), b"ALL"])
}

fn ask<S: Source>(client: &mut Client, words: &[&[u8]]) -> Result<Batch<S::Event>, RespError> {
    let reply = client.ask(words)?;
    batch::<S>(&reply).ok_or_else(|| client.unexpected(COMMAND))
}

fn batch<S: Source>(reply: &Reply) -> Option<Batch<S::Event>> {
    let Reply::Array(items) = reply else { return None };
    let [Reply::Integer(dropped), Reply::Bulk(Some(lines))] = items.as_slice() else { return None };
    let lines = str::from_utf8(lines).ok()?;
    let events = lines.lines().map(S::event).collect::<Option<Vec<S::Event>>>()?;
    Some(Batch { events, dropped: u64::try_from(*dropped).ok()? })
}
