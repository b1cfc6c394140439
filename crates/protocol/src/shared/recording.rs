//! FLASH.RECORD: a stream of the keys that clients read and change.
//!
//! A recorder fetches the buffered events at its own pace. Events that do not fit into its buffer
//! are dropped and counted, so that no client waits for a recorder. Without recorders, a command
//! costs one branch.

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

/// Default capacity of a recording, in events.
pub(crate) const DEFAULT_CAPACITY: usize = 1 << 16;
/// Maximum capacity: this memory is not part of the server's budget.
pub(crate) const MAX_CAPACITY: usize = 1 << 18;
/// Maximum number of recordings, for the same reason.
const MAX_RECORDINGS: usize = 4;

const NOT_RECORDING: CommandError =
    CommandError::Known("ERR this connection does not record; start with FLASH.RECORD START");

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

/// All active recordings, by the number of the recording client.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    /// Number of recordings, checked by every command.
    count: AtomicUsize,
    tapes: Mutex<BTreeMap<u64, Tape>>,
}

/// Buffered events of one recorder.
#[derive(Debug)]
struct Tape {
    capacity: usize,
    events: VecDeque<(u64, Event)>,
    dropped: u64,
    last_ns: u64,
}

/// Events fetched by a recorder.
#[derive(Debug)]
pub(crate) struct Taken {
    events: Vec<(u64, Event)>,
    /// Events dropped since the last fetch.
    pub dropped: u64,
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
        let mut tapes = lock(&self.tapes);
        if tapes.len() >= MAX_RECORDINGS && !tapes.contains_key(&client) {
            return Err(CommandError::Known(
                "ERR too many connections record; stop one with FLASH.RECORD STOP",
            ));
        }
        tapes.insert(client, tape);
        self.count.store(tapes.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Stops a client's recording, if it has one.
    pub fn stop(&self, client: u64) {
        if self.is_on() {
            let mut tapes = lock(&self.tapes);
            tapes.remove(&client);
            self.count.store(tapes.len(), Ordering::Relaxed);
        }
    }

    /// Removes and returns the oldest events of a client's recording.
    pub fn take(&self, client: u64, count: usize) -> Result<Taken> {
        let mut tapes = lock(&self.tapes);
        let tape = tapes.get_mut(&client).ok_or(NOT_RECORDING)?;
        let count = count.min(tape.events.len());
        let events = tape.events.drain(..count).collect();
        Ok(Taken { events, dropped: std::mem::take(&mut tape.dropped) })
    }

    /// Whether there is any recording.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
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
        lock(&self.tapes).values_mut().for_each(|tape| tape.write(now_ns, events));
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

impl Taken {
    /// One line per event: nanoseconds, kind, hash of the key, length of key and of value.
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
