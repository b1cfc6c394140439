//! Inputs of a command: a file, or standard input, which `-` names and only one of them can be.

use crate::error::CliError;
use crate::new_file::is_standard;
use std::io::{self, Read, Stdin};
use std::path::Path;
use std::sync::OnceLock;

/// Standard input for `reader`: an option, or what the command calls the file.
///
/// # Errors
/// Another reader has it.
pub fn standard(reader: &str) -> Result<Stdin, CliError> {
    static READER: OnceLock<String> = OnceLock::new();
    match READER.set(reader.to_owned()) {
        Ok(()) => Ok(io::stdin()),
        Err(_) => Err(CliError::Usage(format!(
            "{reader} -: standard input is already {}; give one of them a file",
            READER.get().map_or("in use", String::as_str)
        ))),
    }
}

/// The text of the file that an option names, or of standard input; `failed` makes an error of what
/// is wrong with the file.
///
/// # Errors
/// Another option has standard input; the file cannot be read, or is not text.
pub fn text(
    option: &str,
    path: &Path,
    failed: impl FnOnce(io::Error) -> CliError,
) -> Result<String, CliError> {
    let mut text = String::new();
    let read = match is_standard(path) {
        true => standard(option)?.read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(failed)?;
    Ok(text)
}
