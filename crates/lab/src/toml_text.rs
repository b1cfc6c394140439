//! Parses TOML files of users. Errors name the file, the line and the key, with the nearest known
//! key.

mod assignment;
mod expectation;

use serde::de::{self, DeserializeOwned};
use thiserror::Error;

/// The least similarity (1: equal) of two words of which one may be a misspelling of the other.
const ALIKE: f64 = 0.4;

/// The problem of a TOML text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{}: {problem}", line.map(|line| format!(": line {line}")).unwrap_or_default())]
pub struct TomlError {
    /// The file, or the preset as `preset device sdf`.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The problem, with the nearest known key where one was misspelt.
    pub problem: String,
}

/// Parses a value from the text of `file`.
pub fn from_text<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| toml_error(file, text, &error))
}

/// Parses a value from a table that was parsed, completely or in part, from `file` with this text.
pub fn from_table<T: DeserializeOwned>(
    file: &str,
    text: &str,
    table: toml::Table,
) -> Result<T, TomlError> {
    T::deserialize(table).map_err(|error| toml_error(file, text, &error))
}

/// Parses the value that the `kind` of a table selects. The error keeps the path of a wrong value,
/// which serde's own tagged enums lose.
pub(crate) fn of_kind<T: DeserializeOwned, E: de::Error>(table: toml::Table) -> Result<T, E> {
    // The path is only in the text of the error.
    T::deserialize(table).map_err(|error| E::custom(error.to_string().trim_end()))
}

/// Adds the line of an error in `text`, and a suggestion for a misspelt word.
pub fn toml_error(file: &str, text: &str, error: &toml::de::Error) -> TomlError {
    let message = assignment::without_path(error.message()).trim_end().replace('\n', " ");
    let unknown = Unknown::of(&message);
    let line = match (&unknown, error.span()) {
        // The span of a key in a tagged table is that of the whole table.
        (Some(unknown), span) => line_of_word(text, &unknown.word, span.map_or(0, |s| s.start)),
        (None, Some(span)) if span.end > 0 => Some(line_at(text, span.start)),
        (None, _) => assignment::line_of(text, quoted(&message), assignment::key_of(error)),
    };
    let problem = match unknown {
        Some(unknown) => unknown.to_string(),
        None => {
            expectation::explained(&message, line.and_then(|line| expectation::key_at(text, line)))
        }
    };
    TomlError { file: file.to_owned(), line, problem }
}

/// The problem of values that can be parsed but are impossible: `problem` names the key.
pub fn impossible(file: &str, text: &str, problem: String) -> TomlError {
    let line = |key: &str| {
        let is_key = |line: &str| {
            let rest = line.trim_start().strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        text.lines().position(is_key).map(|index| index + 1)
    };
    let words = problem.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let line = words.filter(|word| !word.is_empty()).find_map(line);
    TomlError { file: file.to_owned(), line, problem }
}

/// The first value that serde's message quotes, as in ``invalid type: string "x"``.
fn quoted(message: &str) -> Option<&str> {
    let mark = message.find(['"', '`', '\''])?;
    let (quote, rest) = message.get(mark..)?.split_at_checked(1)?;
    rest.split(quote).next()
}

/// The `known` word that is most similar to `word`, if it is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(word, known);
    let best = known.into_iter().map(|known| (likeness(known), known));
    // Of equals the first, so that the result is deterministic.
    let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, known)| known)
}

/// Up to three of the `known` words that are similar to `word`, the most similar first.
pub fn nearest_few<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let likeness = |known: &'a str| (strsim::normalized_damerau_levenshtein(word, known), known);
    let alike = known.into_iter().map(likeness).filter(|(likeness, _)| *likeness >= ALIKE);
    let mut alike: Vec<(f64, &str)> = alike.collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0));
    alike.into_iter().take(3).map(|(_, known)| known).collect()
}

/// The end of a message about an unknown word: the nearest one, or all of them.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(nearest) => format!("the nearest known one is `{nearest}`"),
        None => {
            let all: Vec<&str> = known.into_iter().collect();
            format!("known are {}", all.join(", "))
        }
    }
}

/// A word that is unknown to serde, and the words that are known.
struct Unknown {
    /// `field` or `variant`.
    kind: String,
    word: String,
    /// With the remark of the message on each: ` (N from 1)`.
    known: Vec<(String, String)>,
}

impl Unknown {
    /// Parses serde's message: ``unknown field `x`, expected one of `a`, `b` ``.
    fn of(message: &str) -> Option<Unknown> {
        let rest = message.strip_prefix("unknown ")?;
        let (kind, rest) = rest.split_once(" `")?;
        let (word, rest) = rest.split_once('`')?;
        let parts: Vec<&str> = rest.split('`').skip(1).collect();
        let known = parts.chunks(2).filter_map(|parts| match parts {
            [known, rest, ..] => Some(((*known).to_owned(), remark(rest).to_owned())),
            _ => None,
        });
        Some(Unknown { kind: kind.to_owned(), word: word.to_owned(), known: known.collect() })
    }
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.kind == "field" { "key" } else { "value" };
        write!(f, "unknown {kind} `{}`", self.word)?;
        if !self.known.is_empty() {
            let known = self.known.iter().map(|(known, _)| known.as_str());
            let nearest = nearest(&self.word, known.clone());
            let remark = self.known.iter().find(|(known, _)| Some(known.as_str()) == nearest);
            let remark = remark.map_or("", |(_, remark)| remark);
            write!(f, "; {}{remark}", suggestion(&self.word, known))?;
        }
        Ok(())
    }
}

/// The remark in parentheses at the start of the text behind a known word.
fn remark(behind: &str) -> &str {
    let end = behind.strip_prefix(" (").and_then(|_| behind.find(')'));
    end.and_then(|end| behind.get(..=end)).unwrap_or_default()
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The first line from `offset` on that contains `word` as a whole word or string outside of a
/// comment.
pub(crate) fn line_of_word(text: &str, word: &str, offset: usize) -> Option<usize> {
    let first = line_at(text, offset);
    let mut lines = text.lines().enumerate().skip(first - 1);
    lines.find(|(_, line)| has_word(line, word)).map(|(index, _)| index + 1)
}

/// Whether a line has `word` as a whole word or string outside of a comment.
fn has_word(line: &str, word: &str) -> bool {
    let code = line.split('#').next().unwrap_or(line);
    let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    words.any(|w| w == word) || code.contains(&format!("\"{word}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Drive {
        channels: u32,
        #[serde(default)]
        schedule: Schedule,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Schedule {
        #[default]
        Fifo,
        ReadsFirst,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only read")]
    enum Tagged {
        Drive(Drive),
    }

    fn problem<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        from_text::<T>("a.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
        let text = "# chanels\nschedule = \"fifo\"\nchanels = 4\n";
        let expected = "a.toml: line 3: unknown key `chanels`; the nearest known one is `channels`";
        assert_eq!(problem::<Drive>(text), expected);
        assert_eq!(problem::<Tagged>(&format!("{text}kind = \"drive\"\n")), expected);
    }

    #[test]
    fn an_unknown_value_is_named_too() {
        let text = "channels = 4\nschedule = \"read-first\"\n";
        let expected =
            "a.toml: line 2: unknown value `read-first`; the nearest known one is `reads-first`";
        assert_eq!(problem::<Drive>(text), expected);
        assert!(
            problem::<Drive>("channels = 4\nzzzzzzzz = 1")
                .ends_with("known are channels, schedule")
        );
    }

    #[test]
    fn a_policy_with_a_wrong_number_is_named_with_its_form() {
        let text = "kind = \"page-mapped\"\nwear = \"static:no\"\n";
        let expected = "a.toml: line 2: unknown value `static:no`; the nearest known one is ";
        assert_eq!(
            problem::<crate::layout::Layout>(text),
            format!("{expected}`static:N` (N from 1)")
        );
        let text = "kind = \"page-mapped\"\nplacement = \"by-hint:9\"\n";
        let expected = "a.toml: line 2: unknown value `by-hint:9`; the nearest known one is ";
        assert_eq!(
            problem::<crate::layout::Layout>(text),
            format!("{expected}`by-hint:CLASSES` (CLASSES from 2 to 8)")
        );
        let text = "kind = \"page-mapped\"\nplacement = \"least-que\"\n";
        assert!(problem::<crate::layout::Layout>(text).ends_with("is `least-queue`"));
        let text = "kind = \"page-mapped\"\nvictim = \"gredy\"\n";
        let expected = "a.toml: line 2: unknown value `gredy`; the nearest known one is `greedy`";
        assert_eq!(problem::<crate::layout::Layout>(text), expected);
    }

    #[test]
    fn other_mistakes_have_their_line() {
        let expected = "a.toml: line 3: channels: string \"four\", expected a whole number from 0 to 4294967295";
        assert_eq!(problem::<Drive>("\n\nchannels = \"four\""), expected);
        assert!(problem::<Drive>("channels = = 4").starts_with("a.toml: line 1: "));
        let missing = problem::<Drive>("schedule = \"fifo\"");
        assert!(missing.contains("missing field `channels`"), "{missing}");
    }

    #[test]
    fn a_value_out_of_a_table_has_its_line_too() {
        let text = "schedule = \"fifo\"\nchannels = \"four\"\n";
        let table: toml::Table = toml::from_str(text).unwrap();
        let error = from_table::<Drive>("a.toml", text, table).unwrap_err().to_string();
        assert!(error.starts_with("a.toml: line 2: channels: string \"four\""), "{error}");
    }

    #[test]
    fn a_line_with_the_same_value_by_chance_is_not_blamed() {
        let text = "seed = 7\nset.channels = \"7\"\n";
        let table: toml::Table = toml::from_str("channels = \"7\"").unwrap();
        let error = from_table::<Drive>("a.toml", text, table).unwrap_err().to_string();
        assert!(error.starts_with("a.toml: line 2: set.channels: string \"7\""), "{error}");
    }

    #[test]
    fn a_value_that_cannot_be_has_the_line_of_its_key() {
        let text = "[geometry]\n# channels = 3\n  channels = 0\n";
        let error = impossible("a.toml", text, "geometry: channels is 0".to_owned()).to_string();
        assert_eq!(error, "a.toml: line 3: geometry: channels is 0");
        assert_eq!(impossible("a.toml", text, "too much".to_owned()).line, None);
    }

    #[test]
    fn words_without_likeness_are_not_suggested() {
        assert_eq!(nearest("sfd", ["huawei-gen3", "sdf"]), Some("sdf"));
        assert_eq!(nearest("hello", ["sdf", "intel-320"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
