//! Tests of the protocol from the side of a client, by bytes that the tests encode and decode with
//! code of their own. `docs/nbd.md` says which requirement each one shows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends at its first failure"
)]

mod client;
mod contexts;
mod disk;
mod document;
mod errors;
mod handshake;
mod information;
mod limits;
mod options;
mod reads;
mod replies;
mod requests;
mod splitting;
mod status;
mod tls;
