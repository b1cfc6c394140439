//! A RESP client: makes one request after the other, and compares every reply with its reference.
//! Requests of several steps are in `transaction`, `scan`, `sharing`, `watching`.

use super::Session;
use super::command::Command;
use super::ledger::{Ledger, Sent};
use super::line::Line;
use super::requests::Draw;
use super::semantics::{Change, Impossible, Possible, State, Window};
use super::wire::Reply;
use crate::client_model::Resp;
use crate::scenario::Scenario;
use crate::trouble::Trouble;
use bytes::Bytes;
use softflash_base::random::Rng;
use std::cell::RefCell;
use std::time::Duration;

/// A client of a scenario.
pub struct RespClient {
    pub(super) number: u16,
    rng: RefCell<Rng>,
    /// The reference of the client's own keys.
    pub(super) ledger: RefCell<Ledger>,
}

/// Whether the client continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Stays,
    Gone,
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

    /// Makes the requests of a session.
    pub(super) async fn work(&self, session: &Session<'_>) -> Result<(), Trouble> {
        let scenario = session.scenario;
        let Some(resp) = &scenario.resp else { return Ok(()) };
        let mut rng = Rng::seeded(self.rng.borrow_mut().next_u64());
        let mut line = Line::connect(session, &mut rng);
        for _ in 0..scenario.clients.requests {
            self.pause(session, &mut rng).await;
            session.crew.note_request();
            if rng.chance(resp.clears) {
                self.clear(session, resp.clears_beside, &mut line, &mut rng).await?;
                continue;
            }
            let _turn = session.gate.acquire(1).await;
            match self.request(session, resp, &mut line, &mut rng).await? {
                Next::Stays => {}
                Next::Gone => {
                    session.crew.lost.set(true);
                    let (commands, partial) = self.last_words(session, resp, &mut rng);
                    line.vanish(&commands, &partial, &mut rng).await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub(super) async fn pause(&self, session: &Session<'_>, rng: &mut Rng) {
        let pace = &session.scenario.pace;
        if !rng.chance(pace.pauses) {
            return;
        }
        let longest = (pace.longest_pause_ms.max(1) as f64).log2();
        let ms = (longest * rng.unit_f64()).exp2() as u64;
        let runtime = session.stores[0].runtime();
        runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
    }

    async fn request<'a>(
        &self,
        session: &'a Session<'a>,
        resp: &Resp,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<Next, Trouble> {
        if rng.chance(resp.vanishing) {
            return Ok(Next::Gone);
        }
        if rng.chance(0.02) {
            *line = Line::connect(session, rng);
        }
        if resp.litter > 0.0 && rng.chance(resp.litter) {
            self.litter(session, resp, line, rng).await?;
        } else if rng.chance(resp.scans) {
            self.scan(session, line, rng).await?;
        } else if resp.lists > 0 && rng.chance(resp.list_share) {
            self.list(session, line, rng).await?;
        } else if rng.chance(resp.transactions) {
            self.transaction(session, resp, line, rng).await?;
        } else {
            let count = 1 + rng.below(resp.pipeline);
            let commands = self.draw(session, resp, count, rng);
            self.pipeline(session, line, &commands, rng).await?;
        }
        Ok(Next::Stays)
    }

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
    ) -> Result<(), Trouble> {
        let from_ms = session.clock_ms().from_ms;
        self.sends(commands, from_ms, false);
        let words: Vec<Vec<Bytes>> = commands.iter().map(Command::words).collect();
        let replies = line.ask(&words, rng).await?;
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let shard_of = |key: &[u8]| session.shard_of(key);
        let mut refused = None;
        for (command, reply) in commands.iter().zip(&replies) {
            match Trouble::of_reply(reply) {
                Some(Trouble::Full) => refused = Some(Trouble::Full),
                Some(trouble) => return Err(trouble),
                None => self.ledger.borrow_mut().learns(&command.keys(), &shard_of, |state| {
                    self.answered(state, command, reply, at)
                })?,
            }
        }
        self.ledger.borrow_mut().is_answered();
        refused.map_or(Ok(()), Err)
    }

    pub(super) fn answered(
        &self,
        state: &State,
        command: &Command,
        reply: &Reply,
        at: Window,
    ) -> Result<Change, Trouble> {
        let answered = command.answered(state, reply, at);
        answered.map_err(|Impossible(what)| {
            Trouble::Wrong(format!("client {} at {at:?}: {what}", self.number))
        })
    }

    /// Records commands as sent: each atomic by itself, or with `together` all of them as one.
    pub(super) fn sends(&self, commands: &[Command], from_ms: u64, together: bool) {
        let sent = Sent { commands: commands.to_vec(), from_ms, together };
        self.ledger.borrow_mut().sends(sent);
    }

    /// FLUSHALL, concurrent with other clients or alone.
    async fn clear<'a>(
        &self,
        session: &'a Session<'a>,
        beside: bool,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let all = session.gate.capacity();
        let _turn = session.gate.acquire(if beside { 1 } else { all }).await;
        let _only = session.removal.acquire(1).await;
        if session.crew.lost.get() && !beside {
            // Commands sent by disconnected clients may run after it.
            return Ok(());
        }
        session.crew.removal_begins();
        let reply = line.ask(&[vec!["FLUSHALL".into()]], rng).await?.pop();
        match reply.as_ref().and_then(Trouble::of_reply) {
            Some(trouble) => return Err(trouble),
            None if reply != Some(Reply::OK) => return unexpected("FLUSHALL", reply),
            None => session.crew.removal_ended(),
        }
        Ok(())
    }

    /// Commands that are sent as the connection ends: some whole, and the beginning of another.
    fn last_words(
        &self,
        session: &Session<'_>,
        resp: &Resp,
        rng: &mut Rng,
    ) -> (Vec<Vec<Bytes>>, Vec<Bytes>) {
        let count = rng.below(resp.pipeline + 1);
        let commands = self.draw(session, resp, count, rng);
        let partial = self.draw(session, resp, 1, rng);
        let mut words: Vec<Vec<Bytes>> = commands.iter().map(Command::words).collect();
        if rng.chance(0.3) {
            // Without EXEC the transaction has no effect.
            words.insert(0, vec!["MULTI".into()]);
        } else {
            self.sends(&commands, session.clock_ms().from_ms, false);
        }
        (words, partial.iter().flat_map(Command::words).collect())
    }
}

/// Checks replies that have a single possible value.
pub(super) fn expect(replies: Vec<Reply>, expected: &[Reply]) -> Result<(), Trouble> {
    match replies.iter().zip(expected).find(|(reply, expected)| reply != expected) {
        None => Ok(()),
        Some((reply, _)) => unexpected("a command", Some(reply.clone())),
    }
}

pub(super) fn unexpected<T>(command: &str, reply: Option<Reply>) -> Result<T, Trouble> {
    let Some(reply) = reply else {
        return Err(Trouble::Wrong(format!("{command} was not answered")));
    };
    Err(Trouble::of_reply(&reply)
        .unwrap_or_else(|| Trouble::Wrong(format!("{command} was answered {}", reply.shown()))))
}
