//! Memory for requests and replies, as a connection asks its server for it.

use crate::resp::request::FREE_REQUEST_BYTES;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;

/// Gives one connection memory. A server bounds with it what all connections hold together.
pub trait Admission {
    /// Memory for the replies of one batch.
    type Permit: ReplyPermit;
    /// Why a request can never get its memory, told to the client.
    type Refusal: Display;

    /// Bytes of each request that need no reservation.
    fn free_request_bytes(&self) -> u64 {
        FREE_REQUEST_BYTES
    }

    /// Waits until `bytes` more of the request may be received.
    ///
    /// # Errors
    /// No waiting can help; the connection is closed.
    fn reserve(&mut self, bytes: u64) -> impl Future<Output = Result<(), Self::Refusal>>;

    /// Takes back all but `bytes` of what was reserved.
    fn keep(&mut self, bytes: u64);

    /// Waits for the permission to make a first reply.
    fn begin(&mut self) -> impl Future<Output = Self::Permit>;

    /// A permission without a wait: for the few and short replies to a client that has not authenticated.
    fn begin_little(&mut self) -> Self::Permit;
}

/// The permission to hold the replies of a batch, until all of them have been sent.
pub trait ReplyPermit {
    /// Asks for one more reply in the same batch; false ends the batch.
    fn try_extend(&mut self) -> bool;

    /// A value of `bytes` was written: it may be read again.
    fn expect(&self, bytes: u64);

    /// The replies to `commands` commands came to `bytes` together.
    fn settle(&mut self, bytes: u64, commands: u64);

    /// `bytes` are still to be sent.
    fn recharge(&mut self, bytes: u64);
}

/// An admission that gives everything: for a program that serves only itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Admission for Unlimited {
    type Permit = Unlimited;
    type Refusal = Infallible;

    async fn reserve(&mut self, _bytes: u64) -> Result<(), Infallible> {
        Ok(())
    }

    fn keep(&mut self, _bytes: u64) {}

    async fn begin(&mut self) -> Unlimited {
        Unlimited
    }

    fn begin_little(&mut self) -> Unlimited {
        Unlimited
    }
}

impl ReplyPermit for Unlimited {
    fn try_extend(&mut self) -> bool {
        true
    }

    fn expect(&self, _bytes: u64) {}

    fn settle(&mut self, _bytes: u64, _commands: u64) {}

    fn recharge(&mut self, _bytes: u64) {}
}
