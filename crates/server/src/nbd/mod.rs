//! NBD: the volumes as network block devices.
//!
//! [`accept`] admits connections on the main thread ([`admission`] decides which, and whether they
//! need TLS); [`handshake`] negotiates there, with the [`exports`] of all shards. Then the
//! connection moves as a [`client`] to the thread of its volume, whose [`connections`] serve it:
//! [`receive`] cuts requests for which the [`budget`] has memory, [`carry_out`] runs them side by
//! side on the volume ([`target`], with [`range_locks`] for what is not aligned), and [`send`]
//! writes the replies as they come. While a volume moves to another domain, its clients wait in the
//! [`parking`]. [`recorder`] records the requests for the clients that asked
//! for it.

mod accept;
mod admission;
mod budget;
mod carry_out;
pub(crate) mod client;
pub(crate) mod connections;
mod exports;
mod handshake;
mod parking;
mod range_locks;
mod receive;
mod recorder;
mod send;
mod target;

pub(crate) use accept::accept;
pub(crate) use admission::NbdAdmission;

use std::net::SocketAddr;

/// Settings of NBD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NbdSettings {
    /// Address; port 0 chooses a free port.
    pub address: SocketAddr,
    /// Whether clients need no certificate, even where RESP clients need a password.
    pub open: bool,
}
