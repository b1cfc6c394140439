//! `softflash lab keys`: lists the keys of a kind of file.

use clap::Args;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_lab::keys::{self, Key};
use softflash_lab::presets::Kind;
use softflash_policy::{Listed, ListedParameter};

/// Arguments of `lab keys`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab keys device
  softflash lab keys layout
  softflash lab keys experiment -o json | jq -r '.[].key'
  softflash lab keys policy

`a.b` is the key b of the table [a]. Keys of a device, a layout and a workload can be set in an \
experiment, as `set.device.geometry.channels = 4`. docs/keys.md is the same list.

`policy` lists the policies that a layout may name, and `serve --policy` and `bench ftl --policy`.")]
pub struct Keys {
    /// The kind of file, or `policy`
    #[arg(value_name = "KIND", value_parser = subject_of)]
    subject: Subject,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// What the keys are listed of.
#[derive(Debug, Clone, Copy)]
enum Subject {
    File(Kind),
    Policies,
}

fn subject_of(name: &str) -> Result<Subject, String> {
    match name {
        "policy" => Ok(Subject::Policies),
        _ => kind_of(name).map(Subject::File).map_err(|error| format!("{error}, and `policy`")),
    }
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
        let kind = match self.subject {
            Subject::File(kind) => kind,
            Subject::Policies => return list_policies(self.output),
        };
        let keys = keys::of(kind);
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

/// Prints all policies.
fn list_policies(form: Form) -> Result<(), CliError> {
    let policies = softflash_policy::all();
    if form == Form::Json {
        return output::json(&policies);
    }
    output::wrapped_rows(&["kind", "policy", "parameters", "meaning"], policies.iter().map(policy));
    Ok(())
}

fn policy(policy: &Listed) -> Vec<String> {
    let parameter = |parameter: &ListedParameter| {
        let ListedParameter { name, meaning, least, most } = parameter;
        match *most {
            u32::MAX => format!("{name}: {meaning}, from {least}"),
            most => format!("{name}: {meaning}, {least} to {most}"),
        }
    };
    let parameters: Vec<String> = policy.parameters.iter().map(parameter).collect();
    let (kind, meaning) = (policy.kind.to_owned(), policy.meaning.to_owned());
    vec![kind, policy.form.clone(), parameters.join("\n"), meaning]
}

fn row(key: &Key) -> Vec<String> {
    let values = key.values.iter().map(|choice| format!("{}: {}", choice.value, choice.meaning));
    let meaning: Vec<String> = std::iter::once(key.meaning.clone()).chain(values).collect();
    let default = key.default.clone().unwrap_or_else(|| key.without_default().to_owned());
    vec![key.key.clone(), key.kind(), default, meaning.join("\n")]
}
