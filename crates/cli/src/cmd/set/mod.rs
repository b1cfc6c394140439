//! `softflash set`: the sets of units of a data directory.

mod changed;
mod create;
mod delete;
mod draining;
pub(super) mod joining;
mod list;
mod pair;
mod resize;
mod watching;
mod window;

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
  softflash set resize ./data vol-0 --units 3
  softflash set create ./data fast --units 1
  softflash volume create ./data index 5GiB --set fast
  softflash set delete ./data fast           once its volumes are deleted
  softflash set pair ./data vol-0 copy       two copies of the volumes
  softflash set window ./data vol-0 100ms    calm reads

A set is some of the units of the device, used by the store of a shard or by volumes. `format` \
makes the first ones: its --volume-units are the last units, as many for each shard. Units in no \
set are spare. These commands need a stopped server; a running one changes its sets by \
FLASH.SET CREATE, RESIZE, DELETE, PAIR and WINDOW.")]
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
    /// Create a set for volumes of spare units
    #[command(after_help = "\
Examples:
  softflash set create ./data fast --units 1
  softflash set create ./data archive --units 4 --shard 1 --op 3 -o json

It has the spare units with the lowest numbers, which are erased first. `set resize` of another set \
to fewer units makes some spare. After a signal or a crash they are still spare, and the command \
can be repeated. Programs that know no table of sets refuse the directory from the first change on.")]
    Create(create::Create),
    /// Give a set more units, or fewer
    #[command(after_help = "\
Examples:
  softflash set resize ./data vol-0 --units 3
  softflash set resize ./data fast --units 2 -o json
  softflash set resize ./data store-0 --units 6     of the keys of shard 0

More units come from the spare ones, those with the lowest numbers first. Of fewer, the data in the \
units with the highest numbers move to the others; then these units are spare. Nothing changes \
where the data do not fit. After a signal or a crash the set has all its units and data, and the \
command can be repeated.")]
    Resize(resize::Resize),
    /// Delete a set for volumes that holds none; its units become spare
    #[command(after_help = "\
Examples:
  softflash volume list ./data
  softflash volume delete ./data index
  softflash set delete ./data fast")]
    Delete(delete::Delete),
    /// Make a pair of two sets for volumes: each has a copy of all volumes
    #[command(after_help = "\
Examples:
  softflash set create ./data copy --units 4 --shard 0
  softflash set pair ./data vol-0 copy
  softflash volume create ./data disk 10GiB --copies 2

One of the sets holds no volumes, and gets a copy of those of the other one. The sets may have \
other numbers of units: volumes have the space of the smaller one. Reads go to the set with less to \
do, and to the other one where data cannot be read. If a set fails, the other one serves alone. \
`set delete` of a set ends the pair; the other one keeps the volumes.")]
    Pair(pair::Pair),
    /// Let the sets of a pair take writes in turns, so that one of them only reads
    #[command(after_help = "\
Examples:
  softflash set window ./data vol-0 100ms
  softflash set window ./data vol-0 none

While one set takes writes for so long, the other one programs and erases nothing, and serves the \
reads. What is written has one copy until the next turn. A device file isolates nothing in time: \
windows are for a device whose sets are dies of their own.")]
    Window(window::Window),
}

impl Set {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::List { directory, output } => list::run(&directory, output),
            What::Create(create) => create.run(),
            What::Resize(resize) => resize.run(),
            What::Delete(delete) => delete.run(),
            What::Pair(pair) => pair.run(),
            What::Window(window) => window.run(),
        }
    }
}
