//! The permission check before each command, and the log of denials.

use crate::acl::{Denial, Reason, Refusal};
use crate::command::{Flags, Spec};
use crate::error::CommandError;
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;

/// When a command is checked, as ACL LOG names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before it runs.
    Alone,
    /// When it is queued in a transaction, or before EXEC runs it.
    InTransaction,
}

/// Why a client may not run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    NotAuthenticated,
    /// The user may not run the command of this name, or not with its keys.
    Denied(&'static str, Refusal),
}

impl Session {
    /// The moment at which a command is checked when the client sends it.
    pub(crate) fn moment(&self) -> Moment {
        if self.transaction.is_some() { Moment::InTransaction } else { Moment::Alone }
    }

    /// Returns, and logs, why the client may not run the command, if that is so.
    pub(crate) fn permit(
        &self,
        store: &Store,
        spec: &'static Spec,
        (index, subcommand): (usize, Option<usize>),
        args: &[Bytes],
        moment: Moment,
    ) -> Result<(), Refused> {
        if spec.flags.has(Flags::NO_AUTH) {
            return Ok(());
        }
        let Some(user) = self.identity.user() else { return Err(Refused::NotAuthenticated) };
        let Err(refusal) = user.permits(spec, index, subcommand, args) else { return Ok(()) };
        let (reason, object) = match &refusal {
            Refusal::Command => (Reason::Command, spec.name.as_bytes()),
            Refusal::Key(key) => (Reason::Key, &key[..]),
            Refusal::AllKeys => (Reason::Key, &b"*"[..]),
        };
        self.note_denial(store, reason, object, user.name(), moment);
        Err(Refused::Denied(spec.name, refusal))
    }

    /// Enters a denial into the ACL log.
    pub(super) fn note_denial(
        &self,
        store: &Store,
        reason: Reason,
        object: &[u8],
        user: &str,
        moment: Moment,
    ) {
        let now_ms = store.now_ms();
        // The command of the client, which runs others if it is EXEC or a script.
        self.client.update(|activity| activity.command = self.last_command);
        self.context.acl.log.enter(Denial {
            count: 1,
            reason,
            context: match moment {
                Moment::Alone => "toplevel",
                Moment::InTransaction => "multi",
            },
            object: object.to_vec(),
            user: user.to_owned(),
            client: self.client.line(now_ms).trim_end().to_owned(),
            at_ms: now_ms,
        });
    }
}

impl From<Refused> for CommandError {
    fn from(refused: Refused) -> CommandError {
        match refused {
            Refused::NotAuthenticated => CommandError::NOT_AUTHENTICATED,
            Refused::Denied(name, Refusal::Command) => CommandError::quoting(&[
                b"NOPERM this user has no permissions to run the '",
                name.as_bytes(),
                b"' command",
            ]),
            Refused::Denied(_, Refusal::Key(_)) => CommandError::Known(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            ),
            Refused::Denied(_, Refusal::AllKeys) => CommandError::Known(
                "NOPERM this user has no permissions to change all keys, which this command needs",
            ),
        }
    }
}

impl Refused {
    /// The error of a command that was permitted when it was queued.
    pub(crate) fn since_queued(self) -> CommandError {
        let reason: &[u8] = match self {
            Refused::NotAuthenticated => return CommandError::NOT_AUTHENTICATED,
            Refused::Denied(_, Refusal::Command) => {
                b"no permission to execute the command or subcommand"
            }
            Refused::Denied(_, Refusal::Key(_) | Refusal::AllKeys) => {
                b"no permission to touch the specified keys"
            }
        };
        CommandError::quoting(&[
            b"NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
              EXEC call. This command is no longer allowed for the following reason: ",
            reason,
        ])
    }
}
