//! RESP without sockets: requests out of bytes, commands run on a store, replies into bytes.
//!
//! A server (or a simulation) owns the transport: it hands what it received to a [`Connection`], lets it
//! [`advance`](Connection::advance), and sends the output. It also implements [`Admission`], which bounds
//! the memory of requests and replies. Nothing here reads a clock, spawns a task or names an executor;
//! time and waiting come from the store's runtime.
//!
//! From the ground up: [`resp`] is the bytes; `command` says what each command is called, takes and
//! touches; [`acl`] who may run it; [`context`] has what all connections share, each part of it in
//! [`shared`]; [`session`] is one client's state; `handlers` run the commands; `pipeline` checks requests,
//! runs them where their keys live and orders the replies; [`connection`] is the loop around it.

pub mod acl;
pub mod admission;
pub mod command;
pub mod connection;
pub mod context;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod handlers;
mod pipeline;
pub mod resp;
pub mod session;
pub mod shared;

pub use admission::{Admission, ReplyPermit, Unlimited};
pub use connection::{Connection, Step};
pub use context::{Context, ContextOptions, Counters, InfoField, ShutdownRequest};
pub use error::CommandError;
pub use resp::output::Output;
pub use resp::reply::{Protocol, Reply};
pub use resp::request::{Args, Parsed, ProtocolError, Request, RequestParser};
pub use session::Session;
pub use shared::clients::{Client, Clients};
