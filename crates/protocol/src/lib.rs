//! RESP without sockets: parses requests from bytes, runs commands on a store, and encodes replies
//! as bytes.
//!
//! A server or a simulation owns the transport: it passes received bytes to a [`Connection`], calls
//! [`advance`](Connection::advance), and sends the output. It also implements [`Admission`], which
//! limits the memory of requests and replies. This crate does not read a clock, spawn a task or
//! depend on an executor; time and waiting come from the store's runtime.
//!
//! Modules, from the lowest layer up: [`resp`] parses and encodes; `command` describes each command
//! as data; [`acl`] holds the users and their permissions; [`context`] is the state that all
//! connections share, with its parts in [`shared`]; [`session`] is the state of one client;
//! `handlers` implement the commands; `pipeline` checks requests, runs them on the shards of their
//! keys and puts the replies in order; [`connection`] is the loop of a connection.

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
mod scripts;
pub mod session;
pub mod sets;
pub mod shared;
pub mod volumes;

pub use admission::{Admission, ReplyPermit, Unlimited};
pub use connection::{Connection, Step};
pub use context::{Context, ContextOptions, Counters, InfoField, ShutdownRequest};
pub use error::CommandError;
pub use resp::output::Output;
pub use resp::reply::{Protocol, Reply};
pub use resp::request::{Args, Parsed, ProtocolError, Request, RequestParser};
pub use session::{Session, TURN};
pub use shared::clients::{Client, Clients};
pub use shared::command_stats::CommandStat;
pub use shared::kept::KeptMemory;
