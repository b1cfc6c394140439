//! A user.

use super::commands::CommandSet;
use super::error::AclError;
use super::keys::KeyPattern;
use super::rules;
use super::secret::{Salts, Secret, placeholder};
use crate::command::{Access, Keys, Spec};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The user of clients that have not authenticated as another one.
pub const DEFAULT_USER: &str = "default";

/// Users by name.
pub type Users = BTreeMap<Arc<str>, Arc<User>>;

/// Maximum number of passwords of a user: a login checks all of them.
pub(super) const MAX_PASSWORDS: usize = 8;
/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// A user with passwords and permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: Arc<str>,
    pub(super) enabled: bool,
    pub(super) needs_no_password: bool,
    pub(super) passwords: Vec<Secret>,
    pub(super) commands: CommandSet,
    pub(super) keys: Vec<KeyPattern>,
}

/// The missing permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Command,
    Key(Bytes),
    /// The command is on all keys, and the user may not change all keys.
    AllKeys,
}

/// Whether the name is valid.
pub(crate) fn check_name(name: &[u8]) -> Result<&str, AclError> {
    let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= MAX_NAME_BYTES);
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    match text {
        Some(text) if !text.contains(is_bad) && !text.is_empty() => Ok(text),
        Some(_) => Err(AclError::Name("Usernames can't contain spaces or null characters")),
        None => Err(AclError::Name("Usernames must be UTF-8 of at most 128 bytes")),
    }
}

impl User {
    /// A new user of ACL SETUSER: disabled, no password, no commands, no keys.
    pub(crate) fn new(name: &str) -> User {
        User {
            name: name.into(),
            enabled: false,
            needs_no_password: false,
            passwords: Vec::new(),
            commands: CommandSet::none(),
            keys: Vec::new(),
        }
    }

    /// `default` without an ACL file: no password and all permissions.
    pub(crate) fn open_default() -> User {
        User {
            enabled: true,
            needs_no_password: true,
            commands: CommandSet::all(),
            keys: vec![KeyPattern::everything()],
            ..User::new(DEFAULT_USER)
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn name_handle(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether a login needs no password.
    pub fn is_open(&self) -> bool {
        self.enabled && self.needs_no_password
    }

    /// Whether all commands and keys are permitted.
    pub(crate) fn may_everything(&self) -> bool {
        self.commands.is_all() && self.may_all_keys(Access::BOTH)
    }

    /// Whether this access to all keys is permitted.
    pub(crate) fn may_all_keys(&self, access: Access) -> bool {
        self.keys.iter().any(|pattern| pattern.covers_all(access))
    }

    /// Whether this access to the key is permitted.
    pub(crate) fn may(&self, key: &[u8], access: Access) -> bool {
        self.keys.iter().any(|pattern| pattern.covers(key, access))
    }

    /// Whether the user may know that the key exists.
    pub(crate) fn sees(&self, key: &[u8]) -> bool {
        self.may(key, Access::METADATA)
    }

    /// Whether a command is permitted: the command at `index` of the table, its subcommand at
    /// `subcommand`.
    pub(crate) fn permits(
        &self,
        spec: &'static Spec,
        index: usize,
        subcommand: Option<usize>,
        args: &[Bytes],
    ) -> Result<(), Refusal> {
        if !self.commands.allows(index, subcommand) {
            return Err(Refusal::Command);
        }
        if spec.keys == Keys::All && !self.may_all_keys(spec.touches.of(0, args)) {
            return Err(Refusal::AllKeys);
        }
        for (place, key) in spec.keys_of(args).enumerate() {
            if !self.may(key, spec.touches.of(place, args)) {
                return Err(Refusal::Key(key.clone()));
            }
        }
        Ok(())
    }

    /// Whether a password is this user's. Slow, and equally slow for a wrong password.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        if !self.passwords.iter().any(Secret::is_slow) {
            // The time must not reveal the kind of user.
            placeholder().verify(password);
        }
        // Checks all of them, even after a match.
        let right = self.passwords.iter().fold(false, |right, secret| {
            let is_right = secret.verify(password);
            right | is_right
        });
        self.enabled && right
    }

    /// Changes the user by a rule such as `on`, `>password`, `~app:*` or `+@read`.
    ///
    /// # Errors
    /// Why the rule is invalid.
    pub(crate) fn apply(&mut self, rule: &[u8], salts: &Salts) -> Result<(), AclError> {
        rules::apply(self, rule, salts)
    }

    /// The rules that define this user, as ACL LIST shows them.
    pub(crate) fn rules(&self) -> String {
        let mut rules = vec![if self.enabled { "on" } else { "off" }.to_owned()];
        if self.needs_no_password {
            rules.push("nopass".to_owned());
        }
        rules.extend(self.passwords.iter().map(|secret| format!("#{}", secret.text())));
        rules.extend(self.key_rules());
        rules.push(self.commands.text());
        rules.join(" ")
    }

    /// Names of the active flags, as ACL GETUSER shows them.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let nopass = self.needs_no_password.then_some("nopass");
        [if self.enabled { "on" } else { "off" }].into_iter().chain(nopass).collect()
    }

    /// The hashes of its passwords.
    pub(crate) fn hashes(&self) -> Vec<String> {
        self.passwords.iter().map(Secret::text).collect()
    }

    /// The rules of its commands.
    pub(crate) fn command_rules(&self) -> String {
        self.commands.text()
    }

    /// The rules of its keys.
    pub(crate) fn key_rules(&self) -> Vec<String> {
        let text = |pattern: &KeyPattern| String::from_utf8_lossy(&pattern.rule()).into_owned();
        self.keys.iter().map(text).collect()
    }
}
