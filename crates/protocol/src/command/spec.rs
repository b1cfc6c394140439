//! The types of a command table entry.

use crate::command::{Access, CommandId};
use crate::resp::number::parse_i64;
use bytes::Bytes;
use std::ops::BitOr;

/// Flags of a command, as COMMAND INFO names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u32);

impl Flags {
    /// None of them.
    pub const NONE: Flags = Flags(0);
    /// The command may change data.
    pub const WRITE: Flags = Flags(1);
    /// The command reads keys and changes nothing.
    pub const READONLY: Flags = Flags(1 << 1);
    /// The command may need space.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// The command is for administrators.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// Redis does not allow the command in scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    /// Redis allows the command while it loads data.
    pub const LOADING: Flags = Flags(1 << 5);
    /// Redis allows the command on a stale replica.
    pub const STALE: Flags = Flags(1 << 6);
    /// The command is not recorded in the slow log.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 7);
    /// The command's time does not grow with the data.
    pub const FAST: Flags = Flags(1 << 8);
    /// The command is allowed before authentication.
    pub const NO_AUTH: Flags = Flags(1 << 9);
    /// The command is not allowed in a transaction.
    pub const NO_MULTI: Flags = Flags(1 << 10);
    /// Redis allows the command while a script runs.
    pub const ALLOW_BUSY: Flags = Flags(1 << 11);
    /// The command runs immediately even within MULTI, where others are queued.
    pub(crate) const UNQUEUED: Flags = Flags(1 << 12);
    /// Redis has the command in its category `dangerous`.
    pub(crate) const DANGEROUS: Flags = Flags(1 << 13);
    /// Redis does not show the command to MONITOR.
    pub const SKIP_MONITOR: Flags = Flags(1 << 14);
    /// The command may have no keys.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 15);
    /// The positions of the keys depend on the arguments.
    pub const MOVABLE_KEYS: Flags = Flags(1 << 16);

    const NAMES: [(Flags, &'static str); 15] = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::ALLOW_BUSY, "allow_busy"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::MOVABLE_KEYS, "movablekeys"),
    ];

    /// The union.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether this includes all of `other`.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names in Redis' order.
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
    /// The arguments from `first` to `last`, every `step`-th; a negative `last` counts from the
    /// end.
    Range {
        /// Position of the first key.
        first: usize,
        /// Position of the last key.
        last: isize,
        /// Distance between two keys.
        step: usize,
    },
    /// As many as the argument at this position says, after it.
    Counted(usize),
    /// The command is on all keys.
    All,
}

impl Keys {
    /// The three numbers of COMMAND INFO.
    pub fn positions(self) -> [i64; 3] {
        match self {
            Keys::Range { first, last, step } => [first as i64, last as i64, step as i64],
            Keys::None | Keys::Counted(_) | Keys::All => [0; 3],
        }
    }

    /// The keys among a command's arguments.
    pub fn of(self, args: &[Bytes]) -> impl Iterator<Item = &Bytes> {
        let (first, last, step) = match self {
            Keys::Range { first, last, step } if last < 0 => {
                (first, args.len().saturating_sub(last.unsigned_abs()), step)
            }
            Keys::Range { first, last, step } => (first, last.unsigned_abs(), step),
            Keys::Counted(count) => {
                let keys = args.get(count).and_then(|word| parse_i64(word)).unwrap_or(0);
                let keys = usize::try_from(keys).unwrap_or(0);
                // As in Redis, a number that is too large is that of no keys.
                let are_there = keys <= args.len().saturating_sub(count + 1);
                (count + 1, if are_there { count + keys } else { count }, 1)
            }
            Keys::None | Keys::All => (1, 0, 1),
        };
        let end = last.saturating_add(1).min(args.len());
        args.get(first..end).unwrap_or_default().iter().step_by(step)
    }
}

/// A command's access to its keys, which its user needs permission for.
#[derive(Debug, Clone, Copy)]
pub enum Touches {
    /// The same access to all keys.
    Each(Access),
    /// One access to the first key and another to the following keys.
    FirstAndOthers(Access, Access),
    /// The access depends on the arguments.
    ByWords(fn(&[Bytes]) -> Access),
}

impl Touches {
    /// The access to the key at `place` among the keys.
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

/// The groups of Redis' documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// On the connection.
    Connection,
    /// On keys of any type.
    Generic,
    /// On scripts.
    Scripting,
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
            Group::Scripting => "scripting",
            Group::Server => "server",
            Group::String => "string",
            Group::Transactions => "transactions",
        }
    }
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name in lower case; of a subcommand, as `client|id`.
    pub name: &'static str,
    /// Number of words, the name included; negative: the minimum.
    pub arity: i64,
    /// Its properties.
    pub flags: Flags,
    /// Positions of its keys.
    pub keys: Keys,
    /// Access to its keys.
    pub touches: Touches,
    /// Documentation group.
    pub group: Group,
    /// The first version of Redis, or of SoftFlash, with this command.
    pub since: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Subcommands.
    pub subcommands: &'static [Spec],
    /// It is only a container of subcommands.
    pub is_container: bool,
    pub(crate) id: CommandId,
}

impl Spec {
    /// Whether this number of words is allowed.
    pub fn takes(&self, words: usize) -> bool {
        let words = i64::try_from(words).unwrap_or(i64::MAX);
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }

    /// The keys among a command's words.
    pub fn keys_of<'a>(&self, args: &'a [Bytes]) -> impl Iterator<Item = &'a Bytes> {
        self.keys.of(args)
    }

    /// The part of the name after the container's name.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, name)| name)
    }

    /// The subcommand of that name.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<&'static Spec> {
        self.subcommands.get(self.subcommand_place(name)?)
    }

    /// The index of the subcommand of that name.
    pub(crate) fn subcommand_place(&self, name: &[u8]) -> Option<usize> {
        let is_it = |spec: &Spec| spec.short_name().as_bytes().eq_ignore_ascii_case(name);
        self.subcommands.iter().position(is_it)
    }

    /// Redis' ACL categories, in its order.
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
            // In Redis, COMMAND and its subcommands are in the category `connection`, whatever
            // their group.
            (is(Group::Connection) || self.name.starts_with("command|"), "@connection"),
            (is(Group::Transactions), "@transaction"),
            (is(Group::Scripting), "@scripting"),
        ];
        categories.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }
}
