//! Words to write the table in.

use crate::commands::spec::WideHandler;
use crate::commands::{Call, Flags, Group, Handler, Keyed, Keys, Load, Spec};
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

    pub(super) const fn wide(self, run: WideHandler) -> Spec {
        Spec { handler: Handler::Wide(run), ..self }
    }

    pub(super) const fn run_by(self, handler: Handler) -> Spec {
        Spec { handler, ..self }
    }
}
