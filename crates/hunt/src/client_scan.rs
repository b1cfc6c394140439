//! Scans of a slice by a client that calls the store, compared with the writes of all clients
//! meanwhile: what exists during the whole page must be there, and a value is one that was current
//! at some time of it.

use crate::client::Client;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_store::{Entry, Store};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The bounds of pages, as powers of two: a scan takes 128 keys of a memtable at a time.
const SHORTEST_PAGE: u64 = 6;
const LONGEST_PAGE: u64 = 10;

/// A page that was read, and the writes of each client that were acknowledged when it began.
struct Seen<'a> {
    store: &'a Store,
    slice: SliceId,
    keys: (Bound<&'a Bytes>, Bound<&'a Bytes>),
    found: BTreeMap<&'a Bytes, &'a Entry>,
}

impl Client {
    /// Scans one of the slices.
    pub(crate) async fn scan(
        &self,
        store: &Store,
        clients: &[Client],
    ) -> Result<(), SessionFailure> {
        let (slice, limit) = {
            let mut rng = self.rng.borrow_mut();
            let slice = rng.below(u64::from(store.layout().slices)) as u16;
            let exponent = SHORTEST_PAGE + rng.below(LONGEST_PAGE - SHORTEST_PAGE + 1);
            (SliceId(slice), 1_usize << exponent)
        };
        let mut after: Option<Bytes> = None;
        loop {
            let before: Vec<usize> =
                clients.iter().map(|client| client.promise.borrow().answered()).collect();
            let page = store.scan(slice, after.clone(), limit).await?;
            let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let to = page.next.as_ref().map_or(Bound::Unbounded, Bound::Included);
            let found = page.items.iter().map(|(key, entry)| (key, entry)).collect();
            let seen = Seen { store, slice, keys: (from, to), found };
            for (client, before) in clients.iter().zip(before) {
                seen.compare(client, before)?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

impl Seen<'_> {
    /// Compares the keys of a client, of whose writes so many were acknowledged when the page
    /// began.
    fn compare(&self, client: &Client, before: usize) -> Result<(), SessionFailure> {
        let possible = client.promise.borrow().possible_since(before);
        let known = |key: &Bytes| possible.contains_key(key);
        let mut strange =
            self.found.keys().filter(|key| client.owns(key)).filter(|key| !known(key));
        if let Some(key) = strange.next() {
            return wrong(key, "was never written");
        }
        for (key, values) in possible.range::<Bytes, _>(self.keys) {
            if self.store.layout().slice_of(key) != self.slice {
                continue;
            }
            let found = self.found.get(key).map(|entry| entry.value.to_bytes());
            if values.contains(&found) {
                continue;
            }
            return wrong(
                key,
                match found {
                    None => "existed during a scan, which misses it",
                    Some(_) => "has a value in a scan that it did not have meanwhile",
                },
            );
        }
        Ok(())
    }
}

fn wrong(key: &Bytes, what: &str) -> Result<(), SessionFailure> {
    Err(SessionFailure::Wrong(format!("key `{}` {what}", key.escape_ascii())))
}
