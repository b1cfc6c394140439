//! A connection without a socket: bytes in, bytes out.

use crate::context::Context;
use crate::output::Output;
use crate::request::{Parsed, RequestParser};
use crate::session::Session;
use bytes::BytesMut;
use bytes::buf::Limit;
use softflash_store::Store;
use std::sync::Arc;

/// What the transport does next, after it has sent the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read more.
    Read,
    /// Reserve so many bytes of memory, call [`Connection::admit`], and process again.
    Need {
        /// Bytes to reserve.
        bytes: u64,
    },
    /// Process again: there are more requests in the buffer.
    Again,
    /// Close the connection.
    Close,
}

/// A client's parser and session.
pub struct Connection {
    parser: RequestParser,
    session: Session,
    reserved_bytes: u64,
}

impl Connection {
    /// A connection from `address` to `local_address` (both `ip:port`), made at `now_ms`
    /// (milliseconds since the Unix epoch).
    pub fn new(
        context: Arc<Context>,
        address: String,
        local_address: String,
        now_ms: u64,
    ) -> Connection {
        let session = Session::new(context, address, local_address, now_ms);
        Connection { parser: RequestParser::new(), session, reserved_bytes: 0 }
    }

    /// The connection's state.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Where the next bytes from the socket belong.
    pub fn read_target(&mut self) -> Limit<&mut BytesMut> {
        self.parser.read_target()
    }

    /// Takes input that is in memory already.
    pub fn feed(&mut self, input: &[u8]) {
        self.parser.feed(input);
    }

    /// Allows what [`Step::Need`] asked for.
    pub fn admit(&mut self) {
        self.parser.admit();
    }

    /// What is to be sent.
    pub fn output(&mut self) -> &mut Output {
        self.session.output()
    }

    /// Bytes of the reservations that are still in use: those of the request being received, or all of
    /// them while a transaction keeps requests. At 0 the server may take them back.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes + self.parser.admitted_bytes()
    }

    /// Runs all requests that are whole. Output comes before what the step asks for. If this is
    /// dropped before it completes, the connection must be closed: replies may be lost.
    pub async fn process(&mut self, store: &Store) -> Step {
        let Connection { parser, session, reserved_bytes } = self;
        let mut step = Step::Read;
        let mut failed = None;
        let more = session
            .run(store, |authenticated| match parser.next(authenticated) {
                Ok(Parsed::Request(request)) => {
                    *reserved_bytes += request.admitted_bytes;
                    Some(request)
                }
                Ok(Parsed::Incomplete) => None,
                Ok(Parsed::Need { bytes }) => {
                    step = Step::Need { bytes };
                    None
                }
                Err(error) => {
                    failed = Some(error);
                    None
                }
            })
            .await;
        if session.queued_bytes() == 0 {
            *reserved_bytes = 0;
        }
        if let Some(error) = failed {
            session.fail(&error.text());
        }
        if session.is_closing() {
            Step::Close
        } else if more {
            Step::Again
        } else {
            step
        }
    }
}
