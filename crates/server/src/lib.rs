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
//! - `http`, `telemetry`, `info`: what it tells about itself.

mod budget;
mod config;
mod connection;
pub mod data_dir;
mod error;
mod http;
mod info;
mod listener;
mod registry;
pub mod runtime;
mod server;
mod signals;
mod telemetry;
mod thread;

pub use budget::{MIN_MEMORY_BYTES, MemoryPlan};
pub use config::ServerConfig;
pub use data_dir::{DataDir, DataDirError};
pub use error::ServerError;
pub use runtime::TokioRuntime;
pub use server::{Addresses, serve};
pub use telemetry::{ServerStats, Snapshot};
