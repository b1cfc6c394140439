//! Sockets and processes: the RESP and HTTP servers over thread-per-core shards.
//!
//! The only crate that knows tokio. One thread per shard runs that shard's store and the connections
//! dealt to it, so that a request whose key lives there crosses no thread; the main thread accepts
//! connections, serves HTTP and waits for the signal to stop.
//!
//! - [`data_dir`]: what a directory must be to be served, and how it is made;
//! - [`runtime`]: tokio as the stores see it;
//! - `budget`: how `--memory` is divided, and how requests and replies stay inside their share;
//! - `connection`, `registry`: one connection, and all of a thread;
//! - `thread`, `listener`, [`serve`]: a shard's thread, the dealing of connections, the whole;
//! - `users`, `login`, `network`: the file of users, where passwords are tried, how many unauthenticated there may be;
//! - `tls`, `stream`: certificates, and a connection's bytes with or without them;
//! - `http`, `telemetry`, `info`: what it tells about itself.

mod admission;
mod budget;
mod config;
mod connection;
pub mod data_dir;
mod error;
mod http;
mod info;
mod listener;
mod login;
mod network;
mod registry;
pub mod runtime;
mod server;
mod signals;
mod stream;
mod telemetry;
mod thread;
mod tls;
mod users;

pub use budget::{MIN_MEMORY_BYTES, MemoryPlan};
pub use config::ServerConfig;
pub use data_dir::{DataDir, DataDirError};
pub use error::ServerError;
pub use runtime::TokioRuntime;
pub use server::{Addresses, serve};
pub use telemetry::{ServerStats, Snapshot};
pub use tls::{ClientAuth, TlsError, TlsSettings};
pub use users::USERS_NAME;
