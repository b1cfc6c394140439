//! Transactions over several shards: all or nothing, also through a crash.
//!
//! Each participant writes a *prepare* with its part of the writes into its own log and makes them visible
//! (the caller holds the gates of all participants). When every prepare is durable, shard 0, the
//! coordinator, writes a *commit* into its log, in the order of the transactions' numbers; when that is
//! durable the transaction counts, and each participant notes the commit in its own log too. Until then the
//! participant's log is not stable beyond the prepare: nothing after it is acknowledged, and no memtable that
//! holds it is flushed. Recovery cuts each log at the first prepare without a commit. As commits are in
//! order of the numbers, and the numbers were given while the gates were held, no transaction that was
//! committed can lie behind such a cut.
//!
//! After a crash each participant asks the coordinator's log once, and notes the answers in its own log before it
//! serves anything. Until every shard has done so the coordinator's checkpoints repeat them: a second crash finds
//! the same commits.
//!
//! This file has the state of each side; `store/two_phase.rs` has the messages between them.

use super::Shard;
use super::log::Event;
use super::writes::Writes;
use crate::error::Result;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The coordinator's books; empty in every other shard.
#[derive(Default)]
pub(super) struct Transactions {
    next: Cell<u64>,
    /// Transactions without a commit, with the participants whose prepare is not durable yet.
    waiting: RefCell<BTreeMap<u64, Waiting>>,
    /// Committed, with the participants that have not noted it durably: they may still ask after a crash.
    committed: RefCell<BTreeMap<u64, BTreeSet<ShardId>>>,
    /// Commits that the coordinator's log told when it was opened, until every shard has noted its own.
    recovered: RefCell<BTreeSet<u64>>,
    /// Shards that have not noted theirs yet.
    unaware: RefCell<BTreeSet<ShardId>>,
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

struct Waiting {
    missing: BTreeSet<ShardId>,
    participants: Vec<ShardId>,
}

impl Transactions {
    /// Books that give numbers from `next` on, of the coordinator of `shards` shards, whose log tells of the commits
    /// `recovered`.
    pub(super) fn new(next: u64, recovered: BTreeSet<u64>, shards: u16) -> Transactions {
        Transactions {
            next: Cell::new(next),
            recovered: RefCell::new(recovered),
            unaware: RefCell::new((0..shards).map(ShardId).collect()),
            ..Transactions::default()
        }
    }

    /// The number that the next transaction gets.
    pub(super) fn next(&self) -> u64 {
        self.next.get()
    }

    /// Commits that a participant may still ask for.
    pub(super) fn unforgotten(&self) -> Vec<u64> {
        let (recovered, committed) = (self.recovered.borrow(), self.committed.borrow());
        recovered.iter().chain(committed.keys()).copied().collect()
    }

    /// A shard has noted in its own log what became of its transactions before the crash.
    fn caught_up(&self, shard: ShardId) {
        let mut unaware = self.unaware.borrow_mut();
        unaware.remove(&shard);
        if unaware.is_empty() {
            self.recovered.borrow_mut().clear();
        }
    }

    fn register(&self, participants: &[ShardId]) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        let waiting = Waiting {
            missing: participants.iter().copied().collect(),
            participants: participants.to_vec(),
        };
        self.waiting.borrow_mut().insert(number, waiting);
        number
    }

    /// A participant's prepare is durable. Returns the transactions that can be committed now, in order.
    fn prepared(&self, number: u64, shard: ShardId) -> Vec<(u64, Vec<ShardId>)> {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(transaction) = waiting.get_mut(&number) {
            transaction.missing.remove(&shard);
            if planted::bug(Bug::CommittedHalfPrepared) {
                transaction.missing.clear();
            }
        }
        let mut ready = Vec::new();
        if planted::bug(Bug::CommitsOutOfOrder) {
            let complete = waiting.extract_if(.., |_, transaction| transaction.missing.is_empty());
            ready.extend(complete.map(|(number, done)| (number, done.participants)));
        }
        while let Some(first) = waiting.first_entry()
            && first.get().missing.is_empty()
        {
            ready.push((*first.key(), first.remove().participants));
        }
        ready
    }

    fn forget(&self, number: u64, shard: ShardId) {
        let mut committed = self.committed.borrow_mut();
        if let Some(participants) = committed.get_mut(&number) {
            participants.remove(&shard);
            if participants.is_empty() {
                committed.remove(&number);
            }
        }
    }
}

impl Shard {
    /// Notes in the own log the commits that only the coordinator's log records; durable when this
    /// returns.
    pub(super) async fn note_recovered(&self, decided_elsewhere: &[u64]) -> Result<()> {
        for number in decided_elsewhere.iter().filter(|_| !planted::bug(Bug::CommitsNotNoted)) {
            let seq = self.next_seq();
            self.log.append(&Event::Commit(*number), seq);
        }
        self.log.written_soon(self.history.seq.get()).await
    }

    /// Commits that the coordinator's log recorded when it was opened; none at another shard.
    pub(super) fn recovered_commits(&self) -> BTreeSet<u64> {
        self.transactions.recovered.borrow().clone()
    }

    /// At a participant: applies its part, which counts once the transaction is committed. Returns its
    /// sequence number.
    pub(crate) fn prepare(&self, number: u64, writes: Writes) -> u64 {
        let seq = self.apply(writes, Some(number));
        self.log.hold(seq, number);
        seq
    }

    /// At the coordinator: registers a transaction of these participants, and numbers it.
    pub(crate) fn register(&self, participants: &[ShardId]) -> u64 {
        self.transactions.register(participants)
    }

    /// At the coordinator: the prepare of `shard` is durable. Logs the commits of the transactions that
    /// this completes.
    pub(crate) fn note_prepared(&self, number: u64, shard: ShardId) -> Vec<Decided> {
        let complete = self.transactions.prepared(number, shard).into_iter();
        let commit = |(number, participants): (u64, Vec<ShardId>)| {
            let unaware = participants.iter().copied().collect();
            self.transactions.committed.borrow_mut().insert(number, unaware);
            let seq = self.next_seq();
            self.log.append(&Event::Commit(number), seq);
            Decided { number, participants, seq }
        };
        complete.map(commit).collect()
    }

    /// At a participant: the transaction is committed. Returns the sequence number of the commit in the
    /// own log; once it is written, the coordinator may forget the transaction for this shard.
    pub(crate) fn note_committed(&self, number: u64) -> u64 {
        let seq = self.next_seq();
        self.log.append(&Event::Commit(number), seq);
        // Before anything after the transaction can be flushed: see `shard/clear.rs`.
        self.doom(Some(number));
        self.log.let_go(number);
        seq
    }

    /// At the coordinator: `shard` has noted the commit in its own log.
    pub(crate) fn forget_commit(&self, number: u64, shard: ShardId) {
        self.transactions.forget(number, shard);
    }

    /// At the coordinator: `shard` has noted in its own log the outcome of its transactions before the
    /// crash.
    pub(crate) fn note_caught_up(&self, shard: ShardId) {
        self.transactions.caught_up(shard);
    }
}

#[cfg(test)]
mod tests;
