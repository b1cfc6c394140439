//! The RESP and HTTP servers over thread-per-core shards.
//!
//! This is the only crate that uses tokio. Each shard has a thread that runs the shard's store and
//! the connections assigned to it, so that a request for a key of this shard does not cross
//! threads. The main thread accepts connections, serves HTTP and waits for the signal to stop.
//!
//! - [`runtime`]: the stores' runtime on tokio;
//! - `budget`: division of `--memory`, and limits for requests and replies; `admission`: a
//!   connection's share;
//! - `connection`, `registry`: one connection, and all connections of a thread;
//! - `endpoints`: the listening sockets; `thread`, `listener`, [`serve`]: a shard's thread,
//!   assignment of connections to threads, the whole server;
//! - `users`, `login`, `network`: the file of users, password checks, limits for unauthenticated
//!   clients;
//! - `tls`, [`pem_files`], `stream`: certificates, their files, and a connection's bytes with or
//!   without TLS;
//! - `volumes`: the volumes of all shards; `nbd`: their clients;
//! - `http`, `telemetry`, `info`, `process`: metrics and state; `clock_watch`: a store's clock that
//!   is ahead.

mod admission;
mod budget;
mod clock_watch;
mod config;
mod connection;
mod endpoints;
mod error;
mod http;
mod info;
mod listener;
mod login;
mod nbd;
mod network;
pub mod pem_files;
mod process;
mod registry;
pub mod runtime;
mod seldom;
mod server;
mod sets;
mod signals;
mod telemetry;
mod thread;
mod tls;
mod transport;
mod users;
mod volume_admin;
mod volumes;

pub use budget::{MIN_MEMORY_BYTES, MemoryPlan};
pub use config::ServerConfig;
pub use endpoints::{Addresses, Endpoints};
pub use error::ServerError;
pub use nbd::NbdSettings;
pub use runtime::TokioRuntime;
pub use server::serve;
pub use telemetry::{DomainStats, ServerStats, Snapshot};
pub use tls::{ClientAuth, TlsError, TlsSettings, Trust, is_of_authority, trust_in};
pub use users::check_users;
