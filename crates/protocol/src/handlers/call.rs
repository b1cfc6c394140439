//! A command on the entries of its keys: its inputs, and the changes it requests.

use crate::command::Effects;
use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use bytes::Bytes;
use softflash_store::value::Value;
use softflash_store::{Entry, Store};

static EMPTY: Bytes = Bytes::new();

/// A running command.
pub(crate) struct Call<'a> {
    pub name: &'static str,
    pub args: &'a [Bytes],
    /// The entries of its keys, in order; empty if it does not load them.
    pub entries: &'a mut [Option<Entry>],
    pub effects: &'a mut Effects,
    pub store: &'a Store,
}

impl<'a> Call<'a> {
    /// The argument at a position; empty beyond the end, which the table's arity excludes.
    pub fn arg(&self, index: usize) -> &'a Bytes {
        self.args.get(index).unwrap_or(&EMPTY)
    }

    /// The argument at a position as a number.
    pub fn integer(&self, index: usize) -> Result<i64> {
        parse_i64(self.arg(index)).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// The entry of the `index`-th key.
    pub fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index).and_then(Option::as_ref)
    }

    /// Takes the entry of the `index`-th key.
    pub fn take(&mut self, index: usize) -> Option<Entry> {
        self.entries.get_mut(index).and_then(Option::take)
    }

    /// A reply with the value of the `index`-th key, which is taken.
    pub fn value_reply(&mut self, index: usize) -> Reply {
        Reply::value(self.take(index).map(|entry| entry.value))
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.store.now_ms()).unwrap_or(i64::MAX)
    }

    /// Sets a key to an entry. The store copies a key that it keeps.
    pub fn put(&mut self, key: &Bytes, entry: Entry) {
        self.effects.writes.push((key.clone(), Some(entry)));
    }

    /// Sets a key to a value and keeps the expiry.
    pub fn put_value(&mut self, key: &Bytes, value: impl Into<Value>, expires_at_ms: u64) {
        self.put(key, Entry { value: value.into(), expires_at_ms });
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &Bytes) {
        self.effects.writes.push((key.clone(), None));
    }

    /// The error for an unknown option.
    pub fn syntax<T>() -> Result<T> {
        Err(CommandError::SYNTAX)
    }
}
