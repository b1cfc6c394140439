//! What clients read and change, told to whoever records it: FLASH.RECORD.
//!
//! A recorder takes what has gathered when it likes. What it does not take in time is dropped and
//! counted, so that no client ever waits for it; while nobody records, a command costs one branch.

use crate::command::{Effects, KeyList};
use crate::error::{CommandError, Result};
use crate::shared::lock::lock;
use bytes::Bytes;
use softflash_base::checksum::hash64;
use softflash_store::{Entry, Store};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Events that a recording keeps for its recorder unless that asks for another number.
pub(crate) const DEFAULT_CAPACITY: usize = 1 << 16;
/// The most that it can ask for: their memory is not part of the server's budget.
pub(crate) const MAX_CAPACITY: usize = 1 << 18;
/// Recordings at a time, for the same reason.
const MAX_RECORDINGS: usize = 4;

const NOT_RECORDING: CommandError =
    CommandError::Known("ERR this connection does not record; begin with FLASH.RECORD START");

/// What was done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Its value was read; none where there was no such key.
    Read(Option<u32>),
    /// It was given a value.
    Write(u32),
    /// It was removed.
    Delete,
    /// All keys were removed.
    Clear,
}

/// One key, read or changed.
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

/// A length that the limits of requests keep below 4 GiB.
fn short(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// All recordings that are under way, by the number of the client that records.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    /// How many there are, for the look that every command takes.
    count: AtomicUsize,
    tapes: Mutex<BTreeMap<u64, Tape>>,
}

/// What waits for one recorder.
#[derive(Debug)]
struct Tape {
    capacity: usize,
    events: VecDeque<(u64, Event)>,
    dropped: u64,
    last_ns: u64,
}

/// What a recorder takes at a time.
#[derive(Debug)]
pub(crate) struct Taken {
    events: Vec<(u64, Event)>,
    /// Events dropped since it last took some.
    pub dropped: u64,
}

impl Recordings {
    /// Begins a recording for a client, or begins its recording anew.
    pub fn start(&self, client: u64, capacity: usize) -> Result<()> {
        let tape = Tape {
            capacity,
            // At once, so that no client's command waits while it grows.
            events: VecDeque::with_capacity(capacity),
            dropped: 0,
            last_ns: 0,
        };
        let mut tapes = lock(&self.tapes);
        if tapes.len() >= MAX_RECORDINGS && !tapes.contains_key(&client) {
            return Err(CommandError::Known(
                "ERR too many connections record; end one with FLASH.RECORD STOP",
            ));
        }
        tapes.insert(client, tape);
        self.count.store(tapes.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Ends a client's recording, if it has one.
    pub fn stop(&self, client: u64) {
        if self.is_on() {
            let mut tapes = lock(&self.tapes);
            tapes.remove(&client);
            self.count.store(tapes.len(), Ordering::Relaxed);
        }
    }

    /// Takes the oldest events of a client's recording.
    pub fn take(&self, client: u64, count: usize) -> Result<Taken> {
        let mut tapes = lock(&self.tapes);
        let tape = tapes.get_mut(&client).ok_or(NOT_RECORDING)?;
        let count = count.min(tape.events.len());
        let events = tape.events.drain(..count).collect();
        Ok(Taken { events, dropped: std::mem::take(&mut tape.dropped) })
    }

    /// Whether anybody records.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Tells what a command that only reads has found.
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

    /// Tells events that have happened just now.
    pub fn tell(&self, store: &Store, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let now_ns = store.runtime().now().0;
        lock(&self.tapes).values_mut().for_each(|tape| tape.write(now_ns, events));
    }
}

impl Tape {
    fn write(&mut self, now_ns: u64, events: &[Event]) {
        // Another thread may have read its clock before this one, and written after it.
        self.last_ns = self.last_ns.max(now_ns);
        let room = self.capacity.saturating_sub(self.events.len()).min(events.len());
        let (kept, dropped) = events.split_at(room);
        self.events.extend(kept.iter().map(|event| (self.last_ns, *event)));
        self.dropped += dropped.len() as u64;
    }
}

/// What a command that only reads has found.
pub(crate) fn reads(keys: &[Bytes], entries: &[Option<Entry>]) -> Vec<Event> {
    let found = |entry: &Option<Entry>| entry.as_ref().map(|entry| short(entry.value.len()));
    let events = keys.iter().zip(entries);
    events.map(|(key, entry)| Event::of(key, Access::Read(found(entry)))).collect()
}

/// What a command changes.
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

impl Taken {
    /// A line for each event: nanoseconds, kind, hash of the key, length of key and of value.
    pub fn lines(&self) -> String {
        let mut lines = String::with_capacity(self.events.len() * 48);
        for (at_ns, Event { access, key_bytes, key_hash }) in &self.events {
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
}
