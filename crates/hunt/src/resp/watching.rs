//! WATCH: for which changes a transaction may and must be refused.

use super::client::{RespClient, expect};
use super::command::Command;
use super::line::Line;
use super::semantics::{Held, Possible};
use super::session::Session;
use super::stages::Removals;
use super::wire::Reply;
use crate::client_model::Resp;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;

/// Watched keys of a client, and the changes since.
pub(super) struct Watch {
    keys: Vec<Bytes>,
    /// The client itself has written one of them.
    touched: bool,
    /// When the first WATCH was sent.
    asked: Removals,
    asked_ms: u64,
    /// When the last WATCH was answered.
    answered: Removals,
    answered_ms: u64,
}

impl Watch {
    /// Whether the transaction, which runs at `from_ms` or later, must be refused: a watched key
    /// was changed, also by the client itself, or a watched key has expired.
    pub fn must_refuse(
        &self,
        removals: Removals,
        from_ms: u64,
        possible: impl Fn(&Bytes) -> Possible,
    ) -> Option<&'static str> {
        let has_died = |held: &Option<Held>| {
            let dies = held.as_ref().and_then(|held| held.dies);
            dies.is_some_and(|dies| dies.from_ms > self.answered_ms && dies.to_ms <= from_ms)
        };
        if self.touched {
            Some("a watched key had been changed")
        } else if self.answered.surely_precede(removals) {
            Some("all keys were removed after WATCH")
        } else if self.keys.iter().any(|key| possible(key).iter().all(has_died)) {
            Some("a watched key had expired")
        } else {
            None
        }
    }

    /// The keys whose expiry until `to_ms` can be the reason of a refusal; none: there are other
    /// reasons.
    pub fn may_have_expired(
        &self,
        removals: Removals,
        to_ms: u64,
        possible: impl Fn(&Bytes) -> Possible,
    ) -> Option<Vec<Bytes>> {
        if self.touched || self.asked.may_precede(removals) {
            return None;
        }
        let expired = |held: &Option<Held>| {
            let dies = held.as_ref().and_then(|held| held.dies);
            dies.is_some_and(|dies| dies.to_ms > self.asked_ms && dies.from_ms <= to_ms)
        };
        let mut keys = self.keys.clone();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| possible(key).iter().any(expired));
        Some(keys)
    }
}

impl RespClient {
    /// Watches some keys, and may change one of them.
    pub(super) async fn watch(
        &self,
        session: &Session<'_>,
        resp: &Resp,
        line: &mut Line<'_>,
        rng: &mut Rng,
    ) -> Result<Watch, SessionFailure> {
        let (asked, asked_ms) = (session.common.removals(), session.clock_ms().from_ms);
        let mut keys = vec![self.any_key(session, rng)];
        if resp.watched > 1 {
            keys.extend((0..rng.below(resp.watched)).map(|_| self.any_key(session, rng)));
            // The keys watched already are named again together with others.
            if rng.chance(0.3) {
                expect(line.ask(&[watch_words(&keys[..1])], rng).await?, &[Reply::OK])?;
            }
        }
        expect(line.ask(&[watch_words(&keys)], rng).await?, &[Reply::OK])?;
        let answered = session.common.removals();
        let answered_ms = session.clock_ms().to_ms;
        let touched = rng.chance(0.2);
        if touched {
            let place = if keys.len() > 1 { rng.below(keys.len() as u64) as usize } else { 0 };
            let append = Command::Append(keys[place].clone(), "touched".into());
            self.pipeline(session, line, &[append], rng).await?;
        }
        session.pause(rng).await;
        session.linger(rng).await;
        if resp.watched > 1 && rng.chance(0.3) {
            self.outlive(session, &keys).await;
        }
        Ok(Watch { keys, touched, asked, asked_ms, answered, answered_ms })
    }
}

/// WATCH of these keys.
pub(super) fn watch_words(keys: &[Bytes]) -> Vec<Bytes> {
    [Bytes::from("WATCH")].iter().chain(keys).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::semantics::Window;

    fn moment(begun: usize, ended: usize) -> Removals {
        Removals { begun, ended }
    }

    fn watch(answered: Removals) -> Watch {
        let keys = vec!["k".into(), "k".into()];
        Watch { keys, touched: false, asked: answered, asked_ms: 90, answered, answered_ms: 100 }
    }

    fn mortal(from_ms: u64, to_ms: u64) -> Option<Held> {
        Some(Held { value: "v".into(), dies: Some(Window { from_ms, to_ms }) })
    }

    #[test]
    fn a_removal_between_watch_and_exec_ends_a_transaction() {
        let nothing = |_: &Bytes| vec![None];
        let refuses = |watch: &Watch, at| watch.must_refuse(at, 200, nothing).is_some();
        assert!(refuses(&watch(moment(0, 0)), moment(1, 1)));
        assert!(!refuses(&watch(moment(0, 0)), moment(1, 0)), "it may come later");
        assert!(!refuses(&watch(moment(1, 0)), moment(1, 1)), "it may have come before");
        let may = |watch: Watch, at| watch.may_have_expired(at, 200, nothing);
        assert_eq!(may(watch(moment(1, 0)), moment(1, 1)), None);
        assert_eq!(may(watch(moment(1, 1)), moment(1, 1)), Some(Vec::new()), "no reason");
        let touched = Watch { touched: true, ..watch(moment(0, 0)) };
        assert!(refuses(&touched, moment(0, 0)) && may(touched, moment(0, 0)).is_none());
    }

    #[test]
    fn a_life_that_ends_between_them_does_too() {
        let watch = watch(moment(0, 0));
        let must =
            |held: Possible| watch.must_refuse(moment(0, 0), 200, |_| held.clone()).is_some();
        assert!(must(vec![mortal(150, 160)]));
        assert!(!must(vec![mortal(90, 160)]), "it may have been dead before");
        assert!(!must(vec![mortal(150, 201)]), "it may be alive");
        assert!(!must(vec![mortal(150, 160), None]));
        let expired = watch.may_have_expired(moment(0, 0), 200, |_| vec![mortal(200, 300)]);
        assert_eq!(expired, Some(vec!["k".into()]));
        let expired = watch.may_have_expired(moment(0, 0), 200, |_| vec![mortal(50, 80)]);
        assert_eq!(expired, Some(Vec::new()), "a key that was dead before WATCH is no reason");
    }
}
