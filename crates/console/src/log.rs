//! The log on standard error.

use clap::Args;
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// The option that chooses what is logged.
#[derive(Debug, Args)]
pub struct Log {
    /// Log filter for standard error, as `warn` or `softflash_store=debug`; RUST_LOG does the same
    #[arg(long = "log", global = true, value_name = "FILTER", display_order = 998, value_parser = parse_filter)]
    filter: Option<Targets>,
}

/// Checks a log filter. What cannot be the name of a target is refused: it would match nothing.
fn parse_filter(text: &str) -> Result<Targets, String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let target = |directive: &str| directive.split('=').next().unwrap_or_default().to_owned();
    let wrong = text.split(',').map(target).find(|target| !target.trim().chars().all(is_of_name));
    if let Some(wrong) = wrong {
        return Err(format!("invalid filter directive `{wrong}`"));
    }
    text.parse().map_err(|error: ParseError| error.to_string())
}

impl Log {
    /// From now on, logs.
    pub fn start(self) {
        let of_environment = || parse_filter(&std::env::var("RUST_LOG").ok()?).ok();
        let warnings = || Targets::new().with_default(LevelFilter::WARN);
        let filter = self.filter.or_else(of_environment).unwrap_or_else(warnings);
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_colours = std::io::stderr().is_terminal() && !is_plain;
        let lines = fmt::layer().with_ansi(has_colours).with_writer(std::io::stderr);
        tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    }
}
