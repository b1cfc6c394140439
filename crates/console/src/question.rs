//! A question to the person at the terminal, before something is destroyed.

#![expect(clippy::print_stderr, reason = "the answer is typed on the line of the question")]

use crate::error::CliError;
use std::io::{self, IsTerminal};

/// Asks on the terminal; an answer that is not yes is an error. In a script, where standard input
/// or standard error is no terminal, the command line stands as it was written.
pub fn confirm(question: &str) -> Result<(), CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(());
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|source| CliError::Io { what: "cannot read the answer", source })?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::Failed("nothing was changed".to_owned())),
    }
}
