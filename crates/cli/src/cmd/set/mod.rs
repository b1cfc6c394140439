//! `softflash set`: the sets of units of a data directory.

mod list;

use clap::{Args, Subcommand};
use softflash_console::CliError;
use softflash_console::output::Form;
use std::path::PathBuf;

/// Arguments of `set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash set list ./data
  softflash set list ./data -o json | jq '.[] | {name, units, used_bytes}'

A set is some of the units of the device, used by the store of a shard or by volumes. `format` \
decides which: its --volume-units are the last ones, as many for each shard.")]
pub struct Set {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the sets with their units, space and wear
    #[command(after_help = "\
Examples:
  softflash set list ./data
  softflash set list ./data -o json

Reads the flash and changes nothing. While a server has the directory open, ask the server: \
FLASH.SET LIST with any Redis client. Exit code 1: a set cannot be read; the others are listed.")]
    List {
        /// The data directory
        directory: PathBuf,
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Form,
    },
}

impl Set {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::List { directory, output } => list::run(&directory, output),
        }
    }
}
