//! The slow log: recent commands that took long.

use crate::resp::reply::Reply;
use crate::shared::lock::lock;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Maximum number of words in an entry.
const MAX_WORDS: usize = 32;
/// Maximum bytes of a word in an entry.
const MAX_WORD_BYTES: usize = 128;

/// A slow command.
#[derive(Debug, Clone)]
pub struct SlowCommand {
    /// Sequence number.
    pub id: u64,
    /// Completion time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Duration in microseconds, waits for flash included.
    pub took_us: u64,
    /// The words, shortened.
    pub words: Vec<Bytes>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Bytes,
}

/// The log: a bounded list, newest first.
#[derive(Debug)]
pub struct Slowlog {
    threshold_us: AtomicI64,
    limit: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    list: VecDeque<SlowCommand>,
}

impl Default for Slowlog {
    fn default() -> Slowlog {
        Slowlog {
            threshold_us: AtomicI64::new(10_000),
            limit: AtomicUsize::new(128),
            entries: Mutex::default(),
        }
    }
}

impl Slowlog {
    /// Threshold in microseconds; negative: nothing is logged.
    pub fn threshold_us(&self) -> i64 {
        self.threshold_us.load(Ordering::Relaxed)
    }

    /// Changes the threshold.
    pub fn set_threshold_us(&self, threshold_us: i64) {
        self.threshold_us.store(threshold_us, Ordering::Relaxed);
    }

    /// Maximum number of entries.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the maximum number of entries.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether a command of this duration is logged.
    pub fn is_slow(&self, took_us: u64) -> bool {
        u64::try_from(self.threshold_us()).is_ok_and(|threshold_us| took_us >= threshold_us)
    }

    /// Adds a command.
    pub fn enter(&self, words: &[Bytes], took_us: u64, at_ms: u64, address: &str, name: Bytes) {
        let mut entries = lock(&self.entries);
        let id = entries.next_id;
        entries.next_id += 1;
        let (words, address) = (shorten(words), address.to_owned());
        entries.list.push_front(SlowCommand { id, at_ms, took_us, words, address, name });
        entries.list.truncate(self.limit());
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        lock(&self.entries).list.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all entries.
    pub fn reset(&self) {
        lock(&self.entries).list.clear();
    }

    /// The newest `count` entries.
    pub fn newest(&self, count: usize) -> Vec<SlowCommand> {
        lock(&self.entries).list.iter().take(count).cloned().collect()
    }
}

impl From<SlowCommand> for Reply {
    fn from(slow: SlowCommand) -> Reply {
        let number = |number: u64| Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        Reply::Array(vec![
            number(slow.id),
            number(slow.at_ms / 1000),
            number(slow.took_us),
            Reply::Array(slow.words.into_iter().map(Reply::Bulk).collect()),
            Reply::Bulk(slow.address.into()),
            Reply::Bulk(slow.name),
        ])
    }
}

fn shorten(words: &[Bytes]) -> Vec<Bytes> {
    let kept = if words.len() > MAX_WORDS { MAX_WORDS - 1 } else { words.len() };
    let mut short: Vec<Bytes> = words.iter().take(kept).map(shorten_word).collect();
    if kept < words.len() {
        short.push(format!("... ({} more arguments)", words.len() - kept).into());
    }
    short
}

fn shorten_word(word: &Bytes) -> Bytes {
    match word.split_at_checked(MAX_WORD_BYTES) {
        Some((start, rest)) if !rest.is_empty() => {
            let note = format!("... ({} more bytes)", rest.len());
            Bytes::from([start, note.as_bytes()].concat())
        }
        _ => Bytes::copy_from_slice(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_its_entries_are_short() {
        let log = Slowlog::default();
        log.set_limit(2);
        let words: Vec<Bytes> = (0..40).map(|_| Bytes::from(vec![b'x'; 200])).collect();
        (0..3).for_each(|number| log.enter(&words, number, 0, "a:1", Bytes::new()));
        let newest = log.newest(10);
        assert_eq!(newest.iter().map(|slow| slow.id).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(newest[0].words.len(), 32);
        assert_eq!(newest[0].words[31], "... (9 more arguments)");
        assert!(newest[0].words[0].ends_with(b"... (72 more bytes)"));
    }

    #[test]
    fn a_negative_threshold_means_nothing_is_slow() {
        let log = Slowlog::default();
        assert!(log.is_slow(10_000) && !log.is_slow(9_999));
        log.set_threshold_us(-1);
        assert!(!log.is_slow(u64::MAX));
        log.set_threshold_us(0);
        assert!(log.is_slow(0));
    }
}
