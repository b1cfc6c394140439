//! What a check found: a list of places and what is wrong there.

use crate::Outcome;
use std::fmt::Display;

/// The findings of one check.
pub struct Findings {
    check: &'static str,
    looked_at: String,
    found: Vec<String>,
}

impl Findings {
    /// None yet.
    pub fn new(check: &'static str) -> Findings {
        Findings { check, looked_at: String::new(), found: Vec::new() }
    }

    /// Something is wrong at a place.
    pub fn add(&mut self, place: impl Display, problem: impl Display) {
        self.found.push(format!("{place}: {problem}"));
    }

    /// How much was looked at, so that "nothing found" says something.
    pub fn looked_at(&mut self, what: String) {
        self.looked_at = what;
    }

    /// Everything that was found.
    #[cfg(test)]
    pub fn all(&self) -> &[String] {
        &self.found
    }

    /// Prints every finding, or that there is none.
    pub fn print(&self) {
        self.found.iter().for_each(|finding| println!("{finding}"));
        println!("{}: {}, {} found", self.check, self.looked_at, self.found.len());
    }

    /// A failure if anything was found.
    pub fn verdict(&self) -> Outcome {
        match self.found.len() {
            0 => Ok(()),
            count => Err(format!("{}: {count} to mend", self.check)),
        }
    }
}
