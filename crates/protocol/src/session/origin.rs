//! The origin of commands.

use crate::context::Context;
use crate::shared::clients::Client;
use bytes::Bytes;
use softflash_base::Time;
use softflash_store::Store;
use std::sync::Arc;

/// The client and the context of a command.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub context: Arc<Context>,
    pub client: Arc<Client>,
}

impl Origin {
    /// Records a command that started to wait at `since` in the slow log, if it took long enough.
    pub fn note_wait(&self, store: &Store, words: &[Bytes], since: Time) {
        let took_us = store.runtime().now().since_ns(since) / 1000;
        if self.context.slowlog.is_slow(took_us) {
            let (client, name) = (&self.client, self.client.activity().name);
            let now_ms = store.now_ms();
            self.context.slowlog.enter(words, took_us, now_ms, &client.address, name);
        }
    }
}
