//! What the table says of a command.

use crate::command::{Access, CommandId};
use bytes::Bytes;
use std::ops::BitOr;

/// Properties of a command, as COMMAND INFO names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    /// None of them.
    pub const NONE: Flags = Flags(0);
    /// It may change data.
    pub const WRITE: Flags = Flags(1);
    /// It reads keys and changes nothing.
    pub const READONLY: Flags = Flags(1 << 1);
    /// It may need room.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// It is for administrators.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// Redis keeps it out of scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    /// Redis allows it while it loads.
    pub const LOADING: Flags = Flags(1 << 5);
    /// Redis allows it on a stale replica.
    pub const STALE: Flags = Flags(1 << 6);
    /// It does not enter the slow log.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 7);
    /// It takes a time that does not grow with the data.
    pub const FAST: Flags = Flags(1 << 8);
    /// It is allowed before authentication.
    pub const NO_AUTH: Flags = Flags(1 << 9);
    /// It is not allowed in a transaction.
    pub const NO_MULTI: Flags = Flags(1 << 10);
    /// Redis allows it while a script runs.
    pub const ALLOW_BUSY: Flags = Flags(1 << 11);
    /// It runs at once where others are queued in a transaction.
    pub(crate) const UNQUEUED: Flags = Flags(1 << 12);
    /// Redis counts it among the dangerous ones.
    pub(crate) const DANGEROUS: Flags = Flags(1 << 13);

    const NAMES: [(Flags, &'static str); 12] = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::ALLOW_BUSY, "allow_busy"),
    ];

    /// Both sets together.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` are among them.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Their names in Redis' order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        self.and(other)
    }
}

/// Which arguments are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// None.
    None,
    /// The arguments from `first` to `last`, every `step`-th; a negative `last` counts from the end.
    Range {
        /// The first key's position.
        first: usize,
        /// The last key's position.
        last: isize,
        /// From one key to the next.
        step: usize,
    },
    /// The command means every key there is.
    All,
}

impl Keys {
    /// The three numbers of COMMAND INFO.
    pub fn positions(self) -> [i64; 3] {
        match self {
            Keys::Range { first, last, step } => [first as i64, last as i64, step as i64],
            Keys::None | Keys::All => [0; 3],
        }
    }

    /// The keys among a command's words.
    pub fn of(self, args: &[Bytes]) -> impl Iterator<Item = &Bytes> {
        let (first, last, step) = match self {
            Keys::Range { first, last, step } if last < 0 => {
                (first, args.len().saturating_sub(last.unsigned_abs()), step)
            }
            Keys::Range { first, last, step } => (first, last.unsigned_abs(), step),
            Keys::None | Keys::All => (1, 0, 1),
        };
        let end = (last + 1).min(args.len());
        args.get(first..end).unwrap_or_default().iter().step_by(step)
    }
}

/// What a command does to its keys: what its user must be allowed.
#[derive(Debug, Clone, Copy)]
pub enum Touches {
    /// The same to all.
    Each(Access),
    /// Something to the first and something else to those that follow.
    FirstAndOthers(Access, Access),
    /// It depends on the words.
    ByWords(fn(&[Bytes]) -> Access),
}

impl Touches {
    /// What is done to the key at `place` among the keys.
    pub fn of(self, place: usize, args: &[Bytes]) -> Access {
        match self {
            Touches::Each(access) => access,
            Touches::FirstAndOthers(first, others) => {
                if place == 0 {
                    first
                } else {
                    others
                }
            }
            Touches::ByWords(judge) => judge(args),
        }
    }
}

/// Commands that belong together in Redis' documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// On the connection.
    Connection,
    /// On keys of any type.
    Generic,
    /// On the server.
    Server,
    /// On strings.
    String,
    /// On transactions.
    Transactions,
}

impl Group {
    /// Its name in COMMAND DOCS.
    pub fn name(self) -> &'static str {
        match self {
            Group::Connection => "connection",
            Group::Generic => "generic",
            Group::Server => "server",
            Group::String => "string",
            Group::Transactions => "transactions",
        }
    }
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Its name in lower case; a subcommand's as `client|id`.
    pub name: &'static str,
    /// The number of words, the name included; the least number where negative.
    pub arity: i64,
    /// Its properties.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: Keys,
    /// What it does to them.
    pub touches: Touches,
    /// Its family.
    pub group: Group,
    /// The first version of Redis, or of SoftFlash, that has it.
    pub since: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Commands within it.
    pub subcommands: &'static [Spec],
    /// It does nothing but hold its subcommands.
    pub is_container: bool,
    pub(crate) id: CommandId,
}

impl Spec {
    /// Whether a command of so many words is complete.
    pub fn takes(&self, words: usize) -> bool {
        let words = i64::try_from(words).unwrap_or(i64::MAX);
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// The keys among a command's words.
    pub fn keys_of<'a>(&self, args: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> {
        self.keys.of(args)
    }

    /// The part of the name after the container's.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, name)| name)
    }

    /// The subcommand of that name.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<&'static Spec> {
        self.subcommands.get(self.subcommand_place(name)?)
    }

    /// Where among the subcommands the one of that name is.
    pub(crate) fn subcommand_place(&self, name: &[u8]) -> Option<usize> {
        let is_it = |spec: &Spec| spec.short_name().as_bytes().eq_ignore_ascii_case(name);
        self.subcommands.iter().position(is_it)
    }

    /// Redis' access categories, in its order.
    pub(crate) fn categories(&self) -> Vec<&'static str> {
        let has = |flag| self.flags.has(flag);
        let is = |group| self.group == group && !self.is_container;
        let categories = [
            (is(Group::Generic), "@keyspace"),
            (has(Flags::READONLY), "@read"),
            (has(Flags::WRITE), "@write"),
            (is(Group::String), "@string"),
            (has(Flags::ADMIN), "@admin"),
            (has(Flags::FAST), "@fast"),
            (!has(Flags::FAST), "@slow"),
            (has(Flags::ADMIN) || has(Flags::DANGEROUS), "@dangerous"),
            // In Redis COMMAND is one of the connection, and its subcommands are too, whatever their group.
            (is(Group::Connection) || self.name.starts_with("command|"), "@connection"),
            (is(Group::Transactions), "@transaction"),
        ];
        categories.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }
}
