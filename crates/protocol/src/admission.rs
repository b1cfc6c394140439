//! Admission control: how a connection requests memory for requests and replies from its server.

use crate::resp::request::FREE_REQUEST_BYTES;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;

/// Grants memory to one connection. A server uses it to limit the total memory of all connections.
pub trait Admission {
    /// Memory for the replies of one batch.
    type Permit: ReplyPermit;
    /// Why a request can never get its memory; sent to the client as an error.
    type Refusal: Display;

    /// Bytes of each request that need no reservation.
    fn free_request_bytes(&self) -> u64 {
        FREE_REQUEST_BYTES
    }

    /// Waits until `bytes` more of the request may be received.
    ///
    /// # Errors
    /// The request can never get this memory; the rest of it is discarded.
    fn reserve(&mut self, bytes: u64) -> impl Future<Output = Result<(), Self::Refusal>>;

    /// Releases all reserved bytes except `bytes`.
    fn keep(&mut self, bytes: u64);

    /// A permit for the first reply of a batch, if there is memory for it now.
    fn try_begin(&mut self) -> impl Future<Output = Option<Self::Permit>> {
        async { Some(self.begin().await) }
    }

    /// Waits for a permit for the first reply of a batch.
    fn begin(&mut self) -> impl Future<Output = Self::Permit>;

    /// Returns a permit immediately: for a few short replies, of a client that has not
    /// authenticated or of commands that are known to be small.
    fn begin_little(&mut self) -> Self::Permit;
}

/// Permit to hold the replies of a batch until all of them have been sent.
pub trait ReplyPermit {
    /// Requests one more reply in the same batch; false ends the batch.
    fn try_extend(&mut self) -> bool;

    /// A value of `bytes` was written: it may soon be read.
    fn expect(&self, bytes: u64);

    /// The replies to `commands` commands have `bytes` bytes in total.
    fn settle(&mut self, bytes: u64, commands: u64);

    /// `bytes` remain to be sent.
    fn recharge(&mut self, bytes: u64);
}

/// An admission without limits: for a program that serves only itself.
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
