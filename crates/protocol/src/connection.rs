//! A connection without a socket: bytes in, bytes out.
//!
//! The transport reads into [`read_target`](Connection::read_target), calls
//! [`advance`](Connection::advance), sends the [`output`](Connection::output), and acts on the
//! returned [`Step`]. One read receives as many requests as the client has sent; one `advance` runs
//! them together.

use crate::admission::{Admission, ReplyPermit};
use crate::context::Context;
use crate::pipeline::Pipeline;
use crate::resp::output::Output;
use crate::resp::request::{Parsed, RequestParser};
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
    /// Reserved bytes of the commands that a transaction has queued.
    queued_bytes: u64,
    /// Maximum number of commands in the next batch: it shrinks when replies become large.
    window: u64,
    is_between_requests: bool,
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
    Malformed(Vec<u8>),
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
        Connection {
            pipeline: Pipeline::new(Session::new(context, address, local_address, now_ms)),
            parser: RequestParser::with_free_bytes(admission.free_request_bytes()),
            admission,
            permit: None,
            wanted_bytes: 0,
            queued_bytes: 0,
            window: FIRST_WINDOW,
            is_between_requests: true,
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
        if let Err(refusal) = self.reserve().await {
            return self.refuse(refusal.to_string().as_bytes());
        }
        // Before a permit is acquired, because a password check may wait for a long time.
        self.pipeline.attend(store).await;
        let mut permit = match self.session().is_authenticated() {
            true => self.admission.begin().await,
            false => self.admission.begin_little(),
        };
        let step = self.run_batch(store, &mut permit).await;
        self.admission.keep(self.queued_bytes + self.parser.admitted_bytes());
        self.permit = (!self.pipeline.output().is_empty()).then_some(permit);
        step
    }

    async fn reserve(&mut self) -> Result<(), A::Refusal> {
        if self.wanted_bytes > 0 {
            self.admission.reserve(self.wanted_bytes).await?;
            self.wanted_bytes = 0;
            self.parser.admit();
        }
        Ok(())
    }

    async fn run_batch(&mut self, store: &Store, permit: &mut A::Permit) -> Step {
        let Connection { pipeline, parser, queued_bytes, window, .. } = self;
        let is_authenticated = pipeline.session().is_authenticated();
        let mut is_between = self.is_between_requests && parser.buffered_bytes() == 0;
        let mut ended = Ended::Incomplete;
        let mut commands = 0;
        let more = pipeline
            .run(store, |authenticated| {
                // The permit covers the first request.
                let is_covered = commands == 0 || parser.buffered_bytes() == 0;
                let is_full = match is_authenticated {
                    true => !is_covered && (commands >= *window || !permit.try_extend()),
                    false => commands >= FIRST_WINDOW,
                };
                if is_full {
                    ended = Ended::Full;
                    return None;
                }
                match parser.next(authenticated) {
                    Ok(Parsed::Request(request)) => {
                        commands += 1;
                        is_between = parser.buffered_bytes() == 0;
                        if request.admitted_bytes > 0 {
                            permit.expect(request.admitted_bytes);
                        }
                        *queued_bytes += request.admitted_bytes;
                        return Some(request);
                    }
                    Ok(Parsed::Incomplete) => {}
                    Ok(Parsed::Need { bytes }) => ended = Ended::Wants(bytes),
                    Err(error) => ended = Ended::Malformed(error.text()),
                }
                None
            })
            .await;
        if pipeline.session().queued_bytes() == 0 {
            *queued_bytes = 0;
        }
        let reply_bytes = pipeline.output().len();
        *window = match reply_bytes <= LITTLE_REPLY_BYTES {
            true => (*window * 2).min(MAX_WINDOW),
            false => FIRST_WINDOW,
        };
        match is_authenticated {
            true => permit.settle(reply_bytes as u64, commands),
            false => permit.recharge(reply_bytes as u64),
        }
        self.is_between_requests = is_between;
        match ended {
            _ if self.session().is_closing() => Step::Close,
            Ended::Malformed(reason) => self.refuse(&reason),
            Ended::Wants(bytes) => {
                self.wanted_bytes = bytes;
                Step::Again
            }
            Ended::Full => Step::Again,
            Ended::Incomplete if more => Step::Again,
            Ended::Incomplete => Step::Read,
        }
    }

    /// Makes the reason the last reply.
    fn refuse(&mut self, reason: &[u8]) -> Step {
        self.pipeline.fail(reason);
        Step::Refuse
    }
}
