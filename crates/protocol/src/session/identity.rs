//! Authentication and authorization: login, and the permission check before each command.

use crate::acl::{Acl, Denial, Reason, Refusal, User, placeholder};
use crate::command::{Access, Flags, Spec};
use crate::error::{CommandError, Result};
use crate::session::Session;
use crate::shared::lock::lock;
use bytes::Bytes;
use softflash_store::Store;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Delay of the reply to a wrong password.
const DELAY_AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Number of wrong passwords after which a connection is closed.
const MAX_FAILURES: u32 = 3;
/// Maximum number of retries when a user is changed while its password is checked.
const MAX_LOOKS: u32 = 3;
/// Logged in place of an unknown user name, because people type passwords into the name field.
const UNKNOWN_USER: &str = "(unknown)";

/// The user of a client, and its permissions.
#[derive(Debug)]
pub(crate) struct Identity {
    user: Option<Arc<User>>,
    /// Generation of the users at the last lookup.
    generation: u64,
    /// Whether every command is permitted; checked for each command.
    free: bool,
    failures: u32,
}

impl Identity {
    /// A client that has not logged in.
    pub fn of_guest(acl: &Acl) -> Identity {
        let generation = acl.generation();
        let mut identity = Identity { user: None, generation, free: false, failures: 0 };
        identity.become_user(acl.guest(), generation);
        identity
    }

    fn become_user(&mut self, user: Option<Arc<User>>, generation: u64) {
        self.free = user.as_ref().is_some_and(|user| user.may_everything());
        self.user = user;
        self.generation = generation;
    }

    /// Whether every command is permitted.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// The client's user, if it has one.
    pub fn user(&self) -> Option<&Arc<User>> {
        self.user.as_ref()
    }

    /// The user, if it may not see every key.
    pub fn short_sighted(&self) -> Option<&Arc<User>> {
        let sees_all = |user: &&Arc<User>| user.may_all_keys(Access::METADATA);
        if self.free { None } else { self.user().filter(|user| !sees_all(user)) }
    }

    /// Applies changes of the user. A client whose user was removed has no user.
    #[inline]
    pub fn refresh(&mut self, acl: &Acl) {
        let generation = acl.generation();
        if generation != self.generation {
            let name = self.user.as_ref().map(|user| Arc::clone(user.name_handle()));
            self.become_user(name.and_then(|name| acl.user(name.as_bytes())), generation);
        }
    }
}

impl Session {
    /// Resets the client to one that has not logged in.
    pub(crate) fn log_out(&mut self) {
        let failures = self.identity.failures;
        self.identity = Identity { failures, ..Identity::of_guest(&self.context.acl) };
        self.publish_user();
    }

    /// Logs the client in if the password is right; replies to wrong passwords are delayed and
    /// limited in number.
    pub(crate) async fn log_in(
        &mut self,
        store: &Store,
        name: &[u8],
        password: &Bytes,
        command: &'static str,
    ) -> Result<()> {
        let context = Arc::clone(&self.context);
        for _ in 0..MAX_LOOKS {
            let generation = context.acl.generation();
            let user = context.acl.user(name);
            let is_right = match &user {
                Some(user) if user.is_open() => true,
                user => {
                    let (user, password) = (user.clone(), password.clone());
                    self.slowly(move || match user {
                        Some(user) => user.accepts(&password),
                        None => {
                            // For the duration of the check.
                            placeholder().verify(&password);
                            false
                        }
                    })
                    .await?
                }
            };
            let is_as_before = context.acl.user(name) == user;
            if is_right && is_as_before {
                self.identity.become_user(user, generation);
                self.identity.failures = 0;
                self.publish_user();
                return Ok(());
            }
            if is_as_before {
                break;
            }
        }
        let user = context.acl.user(name);
        let name = user.as_ref().map_or(UNKNOWN_USER, |user| user.name());
        self.note_denial(store, Reason::Authentication, command.as_bytes(), name);
        self.identity.failures += 1;
        let runtime = store.runtime();
        runtime.sleep_until(runtime.now() + DELAY_AFTER_FAILURE).await;
        if self.identity.failures >= MAX_FAILURES {
            self.close();
        }
        Err(CommandError::WRONG_PASSWORD)
    }

    /// Runs a slow job on another thread.
    pub(crate) async fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let job = Box::new(move || *lock(&place) = Some(work()));
        (self.context.elsewhere)(&self.client.address, job).await;
        let done = lock(&result).take();
        done.ok_or(CommandError::Known("ERR the server could not do this now, try again"))
    }

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

    fn note_denial(&self, store: &Store, reason: Reason, object: &[u8], user: &str) {
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

    /// Publishes the user name for CLIENT LIST.
    pub(crate) fn publish_user(&self) {
        let user = self.identity.user().map(|user| Arc::clone(user.name_handle()));
        self.client.update(|activity| activity.user = user);
    }
}
