//! Words to write the table in.

use crate::command::{Access, CommandId, Flags, Group, Keys, Spec, Touches};

/// Name, arity, properties.
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
        // The strictest that fits, where the table says nothing else.
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

    /// Does something else to its keys than reading them or, where it writes, both.
    pub(super) const fn touching(self, touches: Touches) -> Spec {
        Spec { touches, ..self }
    }

    /// Changes its keys and tells nothing of their values.
    pub(super) const fn only_writing(self) -> Spec {
        self.touching(Touches::Each(Access::WRITE))
    }

    /// Tells of its keys what they are, not what is in them.
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

    /// Does something by itself, too.
    pub(super) const fn also_containing(self, subcommands: &'static [Spec]) -> Spec {
        Spec { subcommands, ..self }
    }
}
