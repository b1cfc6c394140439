//! RESP without sockets: requests out of bytes, commands run on a store, replies into bytes.
//!
//! A server (or a simulation) owns the transport: it hands what it received to a [`Connection`], lets it
//! [`advance`](Connection::advance), and sends the output. It also implements [`Admission`], which bounds
//! the memory of requests and replies. Nothing here reads a clock, spawns a task or names an executor;
//! time and waiting come from the store's runtime.
//!
//! The way of a command: [`request`] cuts the bytes into words, [`commands`] finds its entry in the one
//! static table, [`session`] checks it against the connection's state, the lanes run it where its keys
//! live, [`output`] writes the reply.

pub mod acl;
pub mod admission;
pub mod clients;
pub mod commands;
pub mod config;
pub mod connection;
pub mod context;
mod cursors;
mod dispatch;
pub mod error;
mod exec;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod glob;
mod identity;
mod info;
mod inline;
mod kill;
mod lane;
mod load;
mod long_double;
mod number;
pub mod output;
mod overlay;
mod poll;
mod recording;
pub mod reply;
pub mod request;
mod segment;
pub mod session;
pub mod slowlog;
mod wide;
mod write;

pub use admission::{Admission, ReplyPermit, Unlimited};
pub use clients::{Client, Clients};
pub use connection::{Connection, Step};
pub use context::{Context, ContextOptions, Counters, InfoField, ShutdownRequest};
pub use error::CommandError;
pub use output::Output;
pub use reply::{Protocol, Reply};
pub use request::{Args, Parsed, ProtocolError, Request, RequestParser};
pub use session::Session;
