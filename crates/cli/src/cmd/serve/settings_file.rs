//! The file of `serve --config`: its keys are the options of `serve`, taken from the command line's
//! own description of them, and its values are checked as those of the command line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use softflash_console::CliError;
use softflash_console::input;
use softflash_lab::toml_text::{TomlError, suggestion, toml_error};
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use toml::Value;
use toml::de::DeTable;

/// Options that concern the file itself; they are no keys of it.
#[derive(Debug, Args)]
pub struct SettingsFile {
    /// TOML file of settings, `-` for standard input: its keys are the other options of `serve`, as
    /// `memory = "4GiB"`. Options on the command line win
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings in effect as such a file, with all options and their defaults, and exit
    #[arg(long)]
    print_config: bool,
}

/// A key with its value as a word of the command line, if it changes anything.
struct Setting {
    id: String,
    word: Option<String>,
}

impl SettingsFile {
    /// Whether the settings are to be printed instead of used.
    pub fn is_to_be_printed(&self) -> bool {
        self.print_config
    }
}

/// The words of a command line, and after them the settings of the file that `serve --config` among
/// them names. `program` is the description of the command line.
///
/// # Errors
/// The file cannot be read, or has a key or a value that cannot be one.
pub fn with_settings(
    program: &Command,
    mut words: Vec<OsString>,
) -> Result<Vec<OsString>, CliError> {
    // What is wrong with the words themselves is reported once the settings have joined them.
    let lenient = program.clone().ignore_errors(true).try_get_matches_from(&words);
    let Some((serve, path)) = lenient.as_ref().ok().and_then(file_of) else { return Ok(words) };
    let text = input::text("--config", path, |error| {
        CliError::Failed(format!(
            "--config {}: {error}; `softflash serve --print-config` prints such a file",
            path.display()
        ))
    })?;
    let settings = parse(program, &path.display().to_string(), &text)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let is_given = |id: &str| serve.value_source(id) == Some(ValueSource::CommandLine);
    let settings = settings.into_iter().filter(|setting| !is_given(&setting.id));
    words.extend(settings.filter_map(|setting| setting.word).map(OsString::from));
    Ok(words)
}

/// The matches of `serve`, and the file that they name.
fn file_of(matches: &ArgMatches) -> Option<(&ArgMatches, &PathBuf)> {
    let serve = matches.subcommand_matches("serve")?;
    Some((serve, serve.get_one("config")?))
}

/// The options that are keys of a file. Of the program's command line, which has been built.
pub fn keys(serve: &Command) -> Vec<(&str, &Arg)> {
    let own = ["config", "print-config", "help", "version"];
    let named = serve.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    named.filter(|(key, _)| !own.contains(key)).collect()
}

/// The description of `serve`, with the options of the program that it has, too.
pub fn serve_command(program: &Command) -> Command {
    let mut program = program.clone();
    program.build();
    program.find_subcommand("serve").cloned().unwrap_or(program)
}

fn parse(program: &Command, file: &str, text: &str) -> Result<Vec<Setting>, TomlError> {
    let serve = serve_command(program);
    let keys = keys(&serve);
    let table: toml::Table =
        toml::from_str(text).map_err(|error| toml_error(file, text, &error))?;
    let lines = DeTable::parse(text).map_err(|error| toml_error(file, text, &error))?;
    let line = |key: &str| {
        let (key, _) = lines.get_ref().iter().find(|(known, _)| known.get_ref() == key)?;
        Some(1 + text.get(..key.span().start)?.matches('\n').count())
    };
    let setting = |(key, value): (&String, &Value)| {
        let found = keys.iter().find(|(known, _)| known == key);
        let setting = match found {
            Some((_, option)) => word(option, key, value).and_then(|word| {
                check(program, key, word.as_deref())?;
                Ok(Setting { id: option.get_id().to_string(), word })
            }),
            None => {
                let known = keys.iter().map(|(known, _)| *known);
                Err(format!("unknown key `{key}`; {}", suggestion(key, known)))
            }
        };
        setting.map_err(|problem| TomlError { file: file.to_owned(), line: line(key), problem })
    };
    table.iter().map(setting).collect()
}

/// The setting as a word of the command line; none for a flag that is off.
fn word(option: &Arg, key: &str, value: &Value) -> Result<Option<String>, String> {
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    match (is_flag, value) {
        (true, Value::Boolean(is_on)) => Ok(is_on.then(|| format!("--{key}"))),
        (true, _) => Err(format!("{key}: write true or false")),
        (false, Value::String(text)) => Ok(Some(format!("--{key}={text}"))),
        (false, Value::Integer(number)) => Ok(Some(format!("--{key}={number}"))),
        (false, Value::Boolean(yes)) => {
            Ok(Some(format!("--{key}={}", if *yes { "yes" } else { "no" })))
        }
        (false, _) => Err(format!("{key}: write a string or a whole number")),
    }
}

/// Has the command line check the value alone.
fn check(program: &Command, key: &str, word: Option<&str>) -> Result<(), String> {
    let words = ["softflash", "serve"].into_iter().chain(word);
    let error = match program.clone().try_get_matches_from(words) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    match error.kind() {
        // Options that it needs may be in the file or on the command line.
        ErrorKind::MissingRequiredArgument => Ok(()),
        ErrorKind::InvalidValue => Err(format!("{key}: {}", possible(&error))),
        _ => {
            Err(format!("{key}: {}", error.source().map_or(error.to_string(), ToString::to_string)))
        }
    }
}

/// What a value with few possibilities may be.
fn possible(error: &clap::Error) -> String {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!("write one of {}", values.join(", "))
        }
        _ => "a value is missing".to_owned(),
    }
}
