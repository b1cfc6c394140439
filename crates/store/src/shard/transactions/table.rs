//! Transactions over several shards: atomic, also after a crash (two-phase commit).
//!
//! Each participant writes a *prepare* with its part of the writes into its log and makes the
//! writes visible; the caller holds the gates of all participants. When every prepare is durable,
//! shard 0, the coordinator, writes a *commit* into its log, in the order of the transaction
//! numbers. When the commit is durable, the transaction is committed, and each participant also
//! writes the commit into its own log. Until then the participant's log is not stable beyond the
//! prepare: no later write is acknowledged, and no memtable with the prepared writes is flushed.
//! Recovery cuts each log at the first prepare without a commit. Commits are in number order, and
//! numbers are assigned while the gates are held, so no committed transaction can follow such a
//! cut.
//!
//! After a crash each participant reads the coordinator's commits once, and writes those of its
//! transactions into its own log before it serves commands. Until every shard has done so the
//! coordinator's checkpoints repeat the commits, so recovery after a second crash finds them too.
//!
//! This file has the coordinator's state; `coordinator.rs` and `participant.rs` have the steps, and
//! `store/two_phase.rs` the messages.

use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The coordinator's state; empty in every other shard.
#[derive(Default)]
pub(in crate::shard) struct Transactions {
    next: Cell<u64>,
    /// Transactions without a commit, with the participants whose prepare is not durable yet.
    waiting: RefCell<BTreeMap<u64, Waiting>>,
    /// Committed transactions, with the participants whose own log does not have the commit
    /// durably: after a crash these may still need it.
    committed: RefCell<BTreeMap<u64, BTreeSet<ShardId>>>,
    /// Commits recovered from the coordinator's log, until every shard has logged those of its
    /// transactions.
    recovered: RefCell<BTreeSet<u64>>,
    /// Shards that have not logged the commits of their recovered transactions.
    not_caught_up: RefCell<BTreeSet<ShardId>>,
}

struct Waiting {
    missing: BTreeSet<ShardId>,
    participants: Vec<ShardId>,
}

impl Transactions {
    /// The state of the coordinator of `shards` shards, with `next` as the next number and the
    /// commits recovered from its log.
    pub(in crate::shard) fn new(next: u64, recovered: BTreeSet<u64>, shards: u16) -> Transactions {
        Transactions {
            next: Cell::new(next),
            recovered: RefCell::new(recovered),
            not_caught_up: RefCell::new((0..shards).map(ShardId).collect()),
            ..Transactions::default()
        }
    }

    /// The number of the next transaction.
    pub(in crate::shard) fn next(&self) -> u64 {
        self.next.get()
    }

    /// Commits that a participant may still need after a crash.
    pub(in crate::shard) fn retained_commits(&self) -> Vec<u64> {
        let (recovered, committed) = (self.recovered.borrow(), self.committed.borrow());
        recovered.iter().chain(committed.keys()).copied().collect()
    }

    /// Commits recovered from the coordinator's log; none at another shard.
    pub(in crate::shard) fn recovered_commits(&self) -> BTreeSet<u64> {
        self.recovered.borrow().clone()
    }

    /// A shard has logged the outcome of its transactions before the crash.
    pub(super) fn caught_up(&self, shard: ShardId) {
        let mut not_caught_up = self.not_caught_up.borrow_mut();
        not_caught_up.remove(&shard);
        if not_caught_up.is_empty() {
            self.recovered.borrow_mut().clear();
        }
    }

    /// Registers a transaction with these participants. Returns its number.
    pub(super) fn register(&self, participants: &[ShardId]) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        let waiting = Waiting {
            missing: participants.iter().copied().collect(),
            participants: participants.to_vec(),
        };
        self.waiting.borrow_mut().insert(number, waiting);
        number
    }

    /// A participant's prepare is durable. Returns the transactions to commit now, in number order.
    pub(super) fn prepared(&self, number: u64, shard: ShardId) -> Vec<(u64, Vec<ShardId>)> {
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

    /// A transaction is committed: its participants may need the commit after a crash.
    pub(super) fn note_decided(&self, number: u64, participants: &[ShardId]) {
        let not_logged = participants.iter().copied().collect();
        self.committed.borrow_mut().insert(number, not_logged);
    }

    /// A participant has the commit in its own log.
    pub(super) fn forget(&self, number: u64, shard: ShardId) {
        let mut committed = self.committed.borrow_mut();
        if let Some(participants) = committed.get_mut(&number) {
            participants.remove(&shard);
            if participants.is_empty() {
                committed.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests;
