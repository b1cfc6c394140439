//! Commands on the entries of their keys: the handler, and what it loads.

use crate::command::{Command, KeyList};
use crate::handlers::handler::{Handler, Keyed, Load};
use crate::handlers::table::handler_of;
use softflash_store::value::Wanted;

/// The handler of a command on entries.
pub(crate) fn keyed_handler(command: &Command) -> Option<&'static Keyed> {
    match handler_of(command.spec) {
        Handler::Keyed(keyed) => Some(keyed),
        _ => None,
    }
}

/// The keys whose entries a command must load.
pub(crate) fn loads(command: &Command) -> KeyList {
    match keyed_handler(command) {
        Some(Keyed { load: Load::Entries | Load::Keys, .. }) => command.keys(),
        Some(Keyed { load: Load::If(needed), .. }) if needed(&command.args) => command.keys(),
        _ => KeyList::new(),
    }
}

/// The part of these entries that the command needs.
pub(crate) fn wanted(command: &Command) -> Wanted {
    match keyed_handler(command) {
        Some(Keyed { load: Load::Keys, .. }) => Wanted::Keys,
        _ => Wanted::Entries,
    }
}
