//! `softflash lab keys`

use clap::Args;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_lab::keys::{self, Key};
use softflash_lab::presets::Kind;

/// Arguments of `lab keys`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab keys device
  softflash lab keys layout
  softflash lab keys experiment -o json | jq -r '.[].key'

`a.b` is the key b of the table [a]. Keys of a device, a layout and a workload can be set in an \
experiment, as `set.device.geometry.channels = 4`. docs/keys.md is the same list.")]
pub struct Keys {
    /// The kind of file
    #[arg(value_name = "KIND", value_parser = kind_of)]
    kind: Kind,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The kind of this name.
pub(super) fn kind_of(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let known = Kind::ALL.map(Kind::name).join(", ");
        format!("there is no such kind of file; there are {known}")
    })
}

impl Keys {
    /// Prints the keys.
    pub fn run(self) -> Result<(), CliError> {
        let keys = keys::of(self.kind);
        if self.output == Form::Json {
            return output::json(&keys);
        }
        for part in keys.chunk_by(|a, b| a.only_in == b.only_in) {
            if let Some(only) = part.first().and_then(|key| key.only_in.as_ref()) {
                output::result(&format!("\nIn files with {only}:"));
            }
            output::wrapped_rows(&["key", "type", "default", "meaning"], part.iter().map(row));
        }
        Ok(())
    }
}

fn row(key: &Key) -> Vec<String> {
    let values = key.values.iter().map(|choice| format!("{}: {}", choice.value, choice.meaning));
    let meaning: Vec<String> = std::iter::once(key.meaning.clone()).chain(values).collect();
    let default = key.default.clone().unwrap_or_else(|| key.without_default().to_owned());
    vec![key.key.clone(), key.kind(), default, meaning.join("\n")]
}
