//! Findings of a check: places and problems.

use crate::Outcome;
use std::fmt::Display;

/// The findings of one check.
pub struct Findings {
    check: &'static str,
    looked_at: String,
    found: Vec<String>,
}

impl Findings {
    /// No findings.
    pub fn new(check: &'static str) -> Findings {
        Findings { check, looked_at: String::new(), found: Vec::new() }
    }

    /// Adds a problem at a place.
    pub fn add(&mut self, place: impl Display, problem: impl Display) {
        self.found.push(format!("{place}: {problem}"));
    }

    /// Records how much was checked.
    pub fn looked_at(&mut self, what: String) {
        self.looked_at = what;
    }

    /// All findings.
    #[cfg(test)]
    pub fn all(&self) -> &[String] {
        &self.found
    }

    /// Prints all findings, or that there are none.
    pub fn print(&self) {
        self.found.iter().for_each(|finding| println!("{finding}"));
        println!("{}: {}, {} found", self.check, self.looked_at, self.found.len());
    }

    /// An error if there are findings.
    pub fn verdict(&self) -> Outcome {
        match self.found.len() {
            0 => Ok(()),
            count => Err(format!("{}: {count} to fix", self.check)),
        }
    }
}
