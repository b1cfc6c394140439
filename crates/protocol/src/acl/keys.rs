//! Which keys a user may touch.

use crate::glob::Glob;

/// What is done to a key. Nothing at all is to see whether it is there and how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// Metadata only.
    pub const METADATA: Access = Access(0);
    /// Its value is read.
    pub const READ: Access = Access(1);
    /// It is changed.
    pub const WRITE: Access = Access(2);
    /// Both.
    pub const BOTH: Access = Access(3);

    fn covers(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub(crate) fn and(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// Keys that a user may touch in a way: `~app:*`, `%R~shared:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    access: Access,
    pattern: Box<[u8]>,
    /// What the keys begin with, where the pattern is nothing but that and a star.
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

    /// Whether it allows this with every key there is.
    pub fn covers_all(&self, access: Access) -> bool {
        self.prefix == Some(0) && self.access.covers(access)
    }

    /// Whether it allows this with the key.
    pub fn covers(&self, key: &[u8], access: Access) -> bool {
        self.access.covers(access)
            && match self.prefix {
                Some(length) => {
                    self.pattern.get(..length).is_some_and(|prefix| key.starts_with(prefix))
                }
                None => Glob::new(&self.pattern).matches(key),
            }
    }

    /// Takes the access of another with the same pattern too; false where the patterns differ.
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
