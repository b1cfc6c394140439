//! Commit tokens: the writes for which a reply waits.

use smallvec::SmallVec;
use softflash_base::ShardId;

/// The writes that must be durable before a reply is sent: a sequence number per shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitToken {
    pub(super) seqs: SmallVec<[(ShardId, u64); 1]>,
}

impl CommitToken {
    /// A token for one shard.
    pub fn of(shard: ShardId, seq: u64) -> CommitToken {
        let mut token = CommitToken::default();
        token.add(shard, seq);
        token
    }

    /// Adds a shard's sequence number.
    pub fn add(&mut self, shard: ShardId, seq: u64) {
        if seq == 0 {
            return;
        }
        match self.seqs.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, known)) => *known = seq.max(*known),
            None => self.seqs.push((shard, seq)),
        }
    }

    /// Adds the sequence numbers of another token.
    pub fn merge(&mut self, other: &CommitToken) {
        other.seqs.iter().for_each(|&(shard, seq)| self.add(shard, seq));
    }

    /// Whether the token has no writes.
    pub fn is_empty(&self) -> bool {
        self.seqs.is_empty()
    }
}
