//! The keys that a user may access.

use crate::command::Access;
use crate::shared::glob::Glob;

/// A pattern of keys with the permitted access: `~app:*`, `%R~shared:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    access: Access,
    pattern: Box<[u8]>,
    /// The prefix, if the pattern is a literal prefix and a star.
    prefix: Option<usize>,
}

impl KeyPattern {
    pub fn new(access: Access, pattern: &[u8]) -> KeyPattern {
        let prefix = match pattern {
            [prefix @ .., b'*'] if !prefix.iter().any(|byte| b"*?[\\".contains(byte)) => {
                Some(prefix.len())
            }
            _ => None,
        };
        KeyPattern { access, pattern: pattern.into(), prefix }
    }

    pub fn everything() -> KeyPattern {
        KeyPattern::new(Access::BOTH, b"*")
    }

    /// Whether it permits this access to all keys.
    pub fn covers_all(&self, access: Access) -> bool {
        self.prefix == Some(0) && self.access.covers(access)
    }

    /// Whether it permits this access to the key.
    pub fn covers(&self, key: &[u8], access: Access) -> bool {
        self.access.covers(access)
            && match self.prefix {
                Some(length) => {
                    self.pattern.get(..length).is_some_and(|prefix| key.starts_with(prefix))
                }
                None => Glob::new(&self.pattern).matches(key),
            }
    }

    /// Adds the access of another rule with the same pattern; false where the patterns differ.
    pub fn merge(&mut self, other: &KeyPattern) -> bool {
        let same = self.pattern == other.pattern;
        if same {
            self.access = self.access.and(other.access);
        }
        same
    }

    /// As ACL LIST shows it.
    pub fn rule(&self) -> Vec<u8> {
        let access: &[u8] = match self.access {
            Access::READ => b"%R~",
            Access::WRITE => b"%W~",
            _ => b"~",
        };
        [access, &self.pattern].concat()
    }

    /// Reads `~pattern`, `%R~pattern`, `%W~pattern` or `%RW~pattern`.
    pub fn parse(rule: &[u8]) -> Option<KeyPattern> {
        if let Some(pattern) = rule.strip_prefix(b"~") {
            return Some(KeyPattern::new(Access::BOTH, pattern));
        }
        let rule = rule.strip_prefix(b"%")?;
        let tilde = rule.iter().position(|byte| *byte == b'~')?;
        let (letters, pattern) = rule.split_at(tilde);
        let mut access = Access::METADATA;
        for letter in letters {
            access = access.and(match letter {
                b'R' | b'r' => Access::READ,
                b'W' | b'w' => Access::WRITE,
                _ => return None,
            });
        }
        let pattern = pattern.get(1..)?;
        (access != Access::METADATA).then(|| KeyPattern::new(access, pattern))
    }
}
