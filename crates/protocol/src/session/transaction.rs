//! State of MULTI and WATCH.

use crate::command::Command;
use crate::error::{CommandError, Result};
use crate::resp::words::own;
use crate::shared::kept::{Kept, KeptMemory};
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_store::{Exclusive, WatchToken};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a queued command and each of its words take beside the bytes of the words.
const COMMAND_OVERHEAD_BYTES: u64 = size_of::<Command>() as u64;
const WORD_OVERHEAD_BYTES: u64 = 2 * size_of::<Bytes>() as u64;

/// What a watched key takes beside its bytes: its entries here and in its shard.
const WATCH_OVERHEAD_BYTES: u64 = 256;

/// The error where what a session keeps has no room, by which Redis' clients know it.
const NO_ROOM: CommandError = CommandError::Known(
    "OOM command not allowed when used memory > 'maxmemory'. Transactions and watched keys have \
     the memory of requests: EXEC or DISCARD them, queue less, or raise --memory.",
);

/// Commands queued since MULTI.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub commands: Vec<Command>,
    kept: Kept,
    /// A command was refused, so EXEC must fail.
    pub spoiled: bool,
    /// One had no room, and neither have the following ones.
    is_out_of_room: bool,
}

impl Transaction {
    /// An empty queue.
    pub fn new(memory: &Arc<dyn KeptMemory>) -> Transaction {
        Transaction {
            commands: Vec::new(),
            kept: Kept::new(memory),
            spoiled: false,
            is_out_of_room: false,
        }
    }

    /// Queues a command, for whose request `received` bytes are held; its arguments are copied out
    /// of the network buffer, because EXEC may come much later. A transaction that must fail keeps
    /// no commands.
    pub fn queue(&mut self, mut command: Command, received: u64) -> Result<()> {
        if self.is_out_of_room {
            return Err(NO_ROOM);
        }
        if self.spoiled {
            return Ok(());
        }
        let of_word = |word: &Bytes| word.len() as u64 + WORD_OVERHEAD_BYTES;
        let bytes = COMMAND_OVERHEAD_BYTES + command.args.iter().map(of_word).sum::<u64>();
        if !self.kept.try_grow(bytes, received) {
            self.is_out_of_room = true;
            return Err(NO_ROOM);
        }
        command.args.iter_mut().for_each(|word| *word = own(word));
        self.commands.push(command);
        Ok(())
    }

    /// A command was refused.
    pub fn spoil(&mut self) {
        self.spoiled = true;
        self.commands = Vec::new();
        self.kept.clear();
    }

    /// Reserved bytes of the queue.
    pub fn reserved_bytes(&self) -> u64 {
        self.kept.reserved_bytes()
    }
}

/// The keys that a session watches, in their order: a simulation must not depend on a random one.
#[derive(Debug)]
pub(crate) struct Watches {
    keys: BTreeMap<Bytes, Watched>,
    kept: Kept,
}

impl Watches {
    /// None.
    pub fn new(memory: &Arc<dyn KeptMemory>) -> Watches {
        Watches { keys: BTreeMap::new(), kept: Kept::new(memory) }
    }

    /// Makes room for a key; false if it is watched already.
    pub fn admit(&mut self, key: &Bytes) -> Result<bool> {
        if self.keys.contains_key(key) {
            return Ok(false);
        }
        match self.kept.try_grow(key.len() as u64 + WATCH_OVERHEAD_BYTES, 0) {
            true => Ok(true),
            false => Err(NO_ROOM),
        }
    }

    /// Adds a key that was admitted.
    pub fn add(&mut self, watched: Watched) {
        self.keys.insert(watched.key.clone(), watched);
    }

    /// All watched keys.
    pub fn iter(&self) -> impl Iterator<Item = &Watched> {
        self.keys.values()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Watches nothing.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.kept.clear();
    }

    /// Reserved bytes of the keys.
    pub fn reserved_bytes(&self) -> u64 {
        self.kept.reserved_bytes()
    }
}

/// A watched key.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub key: Bytes,
    pub token: WatchToken,
    /// The key had a value with an expiry at WATCH.
    pub expires: bool,
}

impl Watched {
    /// Whether the key was neither written nor has expired since WATCH. Uses the clock of the key's
    /// shard, like every other read, because a refusal reveals the expiry, and a key found expired
    /// must stay expired.
    pub async fn holds(&self, exclusive: &Exclusive) -> Result<bool> {
        if self.token.touched() {
            return Ok(false);
        }
        if !self.expires || planted::bug(Bug::ExpiryNotWatched) {
            return Ok(true);
        }
        exclusive.begin().contains(&self.key).await.map_err(CommandError::from)
    }
}
