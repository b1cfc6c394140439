//! Client of FLASH.RECORD: the recorded events of a server.

use crate::resp::{Client, Reply, RespError};
use std::str;

/// Events per request.
pub const BATCH_EVENTS: u32 = 4096;

const COMMAND: &str = "FLASH.RECORD READ";

/// Kind of access to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A value of this length was read; none: the key did not exist.
    Read(Option<u64>),
    /// A value of this length was written.
    Write(u64),
    /// The key was removed.
    Delete,
    /// All keys were removed.
    Clear,
}

/// An access to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time on the server's clock.
    pub at_ns: u64,
    /// Hash of the key.
    pub key: u64,
    /// Kind of access.
    pub access: Access,
}

/// The events of one reply.
#[derive(Debug)]
pub struct Batch {
    /// In order of time.
    pub events: Vec<Event>,
    /// Events that the server has dropped since the previous reply.
    pub dropped: u64,
}

/// Starts a recording with a buffer of `buffer` events.
pub fn start(client: &mut Client, buffer: u32) -> Result<(), RespError> {
    let capacity = buffer.to_string();
    client.ask(&[b"FLASH.RECORD", b"START", b"CAPACITY", capacity.as_bytes()]).map(drop)
}

/// Takes recorded events.
pub fn take(client: &mut Client, count: u32) -> Result<Batch, RespError> {
    let count = count.to_string();
    let reply = client.ask(&[b"FLASH.RECORD", b"READ", b"COUNT", count.as_bytes()])?;
    batch(&reply).ok_or_else(|| client.unexpected(COMMAND))
}

fn batch(reply: &Reply) -> Option<Batch> {
    let Reply::Array(items) = reply else { return None };
    let [Reply::Integer(dropped), Reply::Bulk(Some(lines))] = items.as_slice() else { return None };
    let lines = str::from_utf8(lines).ok()?;
    let events = lines.lines().map(event).collect::<Option<Vec<Event>>>()?;
    Some(Batch { events, dropped: u64::try_from(*dropped).ok()? })
}

/// `nanoseconds kind hash key-bytes value-bytes`
fn event(line: &str) -> Option<Event> {
    let mut words = line.split(' ');
    let at_ns = words.next()?.parse().ok()?;
    let kind = words.next()?;
    let key = u64::from_str_radix(words.next()?, 16).ok()?;
    let _key_bytes = words.next()?;
    let value = words.next()?;
    let value = if value == "-" { None } else { Some(value.parse().ok()?) };
    let access = match (kind, value) {
        ("read", value) => Access::Read(value),
        ("write", Some(bytes)) => Access::Write(bytes),
        ("delete", _) => Access::Delete,
        ("clear", _) => Access::Clear,
        _ => return None,
    };
    Some(Event { at_ns, key, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let read = |line: &str| event(line).map(|event| (event.at_ns, event.key, event.access));
        assert_eq!(read("5 read ff 3 10"), Some((5, 255, Access::Read(Some(10)))));
        assert_eq!(read("5 read ff 3 -"), Some((5, 255, Access::Read(None))));
        assert_eq!(read("6 write 0a 3 0"), Some((6, 10, Access::Write(0))));
        assert_eq!(read("7 delete 01 3 -"), Some((7, 1, Access::Delete)));
        assert_eq!(read("7 clear 01 0 -"), Some((7, 1, Access::Clear)));
        for bad in ["", "5", "5 read", "5 read xyz 3 1", "5 write 01 3 -", "5 push 01 3 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
