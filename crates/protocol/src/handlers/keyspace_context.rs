//! What commands on the whole keyspace share: KEYS, SCAN, RANDOMKEY, DBSIZE and others.

use crate::acl::User;
use crate::context::Context;
use crate::error::Result;
use crate::handlers::overlay::Overlay;
use crate::session::TURN;
use bytes::Bytes;
use softflash_base::{SliceId, Time};
use softflash_store::stats::KeyCount;
use softflash_store::{ScanPage, Store, StoreError};
use std::time::Duration;

/// What a command on the whole keyspace runs with.
pub(crate) struct KeyspaceContext<'a> {
    pub store: &'a Store,
    pub context: &'a Context,
    pub args: &'a [Bytes],
    /// The user, if it may not see every key.
    pub viewer: Option<&'a User>,
    /// The changes of its transaction.
    pub overlay: Option<Overlay<'a>>,
}

/// Maximum size of a page: the work on it is not divided.
pub(crate) const PAGE_KEYS: usize = 1024;

/// Lets others run between the pages of a long command, unless it holds what they wait for.
pub(crate) struct Turns<'a> {
    /// None for a command that holds it.
    store: Option<&'a Store>,
    began: Time,
}

impl Turns<'_> {
    /// After a page.
    pub async fn take(&mut self) {
        let Some(runtime) = self.store.map(Store::runtime) else { return };
        if Duration::from_nanos(runtime.now().since_ns(self.began)) > TURN {
            runtime.turn().await;
            self.began = runtime.now();
        }
    }
}

impl KeyspaceContext<'_> {
    /// Whether the user may see a key.
    pub fn shows(&self, key: &[u8]) -> bool {
        self.viewer.is_none_or(|user| user.sees(key))
    }

    /// The turns of a command that begins.
    pub fn turns(&self) -> Turns<'_> {
        let holds = self.overlay.is_some();
        Turns { store: (!holds).then_some(self.store), began: self.store.runtime().now() }
    }

    /// All visible keys for which `fits` is true, in no order.
    pub async fn keys(&self, mut fits: impl FnMut(&[u8]) -> bool) -> Result<Vec<Bytes>> {
        let mut fits = |key: &[u8]| fits(key) && self.shows(key);
        let mut keys = Vec::new();
        let mut turns = self.turns();
        let slices = if self.is_cleared() { 0 } else { self.store.layout().slices };
        for slice in (0..slices).map(SliceId) {
            let mut after = None;
            loop {
                let ScanPage { items, next } = self.page(slice, after, PAGE_KEYS).await?;
                turns.take().await;
                keys.extend(items.into_iter().map(|(key, _)| key).filter(|key| fits(key)));
                match next {
                    Some(last) => after = Some(last),
                    None => break,
                }
            }
        }
        if let Some(overlay) = self.overlay {
            let written = overlay.changes.live(self.store.now_ms());
            keys.extend(written.filter(|key| fits(key)).cloned());
        }
        Ok(keys)
    }

    /// The number of keys.
    pub async fn key_count(&self) -> Result<KeyCount> {
        match self.overlay {
            Some(overlay) => overlay.key_count(self.store.now_ms()).await,
            None => Ok(self.store.key_count().await?),
        }
    }

    /// A page of the store's keys, with empty large values, without those that the transaction has
    /// written or removed.
    pub async fn page(
        &self,
        slice: SliceId,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<ScanPage, StoreError> {
        let Some(Overlay { changes, exclusive }) = self.overlay else {
            return self.store.scan_keys(slice, after, limit).await;
        };
        let mut page = exclusive.scan_keys(slice, after, limit).await?;
        page.items.retain(|(key, _)| changes.is_untouched(key));
        Ok(page)
    }

    /// Whether the transaction has removed all keys of the store.
    pub fn is_cleared(&self) -> bool {
        self.overlay.is_some_and(|overlay| overlay.changes.cleared)
    }
}
