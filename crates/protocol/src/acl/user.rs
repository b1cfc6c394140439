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

/// The user that everybody is who has not said otherwise.
pub const DEFAULT_USER: &str = "default";

/// Users by name.
pub type Users = BTreeMap<Arc<str>, Arc<User>>;

/// Passwords that a user may have: each try of one takes as long as all of them.
pub(super) const MAX_PASSWORDS: usize = 8;
/// The longest name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: Arc<str>,
    pub(super) enabled: bool,
    pub(super) needs_no_password: bool,
    pub(super) passwords: Vec<Secret>,
    pub(super) commands: CommandSet,
    pub(super) keys: Vec<KeyPattern>,
}

/// What a user lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Command,
    Key(Bytes),
    /// The command is on all keys, and the user may not change all.
    AllKeys,
}

/// Whether a name can be a user's.
pub(crate) fn check_name(name: &[u8]) -> Result<&str, AclError> {
    let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= MAX_NAME_BYTES);
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    match text {
        Some(text) if !text.contains(is_bad) && !text.is_empty() => Ok(text),
        Some(_) => Err(AclError::Name("Usernames can't contain spaces or null characters")),
        None => Err(AclError::Name("Usernames must be UTF-8 and have at most 128 bytes")),
    }
}

impl User {
    /// A user as ACL SETUSER begins with: switched off, no password, no commands, no keys.
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

    /// `default` as it is where nobody has said anything: without a password and allowed everything.
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

    /// Whether anybody may be this user without a password.
    pub fn is_open(&self) -> bool {
        self.enabled && self.needs_no_password
    }

    /// Whether nothing is forbidden.
    pub(crate) fn may_everything(&self) -> bool {
        self.commands.is_all() && self.may_all_keys(Access::BOTH)
    }

    /// Whether every key may be touched so.
    pub(crate) fn may_all_keys(&self, access: Access) -> bool {
        self.keys.iter().any(|pattern| pattern.covers_all(access))
    }

    /// Whether the key may be touched so.
    pub(crate) fn may(&self, key: &[u8], access: Access) -> bool {
        self.keys.iter().any(|pattern| pattern.covers(key, access))
    }

    /// Whether the user may know that the key exists.
    pub(crate) fn sees(&self, key: &[u8]) -> bool {
        self.may(key, Access::METADATA)
    }

    /// Whether a command is allowed: the command at `index` of the table, its subcommand at `subcommand`.
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

    /// Whether a password is this user's. Takes long, and as long for a wrong one as for the right one.
    pub(crate) fn accepts(&self, password: &[u8]) -> bool {
        if !self.passwords.iter().any(Secret::is_slow) {
            // Nobody shall learn from the time what kind of user this is.
            placeholder().verify(password);
        }
        // All of them, whichever is right.
        let right = self.passwords.iter().fold(false, |right, secret| {
            let is_right = secret.verify(password);
            right | is_right
        });
        self.enabled && right
    }

    /// Changes the user by a rule such as `on`, `>password`, `~app:*` or `+@read`.
    ///
    /// # Errors
    /// Says what is wrong with the rule.
    pub(crate) fn apply(&mut self, rule: &[u8], salts: &Salts) -> Result<(), AclError> {
        rules::apply(self, rule, salts)
    }

    /// The rules that make this user, as ACL LIST shows them.
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

    /// Names of what is switched on, as ACL GETUSER shows them.
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
