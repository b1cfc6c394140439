//! The password of a server: from a file or the environment, never from the command line, which all
//! users of the machine can read.

use clap::Args;
use softflash_console::CliError;
use softflash_console::input;
use softflash_console::new_file::is_standard;
use std::path::PathBuf;

/// Source of the password.
#[derive(Debug, Clone, Default, Args)]
pub struct PasswordSource {
    /// File whose first line is the password, `-` for standard input; SOFTFLASH_PASSWORD in the
    /// environment does the same
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Where a password comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The first line of a file.
    File(PathBuf),
    /// SOFTFLASH_PASSWORD, or standard input: nobody else can read it again.
    Once,
}

impl PasswordSource {
    /// Whether the option is given.
    pub fn is_given(&self) -> bool {
        self.password_file.is_some()
    }

    /// Where the password comes from, if there is one.
    pub fn origin(&self) -> Option<Origin> {
        let set = std::env::var_os("SOFTFLASH_PASSWORD").is_some_and(|value| !value.is_empty());
        match &self.password_file {
            Some(path) if is_standard(path) => Some(Origin::Once),
            Some(path) => Some(Origin::File(path.clone())),
            None => set.then_some(Origin::Once),
        }
    }

    /// The password, if there is one.
    ///
    /// # Errors
    /// The file cannot be read or begins with an empty line.
    pub fn read(&self) -> Result<Option<String>, CliError> {
        let Some(path) = &self.password_file else {
            return match std::env::var("SOFTFLASH_PASSWORD") {
                Ok(password) if !password.is_empty() => Ok(Some(password)),
                Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
                Err(error) => Err(CliError::Usage(format!("SOFTFLASH_PASSWORD: {error}"))),
            };
        };
        let text = input::text("--password-file", path, |error| {
            CliError::Failed(format!(
                "--password-file {}: {error}; name a text file that can be read",
                path.display()
            ))
        })?;
        match text.lines().next() {
            Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
            _ => Err(CliError::Usage(format!(
                "--password-file {}: its first line is empty; it must be the password",
                path.display()
            ))),
        }
    }
}
