//! A client of a connection in this process.

use super::encode;
use super::frame::Frame;
use softflash_protocol::{Connection, Context, ContextOptions, Step};
use softflash_store::Store;
use std::sync::Arc;

/// A connection and what came out of it.
pub struct Ours {
    pub connection: Connection,
    pub store: Store,
    pub closed: bool,
    /// Bytes that were reserved for it, in all.
    pub reserved: u64,
    received: Vec<u8>,
}

/// A context without a password.
pub fn context(store: &Store) -> Arc<Context> {
    Arc::new(Context::new(ContextOptions::new(store.now_ms(), 1)))
}

impl Ours {
    pub fn connect(context: &Arc<Context>, store: &Store) -> Ours {
        let address = || "127.0.0.1:1".to_owned();
        let connection = Connection::new(Arc::clone(context), address(), address(), store.now_ms());
        let store = store.clone();
        Ours { connection, store, closed: false, reserved: 0, received: Vec::new() }
    }

    /// Sends bytes and lets the connection work until it wants more.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.connection.feed(bytes);
        loop {
            let step = self.connection.process(&self.store).await;
            self.received.extend_from_slice(&self.connection.output().take_bytes());
            match step {
                Step::Read => return,
                Step::Again => {}
                Step::Need { bytes } => {
                    self.reserved += bytes;
                    self.connection.admit();
                }
                Step::Close => {
                    self.closed = true;
                    return;
                }
            }
        }
    }

    /// All bytes received since the last look.
    pub fn received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }

    /// Sends bytes and takes what comes back.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.send(bytes).await;
        self.received()
    }

    /// Sends a command and takes its reply.
    pub async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Frame {
        let reply = self.exchange(&encode(words)).await;
        Frame::whole(&reply)
    }

    /// Sends a command given as a line.
    pub async fn line(&mut self, line: &str) -> Frame {
        self.ask(&super::words(line)).await
    }
}
