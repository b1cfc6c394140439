//! What a repair has found and done, for people and programs.

use serde::Serialize;
use std::ops::Range;

/// One end of a range of keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "bound", content = "key")]
pub enum Bound {
    /// This key is part of the range.
    Inclusive(KeyText),
    /// This key is not part of the range.
    Exclusive(KeyText),
    /// Nobody knows where the range ends.
    Open,
}

/// A key with what is no printable ASCII escaped as in `\xff`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeyText(pub String);

impl From<&[u8]> for KeyText {
    fn from(key: &[u8]) -> KeyText {
        KeyText(key.escape_ascii().to_string())
    }
}

/// Keys of a patch that cannot be read any more: some or all in this range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostRange {
    /// Where it begins.
    pub from: Bound,
    /// Where it ends.
    pub to: Bound,
    /// False where there may have been nothing: the patch's header, which would tell, is lost.
    pub is_certain: bool,
}

impl std::fmt::Display for LostRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.from {
            Bound::Inclusive(key) => write!(f, "from `{}`", key.0)?,
            Bound::Exclusive(key) => write!(f, "behind `{}`", key.0)?,
            Bound::Open => write!(f, "from an unknown key")?,
        }
        match &self.to {
            Bound::Inclusive(key) => write!(f, " up to `{}`", key.0)?,
            Bound::Exclusive(key) => write!(f, " to before `{}`", key.0)?,
            Bound::Open => write!(f, " up to an unknown key")?,
        }
        if self.is_certain { Ok(()) } else { write!(f, ", if there was anything") }
    }
}

/// A patch that is damaged, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairedPatch {
    /// Its shard.
    pub shard: u16,
    /// Its slice.
    pub slice: u16,
    /// Its level in the slice's tree.
    pub level: usize,
    /// Its block.
    pub patch: String,
    /// What is wrong with it.
    pub problem: String,
    /// Records that go into a new patch.
    pub records_kept: u64,
    /// Records that cannot be read, older versions and deletions included, where their number is
    /// known.
    pub records_lost: Option<u64>,
    /// Blocks that cannot be read, where their number is known.
    pub blocks_lost: Option<u64>,
    /// Where the lost records were.
    pub ranges: Vec<LostRange>,
    /// Keys with a value of which only a part can be read: they are deleted.
    pub torn_keys: Vec<KeyText>,
    /// Keys whose older value, further down in the tree, is deleted so that it does not come back.
    pub older_values_hidden: u64,
    /// Older values and deleted keys in the lost ranges may come back: nobody knows which keys were
    /// lost.
    pub older_values_may_return: bool,
}

impl RepairedPatch {
    /// Whether something that was durable is gone, or may be.
    pub fn has_loss(&self) -> bool {
        self.records_lost != Some(0) || !self.ranges.is_empty() || !self.torn_keys.is_empty()
    }

    /// Where it is.
    pub fn place(&self) -> String {
        format!("shard {}, slice {}, level {}, {}", self.shard, self.slice, self.level, self.patch)
    }
}

/// What is wrong with the log of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogDamage {
    /// The shard.
    pub shard: u16,
    /// What is wrong.
    pub problem: String,
    /// Frames that cannot be read, by their sequence.
    pub frames_lost: Vec<Range<u64>>,
    /// Transactions over several shards that are dropped here, as nobody knows whether they count.
    pub transactions_dropped: u64,
    /// Whether something that was acknowledged is given up.
    pub has_loss: bool,
}

/// Parity that is missing or damaged; it is made anew of its patches, which are whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParityDamage {
    /// Its shard.
    pub shard: u16,
    /// Its block.
    pub parity: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a repair has found and, unless it only looked, mended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Whether anything was changed.
    pub has_changed: bool,
    /// Damaged patches.
    pub patches: Vec<RepairedPatch>,
    /// Damaged logs.
    pub logs: Vec<LogDamage>,
    /// Damaged parity.
    pub parities: Vec<ParityDamage>,
    /// What cannot be repaired, and why.
    pub failures: Vec<String>,
}

impl RepairReport {
    /// Whether there is nothing to repair.
    pub fn is_clean(&self) -> bool {
        let nothing_found = self.patches.is_empty() && self.logs.is_empty();
        nothing_found && self.parities.is_empty() && self.failures.is_empty()
    }

    /// Whether something that was durable is gone, or may be.
    pub fn has_loss(&self) -> bool {
        self.patches.iter().any(RepairedPatch::has_loss) || self.logs.iter().any(|log| log.has_loss)
    }

    pub(super) fn merge(&mut self, part: RepairReport) {
        self.patches.extend(part.patches);
        self.logs.extend(part.logs);
        self.parities.extend(part.parities);
        self.failures.extend(part.failures);
    }
}
