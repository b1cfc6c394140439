//! The line that sets a wrong value, for errors of tables that were built in memory and have no
//! spans.

use super::has_word;

/// Between the message of an error and the path of its value, in the error's text.
const PATH: &str = "\nin `";

/// The last part of the path of an error's value; none if serde has lost it, as in a tagged table.
pub(super) fn key_of(error: &toml::de::Error) -> Option<String> {
    let text = error.to_string();
    let (_, path) = text.trim_end().strip_suffix('`')?.rsplit_once(PATH)?;
    path.rsplit('.').next().map(str::to_owned)
}

/// A message without the path, which an error made of another error's text has.
pub(super) fn without_path(message: &str) -> &str {
    message.split(PATH).next().unwrap_or(message)
}

/// The line, from 1, that sets `key` to `value`, or else sets `key`. Without a key, the line with
/// the value if no other has the same.
pub(super) fn line_of(text: &str, value: Option<&str>, key: Option<String>) -> Option<usize> {
    let with = |word: &str| -> Vec<usize> {
        let lines = text.lines().enumerate().filter(|(_, line)| has_word(line, word));
        lines.map(|(index, _)| index + 1).collect()
    };
    let values = value.map(with).unwrap_or_default();
    let Some(key) = key else {
        return if values.len() == 1 { values.first().copied() } else { None };
    };
    let keys = with(&key);
    keys.iter().find(|line| values.contains(line)).or(keys.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 1\nset.size = 8192\nvary.size = [\n  1,\n]\n# size = 3\nonly = 9\n";

    #[test]
    fn a_key_decides_between_lines_with_the_same_value() {
        let line = |value, key: &str| line_of(TEXT, Some(value), Some(key.to_owned()));
        assert_eq!(line("8192", "size"), Some(2));
        assert_eq!(line("1", "size"), Some(2), "no line has both");
        assert_eq!(line("1", "seed"), Some(1));
        assert_eq!(line("1", "absent"), None);
    }

    #[test]
    fn a_value_alone_must_be_the_only_one() {
        assert_eq!(line_of(TEXT, Some("1"), None), None);
        assert_eq!(line_of(TEXT, Some("9"), None), Some(7));
        assert_eq!(line_of(TEXT, None, None), None);
    }
}
