//! Watches that are never used.

use super::client::{RespClient, expect};
use super::command::Command;
use super::line::Line;
use super::session::Session;
use super::watching::watch_words;
use super::wire::Reply;
use crate::client_model::Resp;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;

impl RespClient {
    /// Watches keys and drops the watches in one of several ways: no transaction may be refused
    /// because of them. A connection that ends leaves its watches behind.
    pub(super) async fn leave_unused_watches<'a>(
        &self,
        session: &'a Session<'a>,
        resp: &Resp,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<(), SessionFailure> {
        let mut keys: Vec<Bytes> =
            (0..1 + rng.below(8)).map(|_| self.any_key(session, rng)).collect();
        if rng.chance(0.3) {
            keys.extend(session.common.list_keys.iter().cloned());
        }
        expect(line.ask(&[watch_words(&keys)], rng).await?, &[Reply::OK])?;
        session.linger(rng).await;
        let said = |word: &'static str| vec![Bytes::from(word)];
        match rng.below(4) {
            0 => expect(line.ask(&[said("UNWATCH")], rng).await?, &[Reply::OK])?,
            1 => {
                let get = Command::Get(keys[0].clone()).words();
                let words = [said("MULTI"), get, said("DISCARD")];
                let queued = Reply::Status("QUEUED".into());
                expect(line.ask(&words, rng).await?, &[Reply::OK, queued, Reply::OK])?;
            }
            2 => {
                let reset = Reply::Status("RESET".into());
                expect(line.ask(&[said("RESET")], rng).await?, &[reset])?;
            }
            _ => *line = Line::connect(session, rng),
        }
        if rng.chance(0.5) {
            let append = Command::Append(keys[0].clone(), "behind".into());
            self.pipeline(session, line, &[append], rng).await?;
            if resp.transactions > 0.0 {
                self.transaction(session, resp, line, rng).await?;
            }
        }
        Ok(())
    }
}
