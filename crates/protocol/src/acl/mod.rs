//! Who may do what: users, their passwords, commands and keys, in the words of Redis.
//!
//! A [`User`] is never changed in place: ACL SETUSER makes a new one and puts it in the old one's place,
//! and sessions notice by a number that goes up. Nothing here keeps a password: only hashes.

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

/// All users of a server, on all of its threads.
#[derive(Debug)]
pub struct Acl {
    users: Mutex<Users>,
    /// Goes up with every change.
    generation: AtomicU64,
    pub(crate) log: DenialLog,
}

impl Acl {
    /// These users, and an open `default` where it is not among them.
    pub fn new(mut users: Users) -> Acl {
        complete(&mut users);
        Acl { users: Mutex::new(users), generation: AtomicU64::new(1), log: DenialLog::default() }
    }

    /// Everybody may do everything.
    pub fn open() -> Acl {
        Acl::new(Users::new())
    }

    /// Changes with every change of a user.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        let name = std::str::from_utf8(name).ok()?;
        lock(&self.users).get(name).cloned()
    }

    /// All of them.
    pub(crate) fn users(&self) -> Users {
        lock(&self.users).clone()
    }

    /// Whether a client must say who it is.
    pub fn asks_for_password(&self) -> bool {
        self.guest().is_none()
    }

    /// Whether `default` has no password.
    pub(crate) fn is_default_open(&self) -> bool {
        lock(&self.users).get(DEFAULT_USER).is_some_and(|user| user.needs_no_password)
    }

    /// Who a client is that has said nothing: `default`, if it has no password.
    pub(crate) fn guest(&self) -> Option<Arc<User>> {
        lock(&self.users).get(DEFAULT_USER).filter(|user| user.is_open()).cloned()
    }

    /// Puts a user into the place of the one that it was made from; false where that is not there any more,
    /// because somebody else was faster.
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

    /// Removes a user; whether there was one.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let removed = lock(&self.users).remove(name).is_some();
        self.generation.fetch_add(1, Ordering::Release);
        removed
    }

    /// Puts these users into the place of all.
    pub(crate) fn replace_all(&self, mut users: Users) {
        complete(&mut users);
        *lock(&self.users) = users;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// Adds an open `default` where there is none, as Redis does.
fn complete(users: &mut Users) {
    if !users.contains_key(DEFAULT_USER) {
        let user = User::open_default();
        users.insert(Arc::clone(user.name_handle()), Arc::new(user));
    }
}

/// The password that a server was started with: the only one of `default`, whatever a file says.
#[derive(Debug)]
pub(crate) struct FixedPassword(Option<Secret>);

impl FixedPassword {
    pub fn new(password: &[u8], salts: &Salts) -> FixedPassword {
        FixedPassword(Secret::hash(password, salts))
    }

    /// Gives it to `default`; what that user may do stays as it is.
    pub fn give(&self, users: &mut Users) {
        complete(users);
        if let Some(user) = users.get_mut(DEFAULT_USER) {
            let user = Arc::make_mut(user);
            user.needs_no_password = false;
            // A password that could not be hashed lets nobody in.
            user.passwords = self.0.iter().cloned().collect();
        }
    }
}

/// Reads the text of an ACL file; passwords in it that are in the clear are hashed, which takes a while.
///
/// # Errors
/// [`AclError`] names the line and the reason, and never a password.
pub fn parse_users(text: &str, salts: &Salts) -> Result<Users, AclError> {
    file::parse(text, salts)
}

/// The text of an ACL file.
pub fn users_text(users: &Users) -> String {
    file::text(users)
}
