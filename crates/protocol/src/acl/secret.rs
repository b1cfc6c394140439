//! Password hashes: salted and slow, or those of Redis.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{CustomizedPasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::OnceLock;
use subtle::ConstantTimeEq;

/// Fills a buffer with cryptographically secure random bytes.
pub type Salts = dyn Fn(&mut [u8]) + Send + Sync;

/// Memory of one password check, in KiB. With the passes, it is one of the settings that OWASP
/// recommends for argon2id; the one with the least memory, because several checks may run at a
/// time.
const MEMORY_KIB: u32 = 7 << 10;
const PASSES: u32 = 5;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;

/// Limits for the cost of other hashes in an ACL file.
const MAX_MEMORY_KIB: u32 = 64 << 10;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 4;

/// A password's hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    /// argon2id with its salt, in the string format of the Password Hashing Competition.
    Argon2(String),
    /// SHA-256, as in Redis: fast, so suited only for long random passwords.
    Sha256([u8; 32]),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Hashes a password with a random salt. Takes some tens of milliseconds.
    pub fn hash(password: &[u8], salts: &Salts) -> Option<Secret> {
        let mut salt = [0; SALT_BYTES];
        salts(&mut salt);
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).ok()?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
        let hash: PasswordHash = hasher.hash_password_with_params(password, &salt, params).ok()?;
        Some(Secret::Argon2(hash.to_string()))
    }

    /// Whether the password is right. Takes the same time for a wrong password.
    pub fn verify(&self, password: &[u8]) -> bool {
        match self {
            Secret::Argon2(text) => PasswordHash::new(text)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
            Secret::Sha256(hash) => {
                let computed: [u8; 32] = Sha256::digest(password).into();
                computed.ct_eq(hash).into()
            }
        }
    }

    /// Whether checking a password is slow.
    pub fn is_slow(&self) -> bool {
        matches!(self, Secret::Argon2(_))
    }

    /// The text after `#` in a rule.
    pub fn text(&self) -> String {
        match self {
            Secret::Argon2(text) => text.clone(),
            Secret::Sha256(hash) => hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Parses the text after `#` in a rule.
    ///
    /// # Errors
    /// The reason, in the words of Redis where it has any.
    pub fn parse(text: &[u8]) -> Result<Secret, &'static str> {
        if text.first() == Some(&b'$') {
            return parse_argon2(text);
        }
        let wrong = "The password hash must be exactly 64 characters and contain only lowercase \
                     hexadecimal characters";
        let mut hash = [0; 32];
        if text.len() != 64 {
            return Err(wrong);
        }
        for (byte, digits) in hash.iter_mut().zip(text.chunks(2)) {
            *byte = match digits {
                [high, low] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
                _ => None,
            }
            .ok_or(wrong)?;
        }
        Ok(Secret::Sha256(hash))
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn parse_argon2(text: &[u8]) -> Result<Secret, &'static str> {
    let wrong = "A password hash that begins with $ must be argon2id, version 19, with its salt";
    let text = std::str::from_utf8(text).map_err(|_| wrong)?;
    let hash = PasswordHash::new(text).map_err(|_| wrong)?;
    let is_argon2id = hash.algorithm.as_str() == "argon2id" && hash.version == Some(19);
    if !is_argon2id || hash.salt.is_none() || hash.hash.is_none() {
        return Err(wrong);
    }
    let params = Params::try_from(&hash).map_err(|_| wrong)?;
    let is_bearable = params.m_cost() <= MAX_MEMORY_KIB
        && params.t_cost() <= MAX_PASSES
        && params.p_cost() <= MAX_LANES;
    if !is_bearable {
        return Err("The password hash is too expensive: the maximum is m=65536, t=16, p=4");
    }
    Ok(Secret::Argon2(text.to_owned()))
}

/// A hash that matches no password, checked in place of a user that does not exist or has no
/// password: so the time does not reveal which users exist.
pub(crate) fn placeholder() -> &'static Secret {
    static PLACEHOLDER: OnceLock<Secret> = OnceLock::new();
    PLACEHOLDER.get_or_init(|| {
        let salted = Secret::hash(b"", &|salt: &mut [u8]| salt.fill(0x5a));
        salted.unwrap_or(Secret::Sha256([0; 32]))
    })
}
