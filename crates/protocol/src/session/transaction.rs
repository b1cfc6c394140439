//! What MULTI and WATCH have gathered.

use crate::command::Command;
use crate::error::{CommandError, Result};
use crate::resp::words::own;
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_store::{Exclusive, WatchToken};

/// Commands since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub commands: Vec<Command>,
    /// Bytes of their words.
    pub bytes: u64,
    /// One of them was refused, so none will run.
    pub spoiled: bool,
}

impl Transaction {
    /// Queues a command; its words are copied out of the network buffer, as EXEC may be far.
    pub fn queue(&mut self, mut command: Command) {
        command.args.iter_mut().for_each(|word| *word = own(word));
        self.bytes += command.args.iter().map(|word| word.len() as u64).sum::<u64>();
        self.commands.push(command);
    }
}

/// A key that EXEC depends on.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub key: Bytes,
    pub token: WatchToken,
    /// A value was there that expires.
    pub expires: bool,
}

impl Watched {
    /// Whether the key is as it was: not written, and what was there not expired. That is looked up, as a refusal tells of it:
    /// by the clock of the key's shard, which every other read goes by, and what is found dead has to stay dead.
    pub async fn holds(&self, exclusive: &Exclusive) -> Result<bool> {
        if self.token.touched() {
            return Ok(false);
        }
        if !self.expires || planted::bug(Bug::ExpiryNotWatched) {
            return Ok(true);
        }
        exclusive.view().contains(&self.key).await.map_err(CommandError::from)
    }
}
