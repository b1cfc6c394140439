//! Why the table of sets is not changed.

use thiserror::Error;

/// A change of the sets that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// The name is taken.
    #[error("there is a set `{name}` already; choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// The name cannot be one.
    #[error("a set cannot be named `{name}`: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The spare space cannot be that of a set.
    #[error("{reason}")]
    BadSpareSpace {
        /// The rule that it breaks.
        reason: String,
    },
    /// New units cannot be divided so.
    #[error("{reason}")]
    BadShares {
        /// What is wrong.
        reason: String,
    },
    /// No set has the name.
    #[error("no set for volumes is named `{name}`; {}", known(sets))]
    NoSet {
        /// The name.
        name: String,
        /// The names of those that there are.
        sets: Vec<String>,
    },
    /// The set has the keys of a shard.
    #[error(
        "the set `{name}` has the keys of a shard, and no volumes: only the number of its units can \
         change, by `softflash set resize` (on a server FLASH.SET RESIZE); {}",
        known(sets)
    )]
    OfStore {
        /// The name.
        name: String,
        /// The names of those that can be changed.
        sets: Vec<String>,
    },
    /// Too few units are in no set.
    #[error(
        "too few units are spare: it needs {needed}, and there are {spare}; `softflash set resize` (on a \
         server FLASH.SET RESIZE) of another set to fewer units, or the deletion of an empty set for \
         volumes, makes some spare; `softflash grow` (FLASH.GROW) adds some"
    )]
    TooFewSpare {
        /// The units that are needed.
        needed: u16,
        /// Those that are in no set.
        spare: usize,
    },
    /// The shard does not exist.
    #[error("there is no shard {shard}: the store has {shards}, numbered from 0")]
    NoShard {
        /// The shard.
        shard: u16,
        /// How many there are.
        shards: usize,
    },
    /// The numbers of sets or epochs have been used up.
    #[error(
        "no {what} is left: 2^{bits} have been used; dump the directory and load it into a new one"
    )]
    UsedUp {
        /// What was numbered.
        what: &'static str,
        /// The bits of its numbers.
        bits: u32,
    },
    /// So many units hold no volumes.
    #[error("{units} units leave the set `{name}` no space for data of volumes; give it more")]
    NoRoom {
        /// The set.
        name: String,
        /// How many units it would have.
        units: usize,
    },
    /// So many units hold no keys.
    #[error("{units} units leave the set `{name}` no space for keys; give it more")]
    NoRoomForKeys {
        /// The set.
        name: String,
        /// How many units it would have.
        units: usize,
    },
    /// So many units have more flash than a domain can.
    #[error(
        "the set `{name}` would have {units} units, which with the empty places between them are more \
         than the 16 TiB of flash that a set for volumes can have; give it fewer, and others to \
         another set"
    )]
    TooLarge {
        /// The set.
        name: String,
        /// How many units it would have.
        units: usize,
    },
    /// A pair has two sets.
    #[error("a pair has two sets, and `{name}` is one; name another one")]
    PairOfOne {
        /// The set.
        name: String,
    },
    /// The set is one of a pair already.
    #[error(
        "the set `{name}` is one of a pair already; `softflash set delete` of a set ends its pair"
    )]
    IsPaired {
        /// The set.
        name: String,
    },
    /// The sets of a pair are served by one thread.
    #[error(
        "the sets `{}` and `{}` are of the shards {} and {}; a pair is of one shard: `softflash set \
         create --shard` chooses it", names[0], names[1], shards[0], shards[1]
    )]
    OtherShard {
        /// Their names.
        names: [String; 2],
        /// Their shards.
        shards: [u16; 2],
    },
    /// Both sets of a pair to be have volumes.
    #[error(
        "the sets `{}` and `{}` both hold volumes; one set of a new pair is empty, and gets a copy of \
         the other one's volumes", names[0], names[1]
    )]
    BothHoldVolumes {
        /// Their names.
        names: [String; 2],
    },
    /// Clients use the volumes by the first set of a pair.
    #[error(
        "the set `{name}` is the first of a pair, by which its volumes are served; delete the second \
         one, or stop the server and use `softflash set delete`"
    )]
    FirstOfPair {
        /// The set.
        name: String,
    },
    /// The set has one copy of its volumes.
    #[error(
        "the set `{name}` has one copy of its volumes; `softflash set pair` (on a server FLASH.SET \
         PAIR) gives it a second one"
    )]
    OneCopy {
        /// The set.
        name: String,
    },
    /// No sets are a pair.
    #[error(
        "no set has two copies of its volumes; `softflash set pair` (on a server FLASH.SET PAIR) makes \
         a pair of two sets"
    )]
    NoPair,
    /// Windows cannot be so long.
    #[error("`{text}` is no length of windows; use 1ms to 60s, or none")]
    BadWindow {
        /// What was given.
        text: String,
    },
    /// Only pairs have windows.
    #[error(
        "the set `{name}` is none of a pair, and so has no windows: one set takes writes while the \
         other one only reads; `softflash set pair` (on a server FLASH.SET PAIR) makes a pair"
    )]
    NotPaired {
        /// The set.
        name: String,
    },
    /// The set holds volumes.
    #[error(
        "the set `{name}` holds {}, for instance `{volume}`; delete what it holds first", count(*volumes)
    )]
    HoldsVolumes {
        /// The set.
        name: String,
        /// How many it holds.
        volumes: usize,
        /// One of them.
        volume: String,
    },
}

fn count(volumes: usize) -> String {
    match volumes {
        1 => "1 volume".to_owned(),
        _ => format!("{volumes} volumes"),
    }
}

/// The sets for volumes that there are.
fn known(sets: &[String]) -> String {
    match sets {
        [] => "there are none".to_owned(),
        sets => format!("there are `{}`", sets.join("`, `")),
    }
}
