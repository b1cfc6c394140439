//! What a work is, and what its verification needs.

use crate::Outcome;
use crate::source_tree::SourceTree;
use std::path::{Path, PathBuf};

/// Work on a file system. It runs in a thread of its own.
pub trait Work: Send {
    /// Does a part; when it returns without an error, the part is durable.
    fn step(&mut self) -> Outcome;

    /// How much is durable.
    fn acknowledged(&self) -> u64;

    /// Ends its processes, whether the file system works or not.
    fn halt(&mut self);

    /// After a crash: checks that what was durable is there and whole; returns how much there is.
    fn verify(&mut self) -> Outcome<u64>;
}

/// What a work needs.
pub struct Site<'a> {
    /// Its new directory on the file system.
    pub at: PathBuf,
    /// A new directory on another file system, for sockets and output.
    pub scratch: PathBuf,
    pub sources: &'a SourceTree,
    /// Chooses between variants.
    pub variant: u64,
}

/// Creates a directory.
pub fn create(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// The error of a query with another result.
pub fn expect(what: &str, found: &str, expected: &str) -> Outcome {
    match found.trim() == expected {
        true => Ok(()),
        false => Err(format!("{what}: {} instead of {expected}", found.trim())),
    }
}

/// The number of transactions found: all acknowledged ones, and perhaps the one after them, whose
/// acknowledgement was lost.
pub fn transactions(found: &str, acknowledged: u64) -> Outcome<u64> {
    let found: u64 = found.trim().parse().map_err(|_| format!("`{found}` is not a number"))?;
    match found {
        _ if found < acknowledged => {
            Err(format!("{acknowledged} transactions were acknowledged, {found} are there"))
        }
        _ if found > acknowledged + 1 => {
            Err(format!("{found} transactions are there, but {acknowledged} were acknowledged"))
        }
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_may_exceed_the_acknowledged_ones_by_one() {
        assert_eq!(transactions("7\n", 7), Ok(7));
        assert_eq!(transactions("8", 7), Ok(8));
        assert!(transactions("6", 7).unwrap_err().contains("6 are there"));
        assert!(transactions("9", 7).is_err());
        assert!(transactions("", 7).is_err());
    }
}
