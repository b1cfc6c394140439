//! A client's transactions on its own keys.

use super::client::{RespClient, expect};
use super::command::Command;
use super::line::Line;
use super::semantics::{Change, State, Window};
use super::session::Session;
use super::watching::Watch;
use super::wire::Reply;
use crate::client_model::Resp;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;

impl RespClient {
    /// A transaction on own keys, possibly with watched keys, possibly discarded.
    pub(super) async fn transaction(
        &self,
        session: &Session<'_>,
        resp: &Resp,
        line: &mut Line<'_>,
        rng: &mut Rng,
    ) -> Result<(), SessionFailure> {
        let count = 1 + rng.below(resp.pipeline);
        let watch = match rng.chance(0.3) {
            true => Some(self.watch(session, resp, line, rng).await?),
            false => None,
        };
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
        let at_once = rng.chance(0.5);
        if !at_once {
            let queued = std::mem::take(&mut words);
            expect(line.ask(&queued, rng).await?, &expected)?;
            session.pause(rng).await;
        }
        let due = watch.as_ref().and_then(|watch| {
            let now_ms = session.clock_ms().from_ms;
            watch.must_refuse(session.common.removals(), now_ms, |key| self.possible(session, key))
        });
        let from_ms = session.clock_ms().from_ms;
        self.sends(&commands, from_ms, true);
        words.push(vec!["EXEC".into()]);
        let mut replies = line.ask(&words, rng).await?;
        let outcome = replies.pop().unwrap_or(Reply::Nil);
        if at_once {
            expect(replies, &expected)?;
        }
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let executed = self.executed(session, &commands, outcome, (watch, due), at);
        // After another error than that the flash is full, the transaction may have happened.
        if matches!(executed, Ok(_) | Err(SessionFailure::Full)) {
            self.ledger.borrow_mut().is_answered();
        }
        executed
    }

    fn executed(
        &self,
        session: &Session<'_>,
        commands: &[Command],
        outcome: Reply,
        (watch, due): (Option<Watch>, Option<&str>),
        at: Window,
    ) -> Result<(), SessionFailure> {
        let wrong =
            |what: String| Err(SessionFailure::Wrong(format!("client {}: {what}", self.number)));
        let replies = match (outcome, due) {
            (Reply::Array(_), Some(due)) => {
                return wrong(format!("a transaction ran although {due}"));
            }
            (Reply::Array(replies), None) if replies.len() == commands.len() => replies,
            (Reply::Nil, _) => return self.refused(session, watch, at),
            (other, _) => {
                return match SessionFailure::of_reply(&other) {
                    Some(failure) => Err(failure),
                    None => wrong(format!("EXEC was answered {}", other.shown())),
                };
            }
        };
        if let Some(failure) = replies.iter().find_map(SessionFailure::of_reply) {
            return Err(failure);
        }
        let keys: Vec<Bytes> = commands.iter().flat_map(Command::keys).collect();
        let shard_of = |key: &[u8]| session.shard_of(key);
        self.ledger.borrow_mut().learns(&keys, &shard_of, |state: &State| {
            let (mut state, mut whole) = (state.clone(), Change::default());
            for (command, reply) in commands.iter().zip(&replies) {
                let change = self.answered(&state, command, reply, at)?;
                state.extend(change.after.clone());
                whole.then(change);
            }
            Ok::<_, SessionFailure>(whole)
        })
    }

    /// A transaction was refused: because of its watches, or without a reason.
    fn refused(
        &self,
        session: &Session<'_>,
        watch: Option<Watch>,
        at: Window,
    ) -> Result<(), SessionFailure> {
        let expired = match watch {
            None => Some(Vec::new()),
            Some(watch) => {
                let removals = session.common.removals();
                watch.may_have_expired(removals, at.to_ms, |key| self.possible(session, key))
            }
        };
        match expired.as_deref() {
            Some([]) => Err(SessionFailure::Wrong(format!(
                "client {}: a transaction was refused, but its watched keys were not changed",
                self.number
            ))),
            // If a single key's expiry is the only reason, the key has expired.
            Some([key]) => {
                let shard_of = |key: &[u8]| session.shard_of(key);
                let get = Command::Get(key.clone());
                let dead = |state: &State| self.answered(state, &get, &Reply::Nil, at);
                self.ledger.borrow_mut().learns(std::slice::from_ref(key), &shard_of, dead)
            }
            _ => Ok(()),
        }
    }
}
