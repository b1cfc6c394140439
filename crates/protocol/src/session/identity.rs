//! The user of a client.

use crate::acl::{Acl, User};
use crate::command::Access;
use std::sync::Arc;

/// Number of wrong passwords after which a connection is closed.
const MAX_FAILURES: u32 = 3;

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

    /// Becomes a user whose password was right, as it was at a generation of the users.
    pub fn authenticate(&mut self, user: Option<Arc<User>>, generation: u64) {
        self.become_user(user, generation);
        self.failures = 0;
    }

    /// Becomes a client that has not logged in. Wrong passwords stay counted.
    pub fn become_guest(&mut self, acl: &Acl) {
        let failures = self.failures;
        *self = Identity { failures, ..Identity::of_guest(acl) };
    }

    /// Counts a wrong password; returns whether the connection must be closed.
    pub fn count_failure(&mut self) -> bool {
        self.failures += 1;
        self.failures >= MAX_FAILURES
    }
}
