//! The keys that clients read and change.

use super::{Taken, Tapes};
use crate::command::{Effects, KeyList};
use crate::error::Result;
use bytes::Bytes;
use softflash_base::checksum::hash64;
use softflash_store::{Entry, Store};
use std::collections::VecDeque;
use std::fmt::Write;

/// Kind of access to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The value was read; none: the key did not exist.
    Read(Option<u32>),
    /// The key was written.
    Write(u32),
    /// The key was removed.
    Delete,
    /// All keys were removed.
    Clear,
}

/// An access to one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    access: Access,
    key_bytes: u32,
    key_hash: u64,
}

impl Event {
    fn of(key: &[u8], access: Access) -> Event {
        Event { access, key_bytes: short(key.len()), key_hash: hash64(key) }
    }
}

/// The request limits keep this length below 4 GiB.
fn short(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// All active recordings of keys.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    tapes: Tapes<Tape>,
}

/// Buffered events of one recorder.
#[derive(Debug)]
struct Tape {
    capacity: usize,
    events: VecDeque<(u64, Event)>,
    dropped: u64,
    last_ns: u64,
}

impl Recordings {
    /// Starts a recording for a client, or restarts its recording.
    pub fn start(&self, client: u64, capacity: usize) -> Result<()> {
        let tape = Tape {
            capacity,
            // Allocated in full, so that no client waits while it grows.
            events: VecDeque::with_capacity(capacity),
            dropped: 0,
            last_ns: 0,
        };
        self.tapes.start(client, tape)
    }

    /// Stops a client's recording, if it has one.
    pub fn stop(&self, client: u64) {
        self.tapes.stop(client);
    }

    /// Removes and returns the oldest events of a client's recording, if it has one.
    pub fn take(&self, client: u64, count: usize) -> Option<Taken> {
        let (events, dropped) = self.tapes.of(client, |tape| {
            let count = count.min(tape.events.len());
            let events: Vec<(u64, Event)> = tape.events.drain(..count).collect();
            (events, std::mem::take(&mut tape.dropped))
        })?;
        Some(Taken { lines: lines(&events), dropped })
    }

    /// Whether there is any recording.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.tapes.is_on()
    }

    /// Records the reads of a read-only command.
    #[inline]
    pub fn tell_reads(
        &self,
        store: &Store,
        keys: impl FnOnce() -> KeyList,
        entries: &[Option<Entry>],
    ) {
        if self.is_on() {
            self.tell(store, &reads(&keys(), entries));
        }
    }

    /// Records events with the current time.
    pub fn tell(&self, store: &Store, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let now_ns = store.runtime().now().0;
        self.tapes.for_each(|tape| tape.write(now_ns, events));
    }
}

impl Tape {
    fn write(&mut self, now_ns: u64, events: &[Event]) {
        // Another thread may have read its clock earlier, but appended later.
        self.last_ns = self.last_ns.max(now_ns);
        let room = self.capacity.saturating_sub(self.events.len()).min(events.len());
        let (kept, dropped) = events.split_at(room);
        self.events.extend(kept.iter().map(|event| (self.last_ns, *event)));
        self.dropped += dropped.len() as u64;
    }
}

/// The reads of a read-only command.
pub(crate) fn reads(keys: &[Bytes], entries: &[Option<Entry>]) -> Vec<Event> {
    let found = |entry: &Option<Entry>| entry.as_ref().map(|entry| short(entry.value.len()));
    let events = keys.iter().zip(entries);
    events.map(|(key, entry)| Event::of(key, Access::Read(found(entry)))).collect()
}

/// The changes of a command.
pub(crate) fn changes(effects: &Effects) -> Vec<Event> {
    let clear = effects.clear.then(|| Event::of(b"", Access::Clear));
    let write = |(key, entry): &(Bytes, Option<Entry>)| {
        let access = match entry {
            Some(entry) => Access::Write(short(entry.value.len())),
            None => Access::Delete,
        };
        Event::of(key, access)
    };
    clear.into_iter().chain(effects.writes.iter().map(write)).collect()
}

/// One line per event: nanoseconds, kind, hash of the key, length of key and of value.
fn lines(events: &[(u64, Event)]) -> String {
    let mut lines = String::with_capacity(events.len() * 48);
    for (at_ns, Event { access, key_bytes, key_hash }) in events {
        let (kind, value) = match *access {
            Access::Read(value) => ("read", value),
            Access::Write(value) => ("write", Some(value)),
            Access::Delete => ("delete", None),
            Access::Clear => ("clear", None),
        };
        // Writing to a string does not fail.
        let _ = write!(lines, "{at_ns} {kind} {key_hash:016x} {key_bytes} ");
        let _ = match value {
            Some(bytes) => writeln!(lines, "{bytes}"),
            None => writeln!(lines, "-"),
        };
    }
    lines
}
