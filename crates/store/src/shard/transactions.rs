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
//! what the first one did.

use super::Shard;
use super::commit::Writes;
use super::log::Event;
use crate::error::{Result, StoreError};
use crate::store::{Store, Ticket};
use crate::view::View;
use futures_util::future::try_join_all;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The shard whose log holds the commits.
pub(crate) const COORDINATOR: ShardId = ShardId(0);

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

/// Commits a view that writes several shards. The caller holds their gates.
pub(super) async fn commit_across(
    store: &Store,
    view: View,
    shards: Vec<ShardId>,
) -> Result<Ticket> {
    let mut parts: BTreeMap<ShardId, Writes> = BTreeMap::new();
    for shard in &shards {
        parts.insert(*shard, Writes { entries: Vec::new(), clear: view.clear });
    }
    for (key, entry) in view.writes.into_vec() {
        parts.entry(store.shard_of(&key)).or_default().entries.push((key, entry));
    }
    try_join_all(parts.iter().map(|(shard, writes)| {
        let writes = writes.clone();
        store.run_on(*shard, move |store| {
            Box::pin(async move { store.local().admit_writes(&writes).await })
        })
    }))
    .await?
    .into_iter()
    .collect::<Result<()>>()?;
    // From here on the transaction goes through even if its client has gone: others wait for its number.
    let (reply, result) = futures_channel::oneshot::channel();
    let driver = store.clone();
    store.runtime().spawn(Box::pin(async move {
        let _ = reply.send(prepare_all(&driver, parts, shards).await);
    }));
    result.await.map_err(|_| StoreError::Closed)?
}

async fn prepare_all(
    store: &Store,
    parts: BTreeMap<ShardId, Writes>,
    shards: Vec<ShardId>,
) -> Result<Ticket> {
    let number = store
        .run_on(COORDINATOR, move |store| {
            let number = store.local().transactions.register(&shards);
            Box::pin(std::future::ready(number))
        })
        .await?;
    let prepares = parts.into_iter().map(|(shard, writes)| async move {
        let prepared = store.run_on(shard, move |store| {
            let seq = store.local().prepare(&store, number, writes);
            Box::pin(std::future::ready(seq))
        });
        prepared.await.map(|seq| (shard, seq))
    });
    let mut ticket = Ticket::default();
    for (shard, seq) in try_join_all(prepares).await? {
        ticket.add(shard, seq);
    }
    Ok(ticket)
}

/// The log of `shard` has failed with a transaction under way that it takes part in. Nobody can decide that before the
/// next recovery, nor any later one, and what comes behind it in any log cannot be acknowledged.
async fn fail_everywhere(store: &Store, shard: ShardId, error: &StoreError) {
    if matches!(error, StoreError::Closed) {
        return;
    }
    let reason = format!("a transaction over several shards cannot end: shard {shard}: {error}");
    for other in (0..store.layout().shards).map(ShardId).filter(|other| *other != shard) {
        let reason = reason.clone();
        let notice = store.run_on(other, move |store| {
            store.local().log.fail(&reason);
            Box::pin(std::future::ready(()))
        });
        // One that has stopped has no clients that wait.
        let _ = notice.await;
    }
}

impl Shard {
    /// Notes in the own log the commits of which only the coordinator's log told; durable when this returns.
    pub(super) async fn note_recovered(&self, decided_elsewhere: &[u64]) -> Result<()> {
        for number in decided_elsewhere.iter().filter(|_| !planted::bug(Bug::CommitsNotNoted)) {
            let seq = self.next_seq();
            self.log.append(&Event::Commit(*number), seq);
        }
        self.log.written_soon(self.seq.get()).await
    }

    /// Tells the coordinator that it need not remember for this shard what its log told when it was opened.
    pub(super) fn report_caught_up(store: &Store) {
        let (store, shard) = (store.clone(), store.local_id());
        store.runtime().clone().spawn(Box::pin(async move {
            let report = store.run_on(COORDINATOR, move |coordinator| {
                coordinator.local().transactions.caught_up(shard);
                Box::pin(std::future::ready(()))
            });
            // A coordinator that has stopped remembers: its log says so.
            let _ = report.await;
        }));
    }

    /// Applies this shard's part and reports to the coordinator when it is durable.
    fn prepare(&self, store: &Store, number: u64, writes: Writes) -> u64 {
        let seq = self.apply(writes, Some(number));
        self.log.hold(seq, number);
        let (store, log, shard) = (store.clone(), self.log.clone(), self.id);
        self.runtime.spawn(Box::pin(async move {
            if let Err(error) = log.written_soon(seq).await {
                return fail_everywhere(&store, shard, &error).await;
            }
            let report = store.run_on(COORDINATOR, move |coordinator| {
                coordinator.local().note_prepared(&coordinator, number, shard);
                Box::pin(std::future::ready(()))
            });
            // A coordinator that has stopped decides at recovery.
            let _ = report.await;
        }));
        seq
    }

    /// At the coordinator: commits what has become complete.
    fn note_prepared(&self, store: &Store, number: u64, shard: ShardId) {
        for (number, participants) in self.transactions.prepared(number, shard) {
            let unaware = participants.iter().copied().collect();
            self.transactions.committed.borrow_mut().insert(number, unaware);
            let seq = self.next_seq();
            self.log.append(&Event::Commit(number), seq);
            let (store, log) = (store.clone(), self.log.clone());
            self.runtime.spawn(Box::pin(async move {
                if !planted::bug(Bug::CommitNotAwaited)
                    && let Err(error) = log.written_soon(seq).await
                {
                    return fail_everywhere(&store, COORDINATOR, &error).await;
                }
                for shard in participants {
                    let notice = store.run_on(shard, move |participant| {
                        participant.local().note_committed(&participant, number);
                        Box::pin(std::future::ready(()))
                    });
                    let _ = notice.await;
                }
            }));
        }
    }

    /// At a participant: the transaction counts. When the own log says so too, the coordinator may forget it.
    fn note_committed(&self, store: &Store, number: u64) {
        let seq = self.next_seq();
        self.log.append(&Event::Commit(number), seq);
        // Before anything after the transaction can be flushed: see `shard/clear.rs`.
        self.doom(Some(number));
        self.log.let_go(number);
        let (store, log, shard) = (store.clone(), self.log.clone(), self.id);
        self.runtime.spawn(Box::pin(async move {
            if log.written(seq).await.is_ok() {
                let notice = store.run_on(COORDINATOR, move |coordinator| {
                    coordinator.local().transactions.forget(number, shard);
                    Box::pin(std::future::ready(()))
                });
                let _ = notice.await;
            }
        }));
    }
}

#[cfg(test)]
mod tests;
