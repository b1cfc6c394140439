//! The implementations of the commands: a small file for each family, and one table that maps
//! commands to handlers.

mod acl;
pub(crate) mod call;
mod client;
mod config;
mod connection;
mod counter;
mod debug;
mod expire;
mod expiry;
mod flash;
mod flash_set;
mod handler;
mod info;
mod introspection;
mod keyed;
mod keyspace;
pub(crate) mod keyspace_context;
mod lock;
mod lookups;
mod multi_key;
mod object;
pub(crate) mod overlay;
mod range;
mod record;
mod rename;
mod script;
mod server;
mod set;
mod settings;
mod slowlog;
mod table;
mod transaction;
mod volume;

pub(crate) use call::Call;
pub(crate) use handler::Handler;
pub(crate) use introspection::{unknown_command, unknown_subcommand};
pub(crate) use keyed::{keyed_handler, loads, wanted};
pub(crate) use keyspace::scans_little;
pub(crate) use lookups::{looks_up_first, lookups};
pub(crate) use script::{NOT_KNOWN, count_keys};
pub(crate) use table::handler_of;
