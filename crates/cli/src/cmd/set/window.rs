//! `softflash set window`: the windows of a pair.

use super::changed::Named;
use clap::Args;
use softflash_console::CliError;
use softflash_datadir::MOST_WINDOW_MS;

/// Arguments of `set window`.
#[derive(Debug, Args)]
pub struct Window {
    #[command(flatten)]
    set: Named,
    /// The time for which a set takes writes, as 100ms or 2s, up to a minute; or none
    #[arg(value_name = "TIME|none", value_parser = parse_window)]
    time: WindowLength,
}

/// A length of windows in milliseconds, or none.
#[derive(Debug, Clone, Copy)]
struct WindowLength(Option<u32>);

fn parse_window(text: &str) -> Result<WindowLength, String> {
    if text == "none" {
        return Ok(WindowLength(None));
    }
    let (digits, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1000),
        (None, None) => (text, 0),
    };
    let ms = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(scale));
    match ms.filter(|ms| (1..=MOST_WINDOW_MS).contains(ms)) {
        Some(ms) => Ok(WindowLength(Some(ms))),
        None => Err(format!("`{text}` is no length of windows; use 1ms to 60s, or none")),
    }
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
