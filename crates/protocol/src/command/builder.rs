//! Constructors for the entries of the command table.

use crate::command::{Access, CommandId, Flags, Group, Keys, Spec, Touches};

/// Name, arity, flags.
pub(super) const fn command(
    id: CommandId,
    name: &'static str,
    arity: i64,
    flags: &[Flags],
) -> Spec {
    let (mut all, mut index) = (Flags::NONE, 0);
    while index < flags.len() {
        all = all.and(flags[index]);
        index += 1;
    }
    Spec {
        name,
        arity,
        flags: all,
        keys: Keys::None,
        // By default, the strictest access that fits the flags.
        touches: Touches::Each(if all.has(Flags::WRITE) { Access::BOTH } else { Access::READ }),
        group: Group::Server,
        since: "",
        summary: "",
        subcommands: &[],
        is_container: false,
        id,
    }
}

impl Spec {
    pub(super) const fn keys(self, first: usize, last: isize, step: usize) -> Spec {
        Spec { keys: Keys::Range { first, last, step }, ..self }
    }

    /// The argument at `count` is the number of keys, which follow it.
    pub(super) const fn counted_keys(self, count: usize) -> Spec {
        Spec { keys: Keys::Counted(count), ..self }
    }

    /// Sets an access to the keys other than reading them or, for a writing command, reading and
    /// writing them.
    pub(super) const fn touching(self, touches: Touches) -> Spec {
        Spec { touches, ..self }
    }

    /// The command changes its keys and does not reveal their values.
    pub(super) const fn only_writing(self) -> Spec {
        self.touching(Touches::Each(Access::WRITE))
    }

    /// The command reveals metadata of its keys, but not their values.
    pub(super) const fn only_looking(self) -> Spec {
        self.touching(Touches::Each(Access::METADATA))
    }

    pub(super) const fn over_everything(self) -> Spec {
        Spec { keys: Keys::All, ..self }
    }

    pub(super) const fn docs(
        self,
        group: Group,
        since: &'static str,
        summary: &'static str,
    ) -> Spec {
        Spec { group, since, summary, ..self }
    }

    pub(super) const fn containing(self, subcommands: &'static [Spec]) -> Spec {
        Spec { is_container: true, ..self.also_containing(subcommands) }
    }

    /// The command also works without a subcommand.
    pub(super) const fn also_containing(self, subcommands: &'static [Spec]) -> Spec {
        Spec { subcommands, ..self }
    }
}
