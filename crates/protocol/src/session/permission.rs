//! The permission check before each command, and the log of denials.

use crate::acl::{Denial, Reason, Refusal};
use crate::command::{Flags, Spec};
use crate::error::{CommandError, Result};
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;

impl Session {
    /// Returns an error if the client may not run the command.
    pub(crate) fn permit(
        &self,
        store: &Store,
        spec: &'static Spec,
        index: usize,
        subcommand: Option<usize>,
        args: &[Bytes],
    ) -> Result<()> {
        if spec.flags.has(Flags::NO_AUTH) {
            return Ok(());
        }
        let Some(user) = self.identity.user() else { return Err(CommandError::NOT_AUTHENTICATED) };
        let Err(refusal) = user.permits(spec, index, subcommand, args) else { return Ok(()) };
        let name = spec.name.as_bytes();
        let (reason, object) = match &refusal {
            Refusal::Command => (Reason::Command, name),
            Refusal::Key(key) => (Reason::Key, &key[..]),
            Refusal::AllKeys => (Reason::Key, &b"*"[..]),
        };
        self.note_denial(store, reason, object, user.name());
        Err(match refusal {
            Refusal::Command => CommandError::quoting(&[
                b"NOPERM this user has no permissions to run the '",
                name,
                b"' command",
            ]),
            Refusal::Key(_) => CommandError::Known(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            ),
            Refusal::AllKeys => CommandError::Known(
                "NOPERM this user has no permissions to change all keys, which this command needs",
            ),
        })
    }

    /// Enters a denial into the ACL log.
    pub(super) fn note_denial(&self, store: &Store, reason: Reason, object: &[u8], user: &str) {
        let now_ms = store.now_ms();
        self.context.acl.log.enter(Denial {
            count: 1,
            reason,
            context: if self.transaction.is_some() { "multi" } else { "toplevel" },
            object: object.to_vec(),
            user: user.to_owned(),
            client: self.client.line(now_ms).trim_end().to_owned(),
            at_ms: now_ms,
        });
    }
}
