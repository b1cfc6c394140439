//! A client of a connection in this process.

use super::encode;
use super::frame::Frame;
use softflash_protocol::{Admission, Connection, Context, ContextOptions, Step, Unlimited};
use softflash_store::Store;
use std::convert::Infallible;
use std::sync::Arc;

/// Unlimited memory, counted.
#[derive(Debug, Default)]
pub struct Counted {
    /// Total bytes reserved.
    pub total: u64,
    /// Bytes held now.
    pub held: u64,
}

impl Admission for Counted {
    type Permit = Unlimited;
    type Refusal = Infallible;

    async fn reserve(&mut self, bytes: u64) -> Result<(), Infallible> {
        self.total += bytes;
        self.held += bytes;
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        assert!(bytes <= self.held, "{bytes} of {} bytes are used", self.held);
        self.held = bytes;
    }

    async fn begin(&mut self) -> Unlimited {
        Unlimited
    }

    fn begin_little(&mut self) -> Unlimited {
        Unlimited
    }
}

/// A connection and its output.
pub struct Ours {
    pub connection: Connection<Counted>,
    pub store: Store,
    pub closed: bool,
    received: Vec<u8>,
}

/// A context without a password.
pub fn context(store: &Store) -> Arc<Context> {
    Arc::new(Context::new(ContextOptions::new(store.now_ms(), 1)))
}

impl Ours {
    pub fn connect(context: &Arc<Context>, store: &Store) -> Ours {
        let address = || "127.0.0.1:1".to_owned();
        let (context, now_ms) = (Arc::clone(context), store.now_ms());
        let connection = Connection::new(context, address(), address(), now_ms, Counted::default());
        Ours { connection, store: store.clone(), closed: false, received: Vec::new() }
    }

    /// Total bytes reserved for it.
    pub fn reserved_bytes(&self) -> u64 {
        self.connection.admission().total
    }

    /// Bytes held for it.
    pub fn held_bytes(&self) -> u64 {
        self.connection.admission().held
    }

    /// Sends bytes and runs the connection until it needs more input.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.connection.feed(bytes);
        loop {
            let step = self.connection.advance(&self.store).await;
            self.received.extend_from_slice(&self.connection.output().take_bytes());
            self.connection.has_sent();
            match step {
                Step::Read => return,
                Step::Again => {}
                Step::Close | Step::Refuse => {
                    self.closed = true;
                    return;
                }
            }
        }
    }

    /// All bytes received since the last call.
    pub fn received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }

    /// Sends bytes and returns the output.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.send(bytes).await;
        self.received()
    }

    /// Sends a command and returns its reply.
    pub async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Frame {
        let reply = self.exchange(&encode(words)).await;
        Frame::whole(&reply)
    }

    /// Sends a command given as a line.
    pub async fn line(&mut self, line: &str) -> Frame {
        self.ask(&super::words(line)).await
    }
}
