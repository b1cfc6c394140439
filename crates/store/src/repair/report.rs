//! The findings and changes of a repair, for people and programs.

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
    /// The end of the range is unknown.
    Open,
}

/// A key with bytes that are not printable ASCII escaped as in `\xff`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeyText(pub String);

impl From<&[u8]> for KeyText {
    fn from(key: &[u8]) -> KeyText {
        KeyText(key.escape_ascii().to_string())
    }
}

/// A range with lost keys of a patch: some or all in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostRange {
    /// Its start.
    pub from: Bound,
    /// Its end.
    pub to: Bound,
    /// False where the range may have been empty, because the patch's header is lost.
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

/// A damaged patch, and the result of its repair.
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
    /// Its damage.
    pub problem: String,
    /// Records that are kept, in a new patch.
    pub records_kept: u64,
    /// Lost records, including older versions and deletions, where their number is known.
    pub records_lost: Option<u64>,
    /// Lost blocks, where their number is known.
    pub blocks_lost: Option<u64>,
    /// The ranges of the lost records.
    pub ranges: Vec<LostRange>,
    /// Keys with a partly lost value: they are deleted.
    pub torn_keys: Vec<KeyText>,
    /// Lost keys with an older value further down in the tree, which is deleted so that it does not
    /// become visible.
    pub older_values_hidden: u64,
    /// Older values and deleted keys in the lost ranges may become visible, because the lost keys
    /// are unknown.
    pub older_values_may_return: bool,
}

impl RepairedPatch {
    /// Whether durable data is lost, or may be.
    pub fn has_loss(&self) -> bool {
        self.records_lost != Some(0) || !self.ranges.is_empty() || !self.torn_keys.is_empty()
    }

    /// Its place in the store.
    pub fn place(&self) -> String {
        format!("shard {}, slice {}, level {}, {}", self.shard, self.slice, self.level, self.patch)
    }
}

/// A key whose separated value is lost; the repair deletes the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostValue {
    /// Its shard.
    pub shard: u16,
    /// Its slice.
    pub slice: u16,
    /// The key.
    pub key: KeyText,
    /// The damage.
    pub problem: String,
}

/// A block of separated values that lacks a copy; its values are moved to another block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueBlockDamage {
    /// Its shard.
    pub shard: u16,
    /// The block.
    pub block: String,
    /// The damage.
    pub problem: String,
}

/// Damage of the log of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogDamage {
    /// The shard.
    pub shard: u16,
    /// The damage.
    pub problem: String,
    /// Lost frames, by their sequence.
    pub frames_lost: Vec<Range<u64>>,
    /// Transactions over several shards that this shard drops, because it is unknown whether they
    /// committed.
    pub transactions_dropped: u64,
    /// Whether acknowledged data is lost.
    pub has_loss: bool,
}

/// Missing or damaged parity; it is recomputed from its patches, which are whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParityDamage {
    /// Its shard.
    pub shard: u16,
    /// Its block.
    pub parity: String,
    /// Its damage.
    pub problem: String,
}

/// The findings of an examination, and the changes of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Whether anything was changed.
    pub has_changed: bool,
    /// Damaged patches.
    pub patches: Vec<RepairedPatch>,
    /// Keys whose separated values are lost.
    pub values: Vec<LostValue>,
    /// Damaged blocks of separated values.
    pub value_blocks: Vec<ValueBlockDamage>,
    /// Damaged logs.
    pub logs: Vec<LogDamage>,
    /// Damaged parity.
    pub parities: Vec<ParityDamage>,
    /// Failures that prevent a repair.
    pub failures: Vec<String>,
}

impl RepairReport {
    /// Whether there is nothing to repair.
    pub fn is_clean(&self) -> bool {
        let nothing_found = self.patches.is_empty() && self.logs.is_empty();
        let values_are_whole = self.values.is_empty() && self.value_blocks.is_empty();
        nothing_found && values_are_whole && self.parities.is_empty() && self.failures.is_empty()
    }

    /// Whether durable data is lost, or may be.
    pub fn has_loss(&self) -> bool {
        let has_lost_values = !self.values.is_empty();
        has_lost_values
            || self.patches.iter().any(RepairedPatch::has_loss)
            || self.logs.iter().any(|log| log.has_loss)
    }

    pub(super) fn merge(&mut self, part: RepairReport) {
        self.patches.extend(part.patches);
        self.values.extend(part.values);
        self.value_blocks.extend(part.value_blocks);
        self.logs.extend(part.logs);
        self.parities.extend(part.parities);
        self.failures.extend(part.failures);
    }
}
