//! A command over the entries of its keys: what it is given, and what it wants changed.

use crate::command::Effects;
use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::own;
use bytes::Bytes;
use softflash_store::{Entry, Store, Value};

static EMPTY: Bytes = Bytes::new();

/// A running command.
pub(crate) struct Call<'a> {
    pub name: &'static str,
    pub args: &'a [Bytes],
    /// What its keys map to, in their order; empty where it does not load them.
    pub entries: &'a mut [Option<Entry>],
    pub effects: &'a mut Effects,
    pub store: &'a Store,
}

impl<'a> Call<'a> {
    /// The word at a position; empty beyond the end, which the table's arity keeps out.
    pub fn arg(&self, index: usize) -> &'a Bytes {
        self.args.get(index).unwrap_or(&EMPTY)
    }

    /// The word at a position as a number.
    pub fn integer(&self, index: usize) -> Result<i64> {
        parse_i64(self.arg(index)).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// What the `index`-th key maps to.
    pub fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index).and_then(Option::as_ref)
    }

    /// What the `index`-th key maps to, taken out.
    pub fn take(&mut self, index: usize) -> Option<Entry> {
        self.entries.get_mut(index).and_then(Option::take)
    }

    /// The reply with the `index`-th key's value, taken out.
    pub fn value_reply(&mut self, index: usize) -> Reply {
        Reply::value(self.take(index).map(|entry| entry.value))
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.store.now_ms()).unwrap_or(i64::MAX)
    }

    /// Maps a key to an entry.
    pub fn put(&mut self, key: &Bytes, entry: Entry) {
        self.effects.writes.push((own(key), Some(entry)));
    }

    /// Maps a key to a value and keeps the expiry.
    pub fn put_value(&mut self, key: &Bytes, value: impl Into<Value>, expires_at_ms: u64) {
        self.put(key, Entry { value: value.into(), expires_at_ms });
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &Bytes) {
        self.effects.writes.push((own(key), None));
    }

    /// Refuses what is not one of a command's options.
    pub fn syntax<T>() -> Result<T> {
        Err(CommandError::SYNTAX)
    }
}
