//! State of MULTI and WATCH.

use crate::command::Command;
use crate::error::{CommandError, Result};
use crate::resp::words::own;
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_store::{Exclusive, WatchToken};

/// Commands queued since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub commands: Vec<Command>,
    /// Bytes of their arguments.
    pub bytes: u64,
    /// A command was refused, so EXEC must fail.
    pub spoiled: bool,
}

impl Transaction {
    /// Queues a command; its arguments are copied out of the network buffer, because EXEC may come
    /// much later.
    pub fn queue(&mut self, mut command: Command) {
        command.args.iter_mut().for_each(|word| *word = own(word));
        self.bytes += command.args.iter().map(|word| word.len() as u64).sum::<u64>();
        self.commands.push(command);
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
