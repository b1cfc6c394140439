//! SCAN over all keys.

use super::client::{RespClient, unexpected};
use super::ledger::Sent;
use super::line::Line;
use super::semantics::{Change, Held, Possible, Window};
use super::session::Session;
use super::stages::Removals;
use super::wire::Reply;
use crate::client_model::few_scans;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;
use std::collections::BTreeSet;

/// The longest page of an iteration over the keys of all clients, as a power of two.
const LONGEST_PAGE: u64 = 10;

/// A key that exists and that nothing sent will end: the client that writes it, and the number of
/// commands so far that might have ended it. A list never ends, except by a removal of all keys.
struct Lasting {
    client: Option<usize>,
    key: Bytes,
    endings: u64,
}

fn lasting(session: &Session<'_>) -> Vec<Lasting> {
    let lists = session.common.lists.borrow();
    let existing = session.common.list_keys.iter().filter(|key| lists.exists(key));
    let lists = existing.map(|key| Lasting { client: None, key: key.clone(), endings: 0 });
    let of_clients = session.ledgers.iter().enumerate().flat_map(|(client, ledger)| {
        let lasting = ledger.borrow().lasting().into_iter();
        lasting.map(move |(key, endings)| Lasting { client: Some(client), key, endings })
    });
    lists.chain(of_clients).collect()
}

/// Keys that have existed all the while must have been returned.
fn still_there(
    session: &Session<'_>,
    lasting: &[Lasting],
    seen: &BTreeSet<Bytes>,
) -> Result<(), SessionFailure> {
    let has_lasted = |lasting: &&Lasting| {
        let ledger = lasting.client.and_then(|client| session.ledgers.get(client));
        ledger.is_none_or(|ledger| ledger.borrow().endings_of(&lasting.key) == lasting.endings)
    };
    match lasting.iter().filter(has_lasted).find(|lasting| !seen.contains(&lasting.key)) {
        None => Ok(()),
        Some(Lasting { key, .. }) => Err(SessionFailure::Wrong(format!(
            "SCAN misses a key that existed all the while: `{}`",
            key.escape_ascii()
        ))),
    }
}

impl RespClient {
    /// A whole iteration must return every own key that exists, and no other own key. Where many
    /// keys are drawn, it is one over the keys of all clients, and must return every key that
    /// exists all the while.
    pub(super) async fn scan(
        &self,
        session: &Session<'_>,
        line: &mut Line<'_>,
        rng: &mut Rng,
    ) -> Result<(), SessionFailure> {
        let resp = session.scenario.resp.as_ref();
        if resp.is_some_and(|resp| resp.scans > few_scans()) && rng.chance(0.5) {
            let keys: Vec<Bytes> = self.keys(session.scenario).collect();
            self.outlive(session, &keys).await;
        }
        let from_ms = session.clock_ms().from_ms;
        self.ledger.borrow_mut().sends(Sent { commands: Vec::new(), from_ms, together: false });
        let since = session.common.removals();
        let of_all = session.scenario.contends();
        let lasting = if of_all { lasting(session) } else { Vec::new() };
        let seen = self.iterate(line, of_all, rng).await?;
        if !since.may_precede(session.common.removals()) {
            still_there(session, &lasting, &seen)?;
        }
        let seen = seen.into_iter().filter(|key| self.owns(key)).collect();
        let at = Window { from_ms, to_ms: session.clock_ms().to_ms };
        let outcome = self.shown(session, &seen, since, at);
        self.ledger.borrow_mut().is_answered();
        outcome
    }

    async fn iterate(
        &self,
        line: &mut Line<'_>,
        of_all: bool,
        rng: &mut Rng,
    ) -> Result<BTreeSet<Bytes>, SessionFailure> {
        let (pattern, most) = match of_all {
            true => ("*".to_owned(), 1 << (5 + rng.below(LONGEST_PAGE - 4))),
            false => (format!("client{:02}:*", self.number), 30),
        };
        let pattern = Bytes::from(pattern);
        let count = Bytes::from((1 + rng.below(most)).to_string());
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
            if let Some(failure) = reply.as_ref().and_then(SessionFailure::of_reply) {
                return Err(failure);
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
                return Ok(seen);
            }
        }
    }

    /// Compares the keys returned with the possible states. A key that was not returned, and whose
    /// absence only an expiry explains, is expired from then on.
    fn shown(
        &self,
        session: &Session<'_>,
        seen: &BTreeSet<Bytes>,
        since: Removals,
        at: Window,
    ) -> Result<(), SessionFailure> {
        let shard_of = |key: &[u8]| session.shard_of(key);
        let mut ledger = self.ledger.borrow_mut();
        let known = ledger.current().each().flat_map(|(_, state, _)| state.keys());
        let keys: BTreeSet<Bytes> = known.chain(seen).cloned().collect();
        let removed = since.may_precede(session.common.removals());
        for key in keys {
            let shown = seen.contains(&key);
            let possible = ledger.current().possible(&key, shard_of(&key));
            let fits = looked_at(&possible, shown, at);
            if fits.is_empty() {
                let what = if shown { "returns a key that does not exist" } else { "misses a key" };
                return Err(SessionFailure::Wrong(format!(
                    "SCAN {what}: `{}`",
                    key.escape_ascii()
                )));
            }
            // Where all keys are removed meanwhile, the order of the removal and the read of a key
            // is unknown.
            if !removed {
                let learned = |_: &_| {
                    let after = [(key.clone(), fits.clone())].into();
                    Ok::<_, SessionFailure>(Change { after, ..Change::default() })
                };
                ledger.learns(std::slice::from_ref(&key), &shard_of, learned)?;
            }
        }
        Ok(())
    }
}

/// The possible states of a key after a read in this time that did or did not return it.
fn looked_at(possible: &Possible, shown: bool, at: Window) -> Possible {
    let mut left = Possible::new();
    for held in possible {
        let held = match (held, shown) {
            (None, true) => continue,
            (None, false) => None,
            (Some(held), true) => match held.dies {
                Some(dies) if dies.to_ms <= at.from_ms => continue,
                Some(dies) => {
                    let dies = Window { from_ms: dies.from_ms.max(at.from_ms + 1), ..dies };
                    Some(Held { dies: Some(dies), ..held.clone() })
                }
                None => Some(held.clone()),
            },
            (Some(held), false) => match held.dies {
                Some(dies) if dies.from_ms <= at.to_ms => None,
                _ => continue,
            },
        };
        if !left.contains(&held) {
            left.push(held);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_hidden_by_its_expiry_has_expired() {
        let at = |from_ms, to_ms| Window { from_ms, to_ms };
        let held = |dies| Some(Held { value: "v".into(), dies });
        let mortal = held(Some(at(50, 60)));
        let look = |held: &Option<Held>, shown, at| looked_at(&vec![held.clone()], shown, at);
        assert_eq!(look(&mortal, false, at(55, 70)), [None]);
        assert_eq!(look(&mortal, false, at(10, 20)), [], "too early");
        assert_eq!(look(&mortal, true, at(60, 70)), [], "too late");
        assert_eq!(look(&mortal, true, at(55, 70)), [held(Some(at(56, 60)))]);
        assert_eq!(look(&held(None), false, at(0, 0)), []);
        assert_eq!(look(&None, true, at(0, 0)), []);
        assert_eq!(looked_at(&vec![mortal, None], false, at(70, 70)), [None]);
    }
}
