//! The set of commands that a user may run.

use crate::command::{COMMANDS, Spec, absent};

/// Redis' categories; those without a command here are empty.
pub(crate) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// A set of commands, and the rules that produced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandSet {
    /// For each command of the table: a bit for the command (the lowest) and one for each of its
    /// subcommands.
    allowed: Box<[u32]>,
    /// The rules as ACL LIST shows them; the first is for all commands.
    rules: Vec<String>,
}

/// A bit for the command and one for each subcommand.
fn everything_of(spec: &Spec) -> u32 {
    (0..=spec.subcommands.len()).fold(0, |bits, place| bits | bit(place))
}

fn bit(place: usize) -> u32 {
    u32::try_from(place).ok().and_then(|place| 1_u32.checked_shl(place)).unwrap_or(0)
}

impl CommandSet {
    pub fn all() -> CommandSet {
        let allowed = COMMANDS.iter().map(everything_of).collect();
        CommandSet { allowed, rules: vec!["+@all".to_owned()] }
    }

    pub fn none() -> CommandSet {
        let allowed = COMMANDS.iter().map(|_| 0).collect();
        CommandSet { allowed, rules: vec!["-@all".to_owned()] }
    }

    /// Whether it contains all commands.
    pub fn is_all(&self) -> bool {
        COMMANDS.iter().zip(&self.allowed).all(|(spec, bits)| *bits == everything_of(spec))
    }

    /// Whether it contains the command at `index` of the table, or its subcommand at `subcommand`.
    pub fn allows(&self, index: usize, subcommand: Option<usize>) -> bool {
        let place = subcommand.map_or(0, |place| place + 1);
        self.allowed.get(index).is_some_and(|bits| bits & bit(place) != 0)
    }

    /// The rules in one line.
    pub fn text(&self) -> String {
        self.rules.join(" ")
    }

    /// Applies `+name` or `-name`; false where there is no such command or category.
    pub fn apply(&mut self, add: bool, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let known = match name.strip_prefix('@') {
            Some("all") => {
                *self = if add { CommandSet::all() } else { CommandSet::none() };
                return true;
            }
            Some(category) => self.apply_category(add, category),
            // A command of Redis that is not built: the rule is kept, for files of other servers.
            None => self.apply_command(add, &name) || absent::reason(name.as_bytes()).is_some(),
        };
        if known {
            self.note(add, &name);
        }
        known
    }

    fn apply_category(&mut self, add: bool, category: &str) -> bool {
        if !CATEGORIES.contains(&category) {
            return false;
        }
        let belongs =
            |spec: &Spec| spec.categories().iter().any(|known| known.get(1..) == Some(category));
        for (spec, bits) in COMMANDS.iter().zip(&mut self.allowed) {
            if belongs(spec) {
                change(bits, add, bit(0));
            }
            for (place, subcommand) in spec.subcommands.iter().enumerate() {
                if belongs(subcommand) {
                    change(bits, add, bit(place + 1));
                }
            }
        }
        true
    }

    fn apply_command(&mut self, add: bool, name: &str) -> bool {
        let (command, subcommand) = match name.split_once('|') {
            Some((command, subcommand)) => (command, Some(subcommand)),
            None => (name, None),
        };
        let Some(index) = COMMANDS.iter().position(|spec| spec.name == command) else {
            return false;
        };
        let (Some(spec), Some(bits)) = (COMMANDS.get(index), self.allowed.get_mut(index)) else {
            return false;
        };
        let Some(subcommand) = subcommand else {
            change(bits, add, everything_of(spec));
            return true;
        };
        let place = spec.subcommands.iter().position(|spec| spec.short_name() == subcommand);
        if let Some(place) = place {
            change(bits, add, bit(place + 1));
        }
        place.is_some()
    }

    /// Appends a rule and removes the earlier rules that it overrides.
    fn note(&mut self, add: bool, name: &str) {
        let is_pointless = |rule: &String| {
            let earlier = rule.get(1..).unwrap_or_default();
            let within = earlier.strip_prefix(name).is_some_and(|rest| rest.starts_with('|'));
            earlier == name || within
        };
        self.rules.retain(|rule| !is_pointless(rule));
        self.rules.push(format!("{}{name}", if add { '+' } else { '-' }));
    }
}

fn change(bits: &mut u32, add: bool, which: u32) {
    if add {
        *bits |= which;
    } else {
        *bits &= !which;
    }
}
