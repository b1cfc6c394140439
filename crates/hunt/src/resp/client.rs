//! A client: makes requests one after the other, and compares every reply with what its references allow.

use super::Session;
use super::command::Command;
use super::ledger::{Effect, Ledger, Sent};
use super::line::Line;
use super::requests::Draw;
use super::semantics::{Change, Held, Impossible, State, Window};
use super::wire::Reply;
use crate::habits::Resp;
use crate::trouble::Trouble;
use crate::world::World;
use bytes::Bytes;
use softflash_base::random::Rng;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

/// A client of a world.
pub struct RespClient {
    pub(super) number: u16,
    rng: RefCell<Rng>,
    /// What it was promised of its own keys.
    pub(super) ledger: RefCell<Ledger>,
}

/// Whether the client goes on.
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

    /// All keys that only it writes.
    pub(super) fn keys(&self, world: &World) -> impl Iterator<Item = Bytes> {
        (0..world.clients.keys).map(|number| self.key(number))
    }

    /// Whether a key is one of those.
    pub(super) fn owns(&self, key: &[u8]) -> bool {
        key.starts_with(format!("client{:02}:", self.number).as_bytes())
    }

    fn key(&self, number: u64) -> Bytes {
        let padding = "k".repeat((number % 40) as usize);
        Bytes::from(format!("client{:02}:{number}:{padding}", self.number))
    }

    /// Makes its requests of a session.
    pub(super) async fn work(&self, session: &Session<'_>) -> Result<(), Trouble> {
        let world = session.world;
        let Some(resp) = &world.resp else { return Ok(()) };
        let mut rng = Rng::seeded(self.rng.borrow_mut().next_u64());
        let mut line = Line::connect(session, &mut rng);
        for _ in 0..world.clients.requests {
            self.pause(session, &mut rng).await;
            session.crew.note_request();
            if rng.chance(resp.clears) {
                self.clear(session, &mut line, &mut rng).await?;
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
        let pace = &session.world.pace;
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
        if rng.chance(0.02) {
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

    fn draw(&self, session: &Session<'_>, resp: &Resp, count: u64, rng: &mut Rng) -> Vec<Command> {
        let key = |number| self.key(number);
        let (habits, now_ms) = (&session.world.clients, session.clock_ms().from_ms);
        let draw = Draw { habits, resp, now_ms, key: &key };
        (0..count).map(|_| draw.command(rng)).collect()
    }

    /// Commands that are sent at once.
    async fn pipeline(
        &self,
        session: &Session<'_>,
        line: &mut Line<'_>,
        commands: &[Command],
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let from_ms = session.clock_ms().from_ms;
        self.sends(session, commands, from_ms, false);
        let words: Vec<Vec<Bytes>> = commands.iter().map(Command::words).collect();
        let replies = line.ask(&words, rng).await?;
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let mut state = self.ledger.borrow().current().clone();
        let mut effects = Vec::new();
        let mut refused = None;
        for (command, reply) in commands.iter().zip(&replies) {
            match Trouble::of_reply(reply) {
                Some(Trouble::Full) => refused = Some(Trouble::Full),
                Some(trouble) => return Err(trouble),
                None => {
                    let change = self.answered(&state, command, reply, at)?;
                    state.extend(change.after.clone());
                    effects.extend(Effect::of(change, &|key| session.shard_of(key)));
                }
            }
        }
        self.ledger.borrow_mut().answered(effects);
        refused.map_or(Ok(()), Err)
    }

    fn answered(
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

    /// Notes what some commands may do: each on its own, or all of them `together` or none.
    fn sends(&self, session: &Session<'_>, commands: &[Command], from_ms: u64, together: bool) {
        let sent = Sent { commands: commands.to_vec(), from_ms, together };
        self.ledger.borrow_mut().sends(sent, &|key| session.shard_of(key));
    }

    /// A transaction on own keys, perhaps with some of them watched, perhaps discarded.
    async fn transaction(
        &self,
        session: &Session<'_>,
        resp: &Resp,
        line: &mut Line<'_>,
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let count = 1 + rng.below(resp.pipeline);
        let mut watched = None;
        if rng.chance(0.3) {
            let key = self.key(rng.below(session.world.clients.keys));
            expect(line.ask(&[vec!["WATCH".into(), key.clone()]], rng).await?, &[Reply::OK])?;
            // What is changed behind a watch, also by the one who watches, ends the transaction.
            let touched = rng.chance(0.2);
            if touched {
                let set = Command::Append(key.clone(), "touched".into());
                self.pipeline(session, line, &[set], rng).await?;
            }
            watched = Some((key, touched));
            self.pause(session, rng).await;
        }
        let commands = self.draw(session, resp, count, rng);
        let mut words = vec![vec![Bytes::from("MULTI")]];
        words.extend(commands.iter().map(Command::words));
        let mut expected = vec![Reply::OK];
        expected.resize(1 + commands.len(), Reply::Status("QUEUED".into()));
        if rng.chance(0.1) {
            words.push(vec!["DISCARD".into()]);
            expected.push(Reply::OK);
            return expect(line.ask(&words, rng).await?, &expected);
        }
        let from_ms = session.clock_ms().from_ms;
        let at_once = rng.chance(0.5);
        if !at_once {
            let queued = std::mem::take(&mut words);
            expect(line.ask(&queued, rng).await?, &expected)?;
            self.pause(session, rng).await;
        }
        self.sends(session, &commands, from_ms, true);
        words.push(vec!["EXEC".into()]);
        let mut replies = line.ask(&words, rng).await?;
        let outcome = replies.pop().unwrap_or(Reply::Nil);
        if at_once {
            expect(replies, &expected)?;
        }
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        self.executed(session, &commands, outcome, watched, at)
    }

    fn executed(
        &self,
        session: &Session<'_>,
        commands: &[Command],
        outcome: Reply,
        watched: Option<(Bytes, bool)>,
        at: Window,
    ) -> Result<(), Trouble> {
        let mut state = self.ledger.borrow().current().clone();
        let wrong = |what: String| Err(Trouble::Wrong(format!("client {}: {what}", self.number)));
        let replies = match outcome {
            Reply::Array(replies) if replies.len() == commands.len() => replies,
            Reply::Nil => {
                let expired = |held: &Option<Held>| {
                    held.as_ref()
                        .is_some_and(|held| held.dies.is_some_and(|dies| dies.from_ms <= at.to_ms))
                };
                let may_fail = watched.is_some_and(|(key, touched)| {
                    touched || state.get(&key).is_some_and(|possible| possible.iter().any(expired))
                });
                if !may_fail {
                    return wrong(
                        "a transaction was refused, and nobody has changed what it watched"
                            .to_owned(),
                    );
                }
                self.ledger.borrow_mut().answered(Vec::new());
                return Ok(());
            }
            other => {
                return match Trouble::of_reply(&other) {
                    Some(Trouble::Full) => {
                        self.ledger.borrow_mut().answered(Vec::new());
                        Err(Trouble::Full)
                    }
                    Some(trouble) => Err(trouble),
                    None => wrong(format!("EXEC was answered {}", other.shown())),
                };
            }
        };
        if watched.is_some_and(|(_, touched)| touched) {
            return wrong("a transaction ran although what it watched had been changed".to_owned());
        }
        let mut whole = Change::default();
        for (command, reply) in commands.iter().zip(&replies) {
            if let Some(trouble) = Trouble::of_reply(reply) {
                return Err(trouble);
            }
            let change = self.answered(&state, command, reply, at)?;
            state.extend(change.after.clone());
            whole.then(change);
        }
        let effects = Effect::of(whole, &|key| session.shard_of(key));
        self.ledger.borrow_mut().answered(effects);
        Ok(())
    }

    /// A whole iteration shows every own key that is there, and no other.
    async fn scan(
        &self,
        session: &Session<'_>,
        line: &mut Line<'_>,
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let from_ms = session.clock_ms().from_ms;
        let pattern = Bytes::from(format!("client{:02}:*", self.number));
        let count = Bytes::from((1 + rng.below(30)).to_string());
        let (mut seen, mut cursor) = (BTreeSet::new(), Bytes::from("0"));
        loop {
            let words: [Bytes; 6] = [
                "SCAN".into(),
                cursor,
                "MATCH".into(),
                pattern.clone(),
                "COUNT".into(),
                count.clone(),
            ];
            let reply = line.ask(&[words.to_vec()], rng).await?.pop();
            if let Some(trouble) = reply.as_ref().and_then(Trouble::of_reply) {
                return Err(trouble);
            }
            let Some(Reply::Array(page)) = reply else { return unexpected("SCAN", reply) };
            let [Reply::Bulk(next), Reply::Array(keys)] = &page[..] else {
                return unexpected("SCAN", Some(Reply::Array(page)));
            };
            for key in keys {
                let Reply::Bulk(key) = key else { return unexpected("SCAN", Some(key.clone())) };
                seen.insert(key.clone());
            }
            cursor = next.clone();
            if cursor == "0" {
                break;
            }
        }
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let ledger = self.ledger.borrow();
        let held = |key: &Bytes| ledger.current().get(key).cloned().unwrap_or_else(|| vec![None]);
        let may_show = |held: &Option<Held>| {
            held.as_ref().is_some_and(|held| held.dies.is_none_or(|dies| dies.to_ms > at.from_ms))
        };
        let may_hide = |held: &Option<Held>| {
            held.as_ref().is_none_or(|held| held.dies.is_some_and(|dies| dies.from_ms <= at.to_ms))
        };
        for key in ledger.current().keys().chain(&seen) {
            let shown = seen.contains(key);
            let fits =
                held(key).iter().any(|held| if shown { may_show(held) } else { may_hide(held) });
            if !fits {
                let what = if shown { "shows a key that is not there" } else { "misses a key" };
                return Err(Trouble::Wrong(format!("SCAN {what}: `{}`", key.escape_ascii())));
            }
        }
        Ok(())
    }

    /// Removes everything that everybody has.
    async fn clear<'a>(
        &self,
        session: &'a Session<'a>,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<(), Trouble> {
        let shards = session.stores[0].layout().shards;
        let _all = session.gate.acquire(session.gate.capacity()).await;
        if session.crew.lost.get() {
            // What was sent by those who have gone may come after it.
            return Ok(());
        }
        session.crew.clearing(shards);
        let reply = line.ask(&[vec!["FLUSHALL".into()]], rng).await?.pop();
        match reply.as_ref().and_then(Trouble::of_reply) {
            Some(trouble) => return Err(trouble),
            None if reply != Some(Reply::OK) => return unexpected("FLUSHALL", reply),
            None => session.crew.cleared(shards),
        }
        Ok(())
    }

    /// What is sent as the connection ends: commands, and the beginning of another.
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
            // Nobody says EXEC, so nothing happens.
            words.insert(0, vec!["MULTI".into()]);
        } else {
            self.sends(session, &commands, session.clock_ms().from_ms, false);
        }
        (words, partial.iter().flat_map(Command::words).collect())
    }
}

/// Replies that can only be these.
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
