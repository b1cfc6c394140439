//! Error replies by their code, for INFO errorstats.

use crate::shared::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Maximum number of codes; Redis' limit.
const MOST: usize = 128;

/// The number of errors of each code since the start or the last CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(crate) struct ErrorStats {
    by_code: Mutex<BTreeMap<String, u64>>,
}

impl ErrorStats {
    /// Counts an error by the first word of its text.
    pub fn count(&self, text: &[u8]) {
        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let code = String::from_utf8_lossy(code);
        let mut by_code = lock(&self.by_code);
        if let Some(count) = by_code.get_mut(&*code) {
            *count += 1;
        } else if by_code.len() < MOST {
            by_code.insert(code.into_owned(), 1);
        }
    }

    /// Each code and its number.
    pub fn all(&self) -> Vec<(String, u64)> {
        lock(&self.by_code).iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    /// Forgets all errors.
    pub fn reset(&self) {
        lock(&self.by_code).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_codes_of_which_there_is_a_limit() {
        let stats = ErrorStats::default();
        for text in ["ERR syntax error", "NOPERM no", "ERR no such key", "WRONGPASS"] {
            stats.count(text.as_bytes());
        }
        let of = |code: &str, count| (code.to_owned(), count);
        assert_eq!(stats.all(), [of("ERR", 2), of("NOPERM", 1), of("WRONGPASS", 1)]);
        (0..1000).for_each(|number| stats.count(format!("CODE{number} text").as_bytes()));
        stats.count(b"ERR again");
        assert_eq!(stats.all().len(), MOST);
        assert!(stats.all().contains(&of("ERR", 3)));
        stats.reset();
        assert!(stats.all().is_empty());
    }
}
