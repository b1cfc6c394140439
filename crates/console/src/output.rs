//! Output of commands: results to standard output, all other messages to standard error.

#![expect(clippy::print_stderr, reason = "the only module that prints")]

use crate::error::CliError;
use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, Write};

/// Output format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// Columns of a table with long texts.
const WIDTH: u16 = 120;

/// Prints a result with a single write. A closed output, as after `head`, is not an error.
pub fn result(text: &str) {
    let written = writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n'));
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("softflash: warning: the result cannot be printed: {error}");
        }
        _ => {}
    }
}

/// Prints a result as JSON.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        CliError::Failed(format!("the result cannot be written as JSON: {error}"))
    })?;
    result(&text);
    Ok(())
}

/// Prints pairs of a name and a value.
pub fn pairs<N: Into<String>>(pairs: impl IntoIterator<Item = (N, String)>) {
    let mut table = plain_table();
    for (name, value) in pairs {
        table.add_row([name.into(), value]);
    }
    result(&table.to_string());
}

/// Prints rows under a header; every column but the first is aligned to the right.
pub fn rows(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = table_of(header, rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    result(&table.to_string());
}

/// Prints rows of text under a header.
pub fn named_rows(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    result(&table_of(header, rows).to_string());
}

/// Prints rows of text under a header, with long texts on several lines.
pub fn wrapped_rows(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = table_of(header, rows);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    result(&table.to_string());
}

fn table_of(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = plain_table();
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    table
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Prints a message to standard error.
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Prints the error of a command in one line.
pub fn complain(error: &CliError) {
    let text = error.to_string().replace(['\n', '\r'], " ");
    eprintln!("softflash: error: {text}");
}

/// A progress bar on standard error, hidden if that is not a terminal. A total of 0 means unknown.
pub fn progress(total: u64, unit: &str) -> ProgressBar {
    let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
    let template = match total {
        0 => format!("{{spinner}} {{human_pos}} {unit}, {{per_sec}}"),
        _ => format!("{{wide_bar}} {{human_pos}}/{{human_len}} {unit}, {{per_sec}}, {{eta}} left"),
    };
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A progress bar for steps without a unit, with a message.
pub fn steps(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    match ProgressStyle::with_template("{wide_bar} {percent} %, {msg}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
