//! Users as text: one line `user NAME RULE...` for each.

use super::error::AclError;
use super::secret::Salts;
use super::user::{User, Users, check_name};
use std::sync::Arc;

/// Storage for ACL LOAD and ACL SAVE; calls may block.
pub trait UserFile: Send + Sync {
    /// Reads the text.
    ///
    /// # Errors
    /// A message that names the file and the reason.
    fn read(&self) -> Result<String, String>;

    /// Replaces the text atomically: a failure or a crash leaves the old text.
    ///
    /// # Errors
    /// A message that names the file and the reason.
    fn write(&self, text: &str) -> Result<(), String>;
}

pub(super) fn parse(text: &str, salts: &Salts) -> Result<Users, AclError> {
    let mut users = Users::new();
    for (index, line) in text.lines().enumerate() {
        let failed = |reason: String| AclError::Line { line: index + 1, reason };
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            None => continue,
            Some(word) if word.starts_with('#') => continue,
            Some("user") => {}
            Some(_) => return Err(failed("a line begins with `user` or `#`".to_owned())),
        }
        let name = words.next().ok_or_else(|| failed("the name is missing".to_owned()))?;
        let name = check_name(name.as_bytes()).map_err(|error| failed(error.to_string()))?;
        if users.contains_key(name) {
            return Err(failed(format!("there is a user '{name}' already")));
        }
        let mut user = User::new(name);
        for rule in words {
            user.apply(rule.as_bytes(), salts).map_err(|error| failed(error.to_string()))?;
        }
        users.insert(Arc::clone(user.name_handle()), Arc::new(user));
    }
    Ok(users)
}

pub(super) fn text(users: &Users) -> String {
    users.values().map(|user| format!("user {} {}\n", user.name(), user.rules())).collect()
}
