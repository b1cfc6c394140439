//! `softflash set window`: the windows of a pair.

use super::changed::Named;
use clap::Args;
use softflash_console::CliError;
use softflash_datadir::parse_window;

/// Arguments of `set window`.
#[derive(Debug, Args)]
pub struct Window {
    #[command(flatten)]
    set: Named,
    /// The time for which a set takes writes, as 100ms or 2s, up to a minute; or none
    #[arg(value_name = "TIME|none", value_parser = parse)]
    time: WindowLength,
}

/// A length of windows in milliseconds, or none.
#[derive(Debug, Clone, Copy)]
struct WindowLength(Option<u32>);

fn parse(text: &str) -> Result<WindowLength, String> {
    parse_window(text).map(WindowLength).map_err(|error| error.to_string())
}

impl Window {
    /// Changes the table: the next server keeps to it.
    pub fn run(self) -> Result<(), CliError> {
        let Window { set, time: WindowLength(window_ms) } = self;
        let directory = set.open()?;
        let table = directory.table().with_window(&set.name, window_ms);
        let table = set.planned(&directory, table)?;
        set.tell(&directory.replace_table(&table)?, "changed the windows of set")
    }
}
