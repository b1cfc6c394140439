//! The server side of the NBD protocol without sockets: bytes in, bytes out. It reads no clock,
//! starts no thread and knows no volume. `docs/nbd.md` has every requirement of the protocol
//! document on servers, with the test that shows it.
//!
//! A connection has two phases:
//!
//! 1. [`Negotiation`] sends the greeting, answers the client's options, and ends with a
//!    [`Session`]: the export that the client has chosen, and what was agreed for it. It asks its
//!    owner about exports through [`Exports`].
//! 2. [`Transmission`] cuts the client's bytes into valid requests, payloads and refused requests.
//!    The owner carries them out in any order and encodes the results with [`Replies`].
//!
//! The owner has the socket, TLS, timeouts, and the memory for payloads and replies.

#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

pub mod block_size;
pub mod block_status;
mod chunks;
pub mod error;
pub mod export;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod haggling;
pub mod limits;
pub mod negotiation;
mod option_data;
mod option_reply;
pub mod output;
pub mod read_reply;
pub mod reply;
pub mod request;
pub mod session;
pub mod tls;
pub mod transmission;
mod validation;
mod wire;

pub use block_size::{BlockSizeError, BlockSizes};
pub use block_status::Extent;
pub use error::{CloseReason, ErrorCode, Violation};
pub use export::{Export, Exports, Features, LookupError};
pub use limits::HandshakeLimits;
pub use negotiation::{Negotiation, Step};
pub use output::Output;
pub use read_reply::{MustDisconnect, ReadReply};
pub use reply::Replies;
pub use request::{ByteRange, Command, Cookie, Rejection, Request};
pub use session::Session;
pub use tls::TlsMode;
pub use transmission::{Event, Transmission};
