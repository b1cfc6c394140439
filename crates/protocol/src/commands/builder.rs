//! Words to write the table in.

use crate::acl::Access;
use crate::commands::spec::{Waiting, WaitingHandler, WideHandler};
use crate::commands::{Call, Flags, Group, Handler, Keyed, Keys, Load, Spec, Touches};
use crate::error::Result;
use crate::reply::Reply;
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;

/// Name, arity, properties.
pub(super) const fn command(name: &'static str, arity: i64, flags: &[Flags]) -> Spec {
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
        handler: Handler::Container,
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
        Spec { subcommands, ..self }
    }

    /// Runs over the entries of its keys.
    pub(super) const fn keyed(self, run: fn(&mut Call<'_>) -> Result<Reply>) -> Spec {
        self.loading(Load::Keys, run)
    }

    /// Overwrites its keys unseen.
    pub(super) const fn blind(self, run: fn(&mut Call<'_>) -> Result<Reply>) -> Spec {
        self.loading(Load::Nothing, run)
    }

    pub(super) const fn loading(self, load: Load, run: fn(&mut Call<'_>) -> Result<Reply>) -> Spec {
        Spec { handler: Handler::Keyed(Keyed { run, load }), ..self }
    }

    pub(super) const fn session(
        self,
        run: fn(&mut Session, &Store, &[Bytes]) -> Result<Reply>,
    ) -> Spec {
        Spec { handler: Handler::Session(run), ..self }
    }

    pub(super) const fn waiting(self, run: WaitingHandler) -> Spec {
        self.waiting_if(|_| true, run)
    }

    pub(super) const fn waiting_if(
        self,
        takes_long: fn(&[Bytes]) -> bool,
        run: WaitingHandler,
    ) -> Spec {
        Spec { handler: Handler::Waiting(Waiting { run, takes_long }), ..self }
    }

    pub(super) const fn wide(self, run: WideHandler) -> Spec {
        Spec { handler: Handler::Wide(run), ..self }
    }

    pub(super) const fn run_by(self, handler: Handler) -> Spec {
        Spec { handler, ..self }
    }
}
