//! The commands: one static table, and a small file for each family.

mod acl;
mod builder;
mod call;
mod client;
mod config;
mod connection;
mod counter;
mod debug;
mod expire;
mod expiry;
mod flash;
mod index;
mod introspection;
mod keyspace;
mod multi_key;
mod object;
mod range;
mod record;
mod rename;
mod server;
mod set;
mod slowlog;
mod spec;
mod subcommands;
mod table;
mod transaction;

pub(crate) use call::{Call, Effects, own};
pub(crate) use connection::REDIS_VERSION;
pub(crate) use index::find;
pub(crate) use introspection::{unknown_command, unknown_subcommand};
pub use spec::{Flags, Group, Keys, Spec, Touches};
pub(crate) use spec::{Handler, Keyed, Load};
pub use table::COMMANDS;
