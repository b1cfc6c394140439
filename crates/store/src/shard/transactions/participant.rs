//! The steps of a participant of transactions over several shards.

use super::history::History;
use crate::error::Result;
use crate::shard::Shard;
use crate::shard::log::{Event, Log};
use crate::shard::write::clear::Clear;
use crate::shard::write::commit::Committer;
use crate::shard::write::writes::Writes;
use softflash_base::planted::{self, Bug};

/// A shard that takes part in transactions.
pub(crate) struct Participant<'a> {
    history: &'a History,
    log: &'a Log,
    committer: Committer<'a>,
    clear: Clear<'a>,
}

impl Participant<'_> {
    /// The participant's parts of a shard.
    pub(crate) fn of(shard: &Shard) -> Participant<'_> {
        let Shard { history, log, .. } = shard;
        Participant { history, log, committer: Committer::of(shard), clear: Clear::of(shard) }
    }

    /// Writes the commits that only the coordinator's log records into this shard's log, durably.
    pub(in crate::shard) async fn note_recovered(&self, decided_elsewhere: &[u64]) -> Result<()> {
        for number in decided_elsewhere.iter().filter(|_| !planted::bug(Bug::CommitsNotNoted)) {
            let seq = self.history.next_seq();
            self.log.append(&Event::Commit(*number), seq);
        }
        self.log.written_soon(self.history.seq()).await
    }

    /// Applies its part of the transaction as a prepare. Returns its sequence number.
    pub(crate) fn prepare(&self, number: u64, writes: Writes) -> u64 {
        let seq = self.committer.apply(writes, Some(number));
        self.log.hold(seq, number);
        seq
    }

    /// The transaction is committed. Returns the sequence number of the commit in this shard's log.
    /// Once that is durable, the coordinator may forget the transaction for this shard.
    pub(crate) fn note_committed(&self, number: u64) -> u64 {
        let seq = self.history.next_seq();
        self.log.append(&Event::Commit(number), seq);
        // Before a later write can be flushed: see `shard/write/clear.rs`.
        self.clear.drop_cleared_patches(Some(number));
        self.log.release_hold(number);
        seq
    }
}
