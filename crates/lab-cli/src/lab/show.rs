//! `softflash lab show`: prints a preset or an experiment as a file.

use super::keys::kind_of;
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_lab::presets::{Document, Kind};
use softflash_lab::toml_text::nearest;

/// Arguments of `lab show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab show mqsim-default > mine.toml
  softflash lab show --kind layout huawei-gen3
  softflash bench sim --device mine.toml --workload random-read-8k

The output is a file that can be used in place of the name. Where several kinds have the name, the \
first of device, layout, workload, experiment is printed, and standard error says so.")]
pub struct Show {
    /// A name of `softflash lab list`
    #[arg(value_name = "NAME")]
    name: String,
    /// Its kind: device, layout, workload or experiment
    #[arg(long, value_name = "KIND", value_parser = kind_of)]
    kind: Option<Kind>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Shown<'a> {
    kind: &'static str,
    name: &'a str,
    title: &'a str,
    toml: &'a str,
}

impl Show {
    /// Prints the text of the preset.
    pub fn run(self) -> Result<(), CliError> {
        let (kind, document) = self.find()?;
        let (name, title, toml) = (&*document.name, document.title(), &*document.text);
        match self.output {
            Form::Table => output::result(toml),
            Form::Json => output::json(&Shown { kind: kind.name(), name, title, toml })?,
        }
        Ok(())
    }

    fn find(&self) -> Result<(Kind, Document), CliError> {
        if let Some(kind) = self.kind {
            return Ok((kind, kind.find(&self.name)?));
        }
        let has = |kind: &Kind| kind.embedded().iter().any(|(name, _)| *name == self.name);
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(has).collect();
        let Some(&kind) = kinds.first() else {
            return Err(self.unknown());
        };
        if let Some(other) = kinds.get(1) {
            let (name, kind, other) = (&self.name, kind.name(), other.name());
            output::say(&format!(
                "`{name}` is a {kind} and a {other}; this is the {kind}, --kind {other} shows the other"
            ));
        }
        Ok((kind, kind.find(&self.name)?))
    }

    fn unknown(&self) -> CliError {
        let names = Kind::ALL.iter().flat_map(|kind| kind.embedded()).map(|(name, _)| *name);
        let hint = match nearest(&self.name, names) {
            Some(nearest) => format!("the nearest known one is `{nearest}`"),
            None => "`softflash lab list` lists all".to_owned(),
        };
        CliError::Usage(format!("no preset or experiment is called `{}`; {hint}", self.name))
    }
}
