//! The settings in effect as a file for `serve --config`, with a comment on every option.

use super::settings_file::{keys, serve_command};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::Value;

/// Columns of a comment.
const COLUMNS: usize = 80;

const HEAD: &str = "\
Settings of a server: `softflash serve --config FILE`. Each key is an option of `softflash serve`; an option on the \
command line wins. Keys behind `#` have their default, or none. `softflash serve --print-config` prints this file.";

/// The text for these matches of `serve`.
pub fn text(program: &Command, matches: &ArgMatches) -> String {
    let serve = serve_command(program);
    let mut text = comment(HEAD);
    for (key, option) in keys(&serve) {
        let help = option.get_long_help().or(option.get_help());
        text += "\n";
        text += &comment(&help.map(ToString::to_string).unwrap_or_default());
        let (value, is_set) = value(option, matches);
        let mark = if is_set { "" } else { "# " };
        text += &format!("{mark}{key} = {value}\n");
    }
    text
}

/// The value of an option, or what it may be; and whether it differs from the default.
fn value(option: &Arg, matches: &ArgMatches) -> (Value, bool) {
    let id = option.get_id().as_str();
    let is_set = matches.value_source(id) == Some(ValueSource::CommandLine);
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return (Value::Boolean(is_set), is_set);
    }
    let given = matches.get_raw(id).and_then(|mut values| values.next());
    let word = match (given, option.get_value_names()) {
        (Some(word), _) => word.to_string_lossy().into_owned(),
        (None, names) => names.unwrap_or_default().join(" "),
    };
    let number = word.parse().ok().filter(|number: &i64| number.to_string() == word);
    (number.map_or(Value::String(word), Value::Integer), is_set)
}

/// Wraps a text as comment lines.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines += &line;
            lines.push('\n');
            line.truncate(1);
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_wrapped_at_words() {
        let text = comment(&"word ".repeat(40));
        assert!(text.lines().all(|line| line.starts_with("# word") && line.len() <= COLUMNS));
        assert_eq!(text.matches("word").count(), 40);
    }
}
