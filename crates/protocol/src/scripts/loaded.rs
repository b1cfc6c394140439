//! The loaded scripts, by the SHA-1 of their texts.

use super::known::Known;
use crate::shared::lock::lock;
use sha1::{Digest, Sha1};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Mutex;

/// More are forgotten, the oldest first; their clients send them again.
const MOST: usize = 512;

/// The scripts that clients have loaded or run.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    loaded: Mutex<VecDeque<(String, &'static Known)>>,
}

impl Scripts {
    /// Loads a script; returns its SHA-1 in hexadecimal, and none for an unknown script.
    pub fn load(&self, text: &[u8]) -> Option<(String, &'static Known)> {
        let digest = sha1_of(text);
        if let Some(known) = self.with_digest(digest.as_bytes()) {
            return Some((digest, known));
        }
        let known = Known::with_text(text)?;
        let mut loaded = lock(&self.loaded);
        // Another thread may have loaded the same text meanwhile.
        if loaded.iter().any(|(of, _)| *of == digest) {
            return Some((digest, known));
        }
        if loaded.len() == MOST {
            loaded.pop_front();
        }
        loaded.push_back((digest.clone(), known));
        Some((digest, known))
    }

    /// The loaded script with a SHA-1 in hexadecimal.
    pub fn with_digest(&self, digest: &[u8]) -> Option<&'static Known> {
        let loaded = lock(&self.loaded);
        let is_it = |(of, _): &&(String, _)| of.as_bytes().eq_ignore_ascii_case(digest);
        loaded.iter().find(is_it).map(|(_, known)| *known)
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        lock(&self.loaded).clear();
    }
}

fn sha1_of(text: &[u8]) -> String {
    Sha1::digest(text).iter().fold(String::with_capacity(40), |mut digest, byte| {
        // Writing to a string does not fail.
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_the_digest_of_their_own_text() {
        let scripts = Scripts::default();
        // The example of FIPS 180-4, which is no known script.
        assert_eq!(sha1_of(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(scripts.load(b"abc"), None);
        let text = "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
        let (digest, known) = scripts.load(text.as_bytes()).expect("it is known");
        assert_eq!(scripts.with_digest(digest.to_uppercase().as_bytes()), Some(known));
        // Each spelling has its own digest, and the number of those kept is bounded.
        for spaces in 1..=MOST {
            scripts.load((" ".repeat(spaces) + text).as_bytes()).expect("it is known");
        }
        assert_eq!(scripts.with_digest(digest.as_bytes()), None, "forgotten");
        assert_eq!(lock(&scripts.loaded).len(), MOST);
        scripts.flush();
        assert!(lock(&scripts.loaded).is_empty());
    }
}
