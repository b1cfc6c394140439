//! The rules of ACL SETUSER and of ACL files, as in Redis.

use super::commands::CommandSet;
use super::error::AclError;
use super::keys::KeyPattern;
use super::secret::{Salts, Secret};
use super::user::{MAX_PASSWORDS, User};

const SYNTAX: &str = "Syntax error";

/// Applies a rule to a user.
pub(super) fn apply(user: &mut User, rule: &[u8], salts: &Salts) -> Result<(), AclError> {
    let failed = |reason| AclError::Rule { rule: shown(rule), reason };
    let text = std::str::from_utf8(rule).map_err(|_| failed("Rules must be UTF-8"))?;
    match text.to_ascii_lowercase().as_str() {
        "on" => user.enabled = true,
        "off" => user.enabled = false,
        "nopass" => {
            user.needs_no_password = true;
            user.passwords.clear();
        }
        "resetpass" => {
            user.needs_no_password = false;
            user.passwords.clear();
        }
        "allkeys" => user.keys = vec![KeyPattern::everything()],
        "resetkeys" => user.keys.clear(),
        "allcommands" => user.commands = CommandSet::all(),
        "nocommands" => user.commands = CommandSet::none(),
        "reset" => *user = User::new(user.name()),
        // For features that do not exist here: no effect.
        "allchannels"
        | "resetchannels"
        | "sanitize-payload"
        | "skip-sanitize-payload"
        | "clearselectors" => {}
        _ => by_sign(user, text, salts).map_err(failed)?,
    }
    Ok(())
}

/// A rule with a sign.
fn by_sign(user: &mut User, rule: &str, salts: &Salts) -> Result<(), &'static str> {
    let sign = rule.chars().next().ok_or(SYNTAX)?;
    let rest = rule.get(sign.len_utf8()..).unwrap_or_default();
    match sign {
        '>' => add_password(user, rest.as_bytes(), salts),
        '<' => remove(user, |secret| secret.verify(rest.as_bytes())),
        '#' => add_secret(user, Secret::parse(rest.as_bytes())?),
        '!' => {
            let unwanted = Secret::parse(rest.as_bytes())?;
            remove(user, |secret| *secret == unwanted)
        }
        // A file could not represent it, because a space ends a rule.
        '~' | '%' if rest.contains(|c: char| c.is_whitespace() || c.is_control()) => Err(SYNTAX),
        '~' | '%' => add_keys(user, KeyPattern::parse(rule.as_bytes()).ok_or(SYNTAX)?),
        '+' | '-' if user.commands.apply(sign == '+', rest) => Ok(()),
        '+' | '-' if rest.matches('|').count() == 1 && !rest.starts_with('@') => Err(
            "Unknown command or category name in ACL; for a command with subcommands, a rule can name these, \
             but not other first arguments",
        ),
        '+' | '-' => Err("Unknown command or category name in ACL"),
        // Publishing does not exist here.
        '&' => Ok(()),
        '(' => Err("Selectors are not supported; create a user for each set of rules"),
        _ => Err(SYNTAX),
    }
}

fn add_password(user: &mut User, password: &[u8], salts: &Salts) -> Result<(), &'static str> {
    // A repeated password, as from a script that runs at every start, is not added again.
    if user.passwords.iter().any(|secret| secret.verify(password)) {
        return Ok(());
    }
    let secret = Secret::hash(password, salts).ok_or("The password cannot be hashed")?;
    add_secret(user, secret)
}

fn add_secret(user: &mut User, secret: Secret) -> Result<(), &'static str> {
    user.needs_no_password = false;
    if user.passwords.contains(&secret) {
        return Ok(());
    }
    if user.passwords.len() >= MAX_PASSWORDS {
        return Err(
            "A user has at most 8 passwords; remove one with < or !, or all with resetpass",
        );
    }
    user.passwords.push(secret);
    Ok(())
}

fn remove(user: &mut User, is_unwanted: impl Fn(&Secret) -> bool) -> Result<(), &'static str> {
    let before = user.passwords.len();
    user.passwords.retain(|secret| !is_unwanted(secret));
    match user.passwords.len() < before {
        true => Ok(()),
        false => Err("The password you are trying to remove from the user does not exist"),
    }
}

fn add_keys(user: &mut User, pattern: KeyPattern) -> Result<(), &'static str> {
    let everything = KeyPattern::everything();
    if user.keys.contains(&everything) && pattern != everything {
        return Err(
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have \
             any effect. Try 'resetkeys' to start with an empty list of patterns",
        );
    }
    if !user.keys.iter_mut().any(|known| known.merge(&pattern)) {
        user.keys.push(pattern);
    }
    Ok(())
}

/// A rule for messages, without passwords or their hashes.
fn shown(rule: &[u8]) -> String {
    const LONGEST: usize = 128;
    match rule {
        [sign @ (b'>' | b'<' | b'#' | b'!'), ..] => format!("{}(hidden)", char::from(*sign)),
        rule => String::from_utf8_lossy(rule.get(..LONGEST).unwrap_or(rule)).into_owned(),
    }
}
