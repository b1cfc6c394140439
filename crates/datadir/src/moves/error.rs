//! Why volumes do not move.

use crate::set_table::SetError;
use softflash_volume::VolumeError;
use thiserror::Error;

/// A move that is refused, or has failed: everything is as before, unless the error says more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MoveError {
    /// There is no such set.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The volumes.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The volume is in that set.
    #[error("volume `{volume}` is in the set `{set}` already")]
    AlreadyThere {
        /// The volume.
        volume: String,
        /// The set.
        set: String,
    },
    /// A set of a pair has two copies of its volumes.
    #[error(
        "the set `{set}` is one of a pair, whose volumes have two copies, and do not move; end the pair \
         first: `softflash set delete` (on a server FLASH.SET DELETE) of its second set, and make it \
         again afterwards"
    )]
    OfPair {
        /// The set.
        set: String,
    },
    /// The target has too little room.
    #[error(
        "{volumes} hold {needed} bytes, and the set `{set}` has room for {room} more; discard or delete \
         something there, or give it more units with `softflash set resize` (on a server FLASH.SET \
         RESIZE)"
    )]
    NoRoom {
        /// The volumes.
        volumes: String,
        /// Bytes that they hold.
        needed: u64,
        /// The set.
        set: String,
        /// Bytes that it has room for.
        room: u64,
    },
    /// An earlier move has left copies in a set that is not mounted, or that could not delete them.
    #[error(
        "an earlier move of {volumes} has left copies in the set `{set}`; the next start takes them \
         away, once the set can be mounted: `softflash check DIR` names its damage, if there is any"
    )]
    Unfinished {
        /// The volumes.
        volumes: String,
        /// The set.
        set: String,
    },
    /// Someone has changed the volumes as such meanwhile.
    #[error("{volumes} have got other snapshots, clones, sizes or settings meanwhile; try again")]
    Changed {
        /// The volumes.
        volumes: String,
    },
    /// Data that cannot be read.
    #[error(
        "volume `{volume}`: {error}; `softflash check DIR` names all that is lost: write it again or \
         discard it"
    )]
    Unreadable {
        /// The volume.
        volume: String,
        /// What cannot be read.
        error: VolumeError,
    },
    /// A signal, or the end of the server.
    #[error("interrupted")]
    Interrupted,
}

/// Names as a sentence has them.
pub fn quoted(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let names = names.into_iter().map(|name| format!("`{}`", name.as_ref()));
    let names: Vec<String> = names.collect();
    names.join(", ")
}
