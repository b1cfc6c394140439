//! Access control lists: users, their passwords, commands and keys, with the rules of Redis.
//!
//! A [`User`] is immutable: ACL SETUSER creates a new one that replaces the old one, and sessions
//! detect the change by a generation number. Passwords are never stored, only their hashes.

mod commands;
mod error;
mod file;
mod keys;
mod log;
mod rules;
mod secret;
#[cfg(test)]
mod tests;
mod user;

pub(crate) use commands::CATEGORIES;
pub use error::AclError;
pub use file::UserFile;
pub(crate) use log::{Denial, DenialLog, Reason};
pub use secret::Salts;
use secret::Secret;
pub(crate) use secret::placeholder;
pub use user::{DEFAULT_USER, User, Users};
pub(crate) use user::{Refusal, check_name};

use crate::shared::lock::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// All users of a server, shared by all threads.
#[derive(Debug)]
pub struct Acl {
    users: Mutex<Users>,
    /// Incremented by every change.
    generation: AtomicU64,
    pub(crate) log: DenialLog,
}

impl Acl {
    /// The given users, plus an open `default` if it is not among them.
    pub fn new(mut users: Users) -> Acl {
        complete(&mut users);
        Acl { users: Mutex::new(users), generation: AtomicU64::new(1), log: DenialLog::default() }
    }

    /// Only an open `default`.
    pub fn open() -> Acl {
        Acl::new(Users::new())
    }

    /// Generation number; incremented by every change of a user.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        let name = std::str::from_utf8(name).ok()?;
        lock(&self.users).get(name).cloned()
    }

    /// All users.
    pub(crate) fn users(&self) -> Users {
        lock(&self.users).clone()
    }

    /// Whether clients must authenticate.
    pub fn asks_for_password(&self) -> bool {
        self.guest().is_none()
    }

    /// Whether `default` has no password.
    pub(crate) fn is_default_open(&self) -> bool {
        lock(&self.users).get(DEFAULT_USER).is_some_and(|user| user.needs_no_password)
    }

    /// The user of a client that has not authenticated: `default`, if it has no password.
    pub(crate) fn guest(&self) -> Option<Arc<User>> {
        lock(&self.users).get(DEFAULT_USER).filter(|user| user.is_open()).cloned()
    }

    /// Replaces a user by a changed one; false if the user was changed or removed meanwhile.
    pub(crate) fn replace(&self, before: Option<&Arc<User>>, user: User) -> bool {
        let mut users = lock(&self.users);
        let is_as_before = match (before, users.get(user.name())) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        if is_as_before {
            users.insert(Arc::clone(user.name_handle()), Arc::new(user));
            self.generation.fetch_add(1, Ordering::Release);
        }
        is_as_before
    }

    /// Removes a user; returns whether it existed.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let removed = lock(&self.users).remove(name).is_some();
        self.generation.fetch_add(1, Ordering::Release);
        removed
    }

    /// Replaces all users.
    pub(crate) fn replace_all(&self, mut users: Users) {
        complete(&mut users);
        *lock(&self.users) = users;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Adds an open `default` if it is missing, as Redis does.
fn complete(users: &mut Users) {
    if !users.contains_key(DEFAULT_USER) {
        let user = User::open_default();
        users.insert(Arc::clone(user.name_handle()), Arc::new(user));
    }
}

/// The start-up password of the server: the only password of `default`, regardless of the file.
#[derive(Debug)]
pub(crate) struct FixedPassword(Option<Secret>);

impl FixedPassword {
    pub fn new(password: &[u8], salts: &Salts) -> FixedPassword {
        FixedPassword(Secret::hash(password, salts))
    }

    /// Sets it as the only password of `default`; its permissions stay.
    pub fn give(&self, users: &mut Users) {
        complete(users);
        if let Some(user) = users.get_mut(DEFAULT_USER) {
            let user = Arc::make_mut(user);
            user.needs_no_password = false;
            // Without a hash, no password is accepted.
            user.passwords = self.0.iter().cloned().collect();
        }
    }
}

/// Parses an ACL file; plain-text passwords in it are hashed, which takes a while.
///
/// # Errors
/// [`AclError`] gives the line and the reason, and never a password.
pub fn parse_users(text: &str, salts: &Salts) -> Result<Users, AclError> {
    file::parse(text, salts)
}

/// The text of an ACL file.
pub fn users_text(users: &Users) -> String {
    file::text(users)
}
