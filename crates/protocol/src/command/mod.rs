//! The commands as data: names, arity, flags, categories, key positions and access. This module
//! does not run commands.

pub(crate) mod absent;
mod access;
mod builder;
mod effects;
mod id;
mod index;
mod invocation;
mod spec;
mod subcommands;
mod table;

pub use access::Access;
pub(crate) use effects::{Effects, Lookups};
pub(crate) use id::CommandId;
pub(crate) use index::find;
pub(crate) use invocation::{Command, KeyList, Scope, suppressed};
pub use spec::{Flags, Group, Keys, Spec, Touches};
pub use table::COMMANDS;
