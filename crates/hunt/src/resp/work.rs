//! A client's work in a session: one request after the other, until the session or the client's
//! connection ends.

use super::client::{RespClient, unexpected};
use super::command::Command;
use super::line::Line;
use super::session::Session;
use super::sharing;
use super::wire::Reply;
use crate::client_model::Resp;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;

/// Whether the client continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Stays,
    Gone,
}

impl RespClient {
    /// Makes the requests of a session.
    pub(super) async fn work(&self, session: &Session<'_>) -> Result<(), SessionFailure> {
        let scenario = session.scenario;
        let Some(resp) = &scenario.resp else { return Ok(()) };
        let mut rng = self.rng_of_session();
        let mut line = Line::connect(session, &mut rng);
        for _ in 0..scenario.clients.requests {
            session.pause(&mut rng).await;
            session.common.note_request();
            if rng.chance(resp.clears) {
                self.clear(session, resp.clears_beside, &mut line, &mut rng).await?;
                continue;
            }
            let _turn = session.gate.acquire(1).await;
            match self.request(session, resp, &mut line, &mut rng).await? {
                Next::Stays => {}
                Next::Gone => {
                    session.common.note_lost_client();
                    let (commands, partial) = self.last_words(session, resp, &mut rng);
                    line.vanish(&commands, &partial, &mut rng).await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A request; returns whether the client continues.
    async fn request<'a>(
        &self,
        session: &'a Session<'a>,
        resp: &Resp,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<Next, SessionFailure> {
        if rng.chance(resp.vanishing) {
            return Ok(Next::Gone);
        }
        if rng.chance(0.02) {
            *line = Line::connect(session, rng);
        }
        if resp.unused_watches > 0.0 && rng.chance(resp.unused_watches) {
            self.leave_unused_watches(session, resp, line, rng).await?;
        } else if rng.chance(resp.scans) {
            self.scan(session, line, rng).await?;
        } else if resp.lists > 0 && rng.chance(resp.list_share) {
            sharing::request(session, line, rng).await?;
        } else if rng.chance(resp.transactions) {
            self.transaction(session, resp, line, rng).await?;
        } else {
            let count = 1 + rng.below(resp.pipeline);
            let commands = self.draw(session, resp, count, rng);
            self.pipeline(session, line, &commands, rng).await?;
        }
        Ok(Next::Stays)
    }

    /// FLUSHALL, concurrent with other clients or alone.
    async fn clear<'a>(
        &self,
        session: &'a Session<'a>,
        beside: bool,
        line: &mut Line<'a>,
        rng: &mut Rng,
    ) -> Result<(), SessionFailure> {
        let all = session.gate.capacity();
        let _turn = session.gate.acquire(if beside { 1 } else { all }).await;
        let _only = session.removal.acquire(1).await;
        if session.common.has_lost_client() && !beside {
            // Commands sent by disconnected clients may run after it.
            return Ok(());
        }
        session.removal_begins();
        let reply = line.ask(&[vec!["FLUSHALL".into()]], rng).await?.pop();
        match reply.as_ref().and_then(SessionFailure::of_reply) {
            Some(failure) => return Err(failure),
            None if reply != Some(Reply::OK) => return unexpected("FLUSHALL", reply),
            None => session.removal_ended(),
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
