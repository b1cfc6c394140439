//! The end of a program: its exit code, and one line about an error.

use crate::allocator;
use crate::error::CliError;
use crate::output;
use std::process::ExitCode;

/// Runs a program: its work decides the exit code, or fails with an error that is printed.
pub fn run(work: impl FnOnce() -> Result<ExitCode, CliError>) -> ExitCode {
    allocator::set_up();
    work().unwrap_or_else(|error| {
        output::complain(&error);
        ExitCode::from(error.exit_code())
    })
}
