//! A RESP client: its keys, its pipelines of commands, and the comparison of every reply with its
//! reference.

use super::command::Command;
use super::ledger::{Ledger, Sent};
use super::line::Line;
use super::requests::Draw;
use super::semantics::{Change, Impossible, Possible, State, Window};
use super::session::Session;
use super::wire::Reply;
use crate::client_model::Resp;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;
use std::cell::RefCell;
use std::time::Duration;

/// The client waits for the expiry of a key if it is at most this far away.
const LONGEST_WAIT_MS: u64 = 10_000;

/// A client of a scenario.
pub struct RespClient {
    pub(super) number: u16,
    rng: RefCell<Rng>,
    /// The reference of the client's own keys.
    pub(super) ledger: RefCell<Ledger>,
}

impl RespClient {
    pub(super) fn new(number: u16, rng: &Rng) -> RespClient {
        let rng = RefCell::new(rng.fork(number.to_le_bytes()));
        RespClient { number, rng, ledger: RefCell::default() }
    }

    /// All keys that only this client writes.
    pub(super) fn keys(&self, scenario: &Scenario) -> impl Iterator<Item = Bytes> {
        (0..scenario.clients.keys).map(|number| self.key(number))
    }

    /// Whether a key is one of them.
    pub(super) fn owns(&self, key: &[u8]) -> bool {
        key.starts_with(format!("client{:02}:", self.number).as_bytes())
    }

    /// The random numbers of its next session.
    pub(super) fn rng_of_session(&self) -> Rng {
        Rng::seeded(self.rng.borrow_mut().next_u64())
    }

    /// Any of its keys.
    pub(super) fn any_key(&self, session: &Session<'_>, rng: &mut Rng) -> Bytes {
        self.key(rng.below(session.scenario.clients.keys))
    }

    /// The possible states of one of its keys.
    pub(super) fn possible(&self, session: &Session<'_>, key: &Bytes) -> Possible {
        self.ledger.borrow().current().possible(key, session.shard_of(key))
    }

    fn key(&self, number: u64) -> Bytes {
        let padding = "k".repeat((number % 40) as usize);
        Bytes::from(format!("client{:02}:{number}:{padding}", self.number))
    }

    /// Waits until one of these keys has expired, if one does soon.
    pub(super) async fn outlive(&self, session: &Session<'_>, keys: &[Bytes]) {
        let now_ms = session.clock_ms().to_ms;
        let ends = |key: &Bytes| {
            let possible = self.possible(session, key);
            possible.into_iter().filter_map(|held| held?.dies).map(|dies| dies.to_ms).max()
        };
        let soon = now_ms..now_ms + LONGEST_WAIT_MS;
        let end = keys.iter().filter_map(ends).filter(|end_ms| soon.contains(end_ms)).min();
        if let Some(end_ms) = end {
            session.sleep(Duration::from_millis(end_ms - now_ms + 1)).await;
        }
    }

    /// Draws commands on its keys.
    pub(super) fn draw(
        &self,
        session: &Session<'_>,
        resp: &Resp,
        count: u64,
        rng: &mut Rng,
    ) -> Vec<Command> {
        let key = |number| self.key(number);
        let (workload, now_ms) = (&session.scenario.clients, session.clock_ms().from_ms);
        let draw = Draw { workload, resp, now_ms, key: &key };
        (0..count).map(|_| draw.command(rng)).collect()
    }

    /// A pipeline of commands.
    pub(super) async fn pipeline(
        &self,
        session: &Session<'_>,
        line: &mut Line<'_>,
        commands: &[Command],
        rng: &mut Rng,
    ) -> Result<(), SessionFailure> {
        let from_ms = session.clock_ms().from_ms;
        self.sends(commands, from_ms, false);
        let words: Vec<Vec<Bytes>> = commands.iter().map(Command::words).collect();
        let replies = line.ask(&words, rng).await?;
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let shard_of = |key: &[u8]| session.shard_of(key);
        let mut refused = None;
        for (number, (command, reply)) in commands.iter().zip(&replies).enumerate() {
            match SessionFailure::of_reply(reply) {
                Some(SessionFailure::Full) => refused = Some(SessionFailure::Full),
                Some(failure) => {
                    self.ledger.borrow_mut().first_are_answered(number);
                    return Err(failure);
                }
                None => self.ledger.borrow_mut().learns(&command.keys(), &shard_of, |state| {
                    self.answered(state, command, reply, at)
                })?,
            }
        }
        self.ledger.borrow_mut().is_answered();
        refused.map_or(Ok(()), Err)
    }

    /// The effect of a command that was answered.
    pub(super) fn answered(
        &self,
        state: &State,
        command: &Command,
        reply: &Reply,
        at: Window,
    ) -> Result<Change, SessionFailure> {
        let answered = command.answered(state, reply, at);
        answered.map_err(|Impossible(what)| {
            SessionFailure::Wrong(format!("client {} at {at:?}: {what}", self.number))
        })
    }

    /// Records commands as sent: each atomic by itself, or with `together` all of them as one.
    pub(super) fn sends(&self, commands: &[Command], from_ms: u64, together: bool) {
        let sent = Sent { commands: commands.to_vec(), from_ms, together };
        self.ledger.borrow_mut().sends(sent);
    }
}

/// Checks replies that have a single possible value.
pub(super) fn expect(replies: Vec<Reply>, expected: &[Reply]) -> Result<(), SessionFailure> {
    match replies.iter().zip(expected).find(|(reply, expected)| reply != expected) {
        None => Ok(()),
        Some((reply, _)) => unexpected("a command", Some(reply.clone())),
    }
}

/// The error of a reply that is not among the possible ones.
pub(super) fn unexpected<T>(command: &str, reply: Option<Reply>) -> Result<T, SessionFailure> {
    let Some(reply) = reply else {
        return Err(SessionFailure::Wrong(format!("{command} was not answered")));
    };
    Err(SessionFailure::of_reply(&reply).unwrap_or_else(|| {
        SessionFailure::Wrong(format!("{command} was answered {}", reply.shown()))
    }))
}
