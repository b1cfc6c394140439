//! A connection without a socket: bytes in, bytes out.
//!
//! The transport reads into [`read_target`](Connection::read_target), calls
//! [`advance`](Connection::advance), sends the [`output`](Connection::output), and acts on the
//! returned [`Step`]. One read receives as many requests as the client has sent; one `advance` runs
//! them together.

use crate::admission::{Admission, ReplyPermit};
use crate::context::Context;
use crate::pipeline::{LITTLE_BYTES, Pipeline, is_little, little_bytes};
use crate::resp::output::Output;
use crate::resp::request::{Parsed, ProtocolError, RequestParser};
use crate::session::Session;
use bytes::BytesMut;
use bytes::buf::Limit;
use softflash_store::Store;
use std::sync::Arc;

/// Maximum number of commands in the first batch, and in every batch of a client that has not
/// authenticated.
const FIRST_WINDOW: u64 = 8;
const MAX_WINDOW: u64 = 1 << 16;
/// A batch with at most this many bytes of replies doubles the next window.
const LITTLE_REPLY_BYTES: usize = 256 << 10;

/// What the transport does after it has sent the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read more input.
    Read,
    /// Call `advance` again: some received input has not run yet.
    Again,
    /// Close the connection.
    Close,
    /// Close the connection, whose last reply gives the reason; the client may still be sending.
    Refuse,
}

/// A client's parser, session and memory.
pub struct Connection<A: Admission> {
    pipeline: Pipeline,
    parser: RequestParser,
    admission: A,
    /// Held until the output has been sent.
    permit: Option<A::Permit>,
    /// Memory that the current request needs before more of it is received.
    wanted_bytes: u64,
    /// The next result of the parser, which had to be seen before a permit was requested.
    ahead: Option<Result<Parsed, ProtocolError>>,
    /// Maximum number of commands in the next batch: it shrinks when replies become large.
    window: u64,
    is_between_requests: bool,
    refusal: String,
}

/// What the permit of a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Any requests.
    Any,
    /// Small requests.
    Little,
    /// A few requests of a client that has not authenticated.
    Unauthenticated,
}

/// Why a batch ended.
enum Ended {
    /// All complete requests have run.
    Incomplete,
    /// The batch has reached its limit.
    Full,
    /// The next request needs memory.
    Wants(u64),
    /// The input is not RESP.
    Malformed(ProtocolError),
}

impl<A: Admission> Connection<A> {
    /// A connection from `address` to `local_address` (both `ip:port`), accepted at `now_ms`
    /// (milliseconds since the Unix epoch).
    pub fn new(
        context: Arc<Context>,
        address: String,
        local_address: String,
        now_ms: u64,
        admission: A,
    ) -> Connection<A> {
        let parser = RequestParser::with_free_bytes(admission.free_request_bytes())
            .with_max_argument_bytes(context.services.max_argument_bytes);
        Connection {
            pipeline: Pipeline::new(Session::new(context, address, local_address, now_ms)),
            parser,
            admission,
            permit: None,
            wanted_bytes: 0,
            ahead: None,
            window: FIRST_WINDOW,
            is_between_requests: true,
            refusal: String::new(),
        }
    }

    /// The client's state.
    pub fn session(&self) -> &Session {
        self.pipeline.session()
    }

    /// The connection's admission.
    pub fn admission(&self) -> &A {
        &self.admission
    }

    /// Whether all received bytes have been processed and no request is incomplete.
    pub fn is_between_requests(&self) -> bool {
        self.is_between_requests
    }

    /// Frees the read buffer of a connection without an incomplete request.
    pub fn free_read_buffer(&mut self) {
        if self.is_between_requests {
            self.parser.free_buffer();
        }
    }

    /// The buffer for the next bytes from the socket.
    pub fn read_target(&mut self) -> Limit<&mut BytesMut> {
        if !self.session().is_authenticated() {
            self.parser.read_little();
        }
        self.parser.read_target()
    }

    /// Adds input that is already in memory.
    pub fn feed(&mut self, input: &[u8]) {
        self.parser.feed(input);
    }

    /// The bytes to send.
    pub fn output(&mut self) -> &mut Output {
        self.pipeline.output()
    }

    /// Some of the output has been sent: releases its memory.
    pub fn has_sent(&mut self) {
        match self.pipeline.output().len() {
            0 => self.permit = None,
            left => self.permit.iter_mut().for_each(|permit| permit.recharge(left as u64)),
        }
    }

    /// Waits for the memory that the current request needs, then runs the complete requests, up to
    /// the number of replies permitted. The output must be sent before the returned step is done.
    /// If this future is dropped before it completes, the connection must be closed, because
    /// replies may be lost.
    pub async fn advance(&mut self, store: &Store) -> Step {
        self.reserve().await;
        // Before a permit is acquired, because a password check may wait for a long time.
        self.pipeline.run_waiting(store).await;
        let (mut permit, kind) = self.permit(store).await;
        let step = self.run_batch(store, &mut permit, kind).await;
        let rest = self.pipeline.rest_bytes().unwrap_or(0);
        self.admission.keep(rest + self.ahead_bytes() + self.parser.admitted_bytes());
        self.permit = (!self.pipeline.output().is_empty()).then_some(permit);
        step
    }

    /// Reserved bytes of a request that is complete and has not run.
    fn ahead_bytes(&self) -> u64 {
        match &self.ahead {
            Some(Ok(Parsed::Request(request))) => request.admitted_bytes,
            _ => 0,
        }
    }

    async fn reserve(&mut self) {
        if self.wanted_bytes == 0 {
            return;
        }
        match self.admission.reserve(self.wanted_bytes).await {
            Ok(()) => self.parser.admit(),
            Err(refusal) => self.parser.refuse(format!("ERR {refusal}")),
        }
        self.wanted_bytes = 0;
    }

    /// A permit for the next batch. Only a request that may need much memory waits for one.
    async fn permit(&mut self, store: &Store) -> (A::Permit, Kind) {
        if !self.session().is_authenticated() {
            return (self.admission.begin_little(), Kind::Unauthenticated);
        }
        if let Some(permit) = self.admission.try_begin().await {
            return (permit, Kind::Any);
        }
        if self.pipeline.rest_bytes().is_some() {
            return (self.admission.begin().await, Kind::Any);
        }
        let ahead = self.ahead.get_or_insert_with(|| self.parser.next(true));
        if let Ok(Parsed::Request(request)) = ahead
            && !is_little(self.pipeline.session(), store, request).await
        {
            return (self.admission.begin().await, Kind::Any);
        }
        (self.admission.begin_little(), Kind::Little)
    }

    async fn run_batch(&mut self, store: &Store, permit: &mut A::Permit, kind: Kind) -> Step {
        let Connection { pipeline, parser, ahead, window, .. } = self;
        let mut little_left = LITTLE_BYTES;
        let mut is_between = self.is_between_requests && parser.buffered_bytes() == 0;
        let mut ended = Ended::Incomplete;
        let mut commands = 0;
        let more = pipeline
            .run(store, |session| {
                // The permit covers the first request.
                let is_covered = commands == 0 || parser.buffered_bytes() == 0;
                let is_full = match kind {
                    Kind::Any => !is_covered && (commands >= *window || !permit.try_extend()),
                    Kind::Little => commands >= *window,
                    Kind::Unauthenticated => commands >= FIRST_WINDOW,
                };
                if is_full {
                    ended = Ended::Full;
                    return None;
                }
                let next = ahead.take().unwrap_or_else(|| parser.next(session.is_authenticated()));
                match next {
                    Ok(Parsed::Request(request)) => {
                        if kind == Kind::Little {
                            let bytes = little_bytes(session, &request).unwrap_or(u64::MAX);
                            if commands > 0 && bytes > little_left {
                                *ahead = Some(Ok(Parsed::Request(request)));
                                ended = Ended::Full;
                                return None;
                            }
                            little_left = little_left.saturating_sub(bytes);
                        }
                        commands += 1;
                        is_between = parser.buffered_bytes() == 0;
                        if request.admitted_bytes > 0 {
                            permit.expect(request.admitted_bytes);
                        }
                        return Some(request);
                    }
                    Ok(Parsed::Incomplete) => {}
                    Ok(Parsed::Need { bytes }) => ended = Ended::Wants(bytes),
                    Err(error) => ended = Ended::Malformed(error),
                }
                None
            })
            .await;
        let reply_bytes = pipeline.output().len();
        *window = match reply_bytes <= LITTLE_REPLY_BYTES {
            true => (*window * 2).min(MAX_WINDOW),
            false => FIRST_WINDOW,
        };
        match kind {
            Kind::Any => permit.settle(reply_bytes as u64, commands),
            Kind::Little | Kind::Unauthenticated => permit.recharge(reply_bytes as u64),
        }
        self.is_between_requests = is_between;
        match ended {
            _ if self.session().is_closing() => Step::Close,
            // After the replies to what was sent before it.
            Ended::Malformed(error) if more => {
                self.ahead = Some(Err(error));
                Step::Again
            }
            Ended::Malformed(error) => self.refuse(&error.text()),
            Ended::Wants(bytes) => {
                self.wanted_bytes = bytes;
                Step::Again
            }
            Ended::Full => Step::Again,
            Ended::Incomplete if more => Step::Again,
            Ended::Incomplete => Step::Read,
        }
    }

    /// Why the connection is closed, after [`Step::Refuse`].
    pub fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Makes the reason the last reply.
    fn refuse(&mut self, reason: &[u8]) -> Step {
        self.refusal = String::from_utf8_lossy(reason).into_owned();
        self.pipeline.fail(reason);
        Step::Refuse
    }
}
