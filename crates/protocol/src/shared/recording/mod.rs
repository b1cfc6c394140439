//! FLASH.RECORD: streams of what clients do: of the keys that they read and change, or of the
//! requests to a [`volume`].
//!
//! A recorder fetches the buffered events at its own pace. Events that do not fit into its buffer
//! are dropped and counted, so that no client waits for a recorder. Without recorders, a command
//! or request costs one branch.

mod keys;
pub mod volume;

pub(crate) use keys::{Event, Recordings, changes, reads};

use crate::error::{CommandError, Result};
use crate::shared::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Default capacity of a recording, in events.
pub(crate) const DEFAULT_CAPACITY: usize = 1 << 16;
/// Maximum capacity: this memory is not part of the server's budget.
pub(crate) const MAX_CAPACITY: usize = 1 << 18;
/// Maximum number of recordings of either kind, for the same reason.
const MAX_RECORDINGS: usize = 4;

/// The reply to a reader that has not started.
pub(crate) const NOT_RECORDING: CommandError =
    CommandError::Known("ERR this connection does not record; start with FLASH.RECORD START");

/// The buffers of all active recordings of one kind, by the number of the recording client.
#[derive(Debug)]
pub(crate) struct Tapes<T> {
    /// Number of recordings, checked by every command or request.
    count: AtomicUsize,
    tapes: Mutex<BTreeMap<u64, T>>,
}

impl<T> Default for Tapes<T> {
    fn default() -> Self {
        Tapes { count: AtomicUsize::new(0), tapes: Mutex::default() }
    }
}

impl<T> Tapes<T> {
    /// Starts a recording for a client, or restarts its recording.
    fn start(&self, client: u64, tape: T) -> Result<()> {
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
    fn stop(&self, client: u64) {
        if self.is_on() {
            let mut tapes = lock(&self.tapes);
            tapes.remove(&client);
            self.count.store(tapes.len(), Ordering::Relaxed);
        }
    }

    /// What `use_it` returns for a client's recording, if it has one.
    fn of<R>(&self, client: u64, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        lock(&self.tapes).get_mut(&client).map(use_it)
    }

    fn for_each(&self, use_it: impl FnMut(&mut T)) {
        lock(&self.tapes).values_mut().for_each(use_it);
    }

    /// Whether there is any recording.
    #[inline]
    fn is_on(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

/// Events fetched by a recorder.
#[derive(Debug)]
pub(crate) struct Taken {
    /// One line per event.
    pub lines: String,
    /// Events dropped since the last fetch.
    pub dropped: u64,
}
