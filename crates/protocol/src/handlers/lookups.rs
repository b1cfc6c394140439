//! Which lookups of keys count as hits and misses: as in Redis, those of commands that return
//! something of the value or its properties, and not those of commands that only change it.

use crate::command::{Command, CommandId, Flags, Lookups};
use crate::error::CommandError;
use crate::handlers::set;
use softflash_store::Entry;

/// The counted lookups of a command with the entries of its keys.
pub(crate) fn lookups(command: &Command, entries: &[Option<Entry>]) -> Lookups {
    let counted = match command.spec.id {
        CommandId::Copy => entries.get(..1).unwrap_or_default(),
        CommandId::Getdel | CommandId::Getex | CommandId::Getset => entries,
        CommandId::Set if set::returns_old(&command.args) => entries,
        // The reading commands of a script: one for each of its keys.
        CommandId::Eval | CommandId::Evalsha => entries,
        CommandId::MemoryUsage => &[],
        _ if command.spec.flags.has(Flags::READONLY) => entries,
        _ => &[],
    };
    let hits = counted.iter().flatten().count() as u64;
    Lookups { hits, misses: counted.len() as u64 - hits }
}

/// Whether a command with this error has looked its keys up before: only GETEX, which then checks the
/// time that it is given.
pub(crate) fn looks_up_first(command: &Command, error: &CommandError) -> bool {
    command.spec.id == CommandId::Getex && *error != CommandError::SYNTAX
}
