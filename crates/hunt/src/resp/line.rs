//! A client's connection: requests and replies are split at random places.

use super::admission::TightAdmission;
use super::session::Session;
use super::wire::{Reply, replies, request};
use crate::session_failure::SessionFailure;
use bytes::{Buf, Bytes};
use futures_util::future::select;
use softflash_base::random::Rng;
use softflash_protocol::{Connection, Step};
use softflash_store::Store;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A connection to one of the server's threads.
pub(crate) struct Line<'a> {
    session: &'a Session<'a>,
    connection: Connection<TightAdmission>,
    store: &'a Store,
    received: Vec<u8>,
}

impl<'a> Line<'a> {
    pub fn connect(session: &'a Session<'a>, rng: &mut Rng) -> Line<'a> {
        let store = &session.stores[rng.below(session.stores.len() as u64) as usize];
        let address = || "127.0.0.1:1".to_owned();
        let context = Arc::clone(&session.context);
        let memory = session.memory.of_connection(rng);
        let connection = Connection::new(context, address(), address(), store.now_ms(), memory);
        Line { session, connection, store, received: Vec::new() }
    }

    /// Sends commands and receives as many replies.
    pub async fn ask(
        &mut self,
        commands: &[Vec<Bytes>],
        rng: &mut Rng,
    ) -> Result<Vec<Reply>, SessionFailure> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|words| request(words, &mut bytes));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let whole = rng.chance(0.8);
            let length = if whole { rest.len() } else { 1 + rng.below(rest.len() as u64) as usize };
            let (now, later) = rest.split_at(length);
            self.feed(now, rng).await?;
            rest = later;
        }
        let received = std::mem::take(&mut self.received);
        self.session.common.note_received(&received);
        let replies = replies(&received).map_err(SessionFailure::Wrong)?;
        if replies.len() != commands.len() {
            let (sent, answered) = (commands.len(), replies.len());
            return Err(SessionFailure::Wrong(format!("{sent} commands got {answered} replies")));
        }
        Ok(replies)
    }

    /// Sends commands, the last one incomplete, and disconnects within a moment.
    pub async fn vanish(mut self, commands: &[Vec<Bytes>], partial: &[Bytes], rng: &mut Rng) {
        let mut bytes = Vec::new();
        commands.iter().for_each(|words| request(words, &mut bytes));
        let mut last = Vec::new();
        request(partial, &mut last);
        last.truncate(rng.below(last.len() as u64) as usize);
        bytes.extend(last);
        let runtime = self.store.runtime().clone();
        let patience = Duration::from_nanos(1 << rng.below(22));
        let gone = runtime.sleep_until(runtime.now() + patience);
        drop(select(pin!(self.feed(&bytes, rng)), gone).await);
    }

    async fn feed(&mut self, bytes: &[u8], rng: &mut Rng) -> Result<(), SessionFailure> {
        self.connection.feed(bytes);
        loop {
            let step = self.connection.advance(self.store).await;
            self.receive(rng).await;
            match step {
                Step::Read => return Ok(()),
                Step::Again => {}
                Step::Close | Step::Refuse => {
                    return Err(SessionFailure::Wrong(
                        "the server has closed a connection".to_owned(),
                    ));
                }
            }
        }
    }

    /// Receives the replies, possibly in parts with pauses between them.
    async fn receive(&mut self, rng: &mut Rng) {
        while !self.connection.output().is_empty() {
            let mut length = self.connection.output().len();
            if let Some(rest) = self.session.memory.limits.rest(rng) {
                let runtime = self.store.runtime();
                runtime.sleep_until(runtime.now() + rest).await;
                length = 1 + rng.below(length as u64) as usize;
            }
            let part = self.connection.output().copy_to_bytes(length);
            self.received.extend_from_slice(&part);
            self.connection.has_sent();
        }
    }
}
