//! The coordinator's steps of transactions over several shards.

use super::history::History;
use super::table::Transactions;
use crate::shard::Shard;
use crate::shard::log::{Event, Log};
use softflash_base::ShardId;
use std::collections::BTreeSet;

/// The shard whose log decides transactions.
pub(crate) struct Coordinator<'a> {
    transactions: &'a Transactions,
    history: &'a History,
    log: &'a Log,
}

/// A committed transaction, whose commit is in the coordinator's log.
pub(crate) struct Decided {
    /// Its number.
    pub(crate) number: u64,
    /// The shards that take part.
    pub(crate) participants: Vec<ShardId>,
    /// The sequence number of the commit in the coordinator's log.
    pub(crate) seq: u64,
}

impl Coordinator<'_> {
    /// The coordinator's parts of a shard.
    pub(crate) fn of(shard: &Shard) -> Coordinator<'_> {
        let Shard { transactions, history, log, .. } = shard;
        Coordinator { transactions, history, log }
    }

    /// Commits recovered from its log; none at another shard.
    pub(in crate::shard) fn recovered_commits(&self) -> BTreeSet<u64> {
        self.transactions.recovered_commits()
    }

    /// Registers a transaction with these participants. Returns its number.
    pub(crate) fn register(&self, participants: &[ShardId]) -> u64 {
        self.transactions.register(participants)
    }

    /// The prepare of `shard` is durable. Logs the commits of the transactions whose prepares are
    /// now all durable.
    pub(crate) fn note_prepared(&self, number: u64, shard: ShardId) -> Vec<Decided> {
        let complete = self.transactions.prepared(number, shard).into_iter();
        let commit = |(number, participants): (u64, Vec<ShardId>)| {
            self.transactions.note_decided(number, &participants);
            let seq = self.history.next_seq();
            self.log.append(&Event::Commit(number), seq);
            Decided { number, participants, seq }
        };
        complete.map(commit).collect()
    }

    /// `shard` has the commit in its own log.
    pub(crate) fn forget_commit(&self, number: u64, shard: ShardId) {
        self.transactions.forget(number, shard);
    }

    /// `shard` has logged the outcome of its transactions before the crash.
    pub(crate) fn note_caught_up(&self, shard: ShardId) {
        self.transactions.caught_up(shard);
    }
}
