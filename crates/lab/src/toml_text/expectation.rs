//! What a value of the wrong type should have been, in words instead of types of Rust.

/// Types in messages of serde, and the values that they have.
const TYPES: [(&str, &str); 13] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0"),
    ("usize", "a whole number from 0"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list, as [1, 2]"),
    ("a string", "a text in quotes"),
    ("string only", "one of its values, in quotes"),
    ("a map", "a table"),
    ("enum", "one of its values"),
];

/// The parser's message about a value in place of one of a list.
const WORD_OR_TABLE: &str = "wanted string or table";

/// A message of serde about a value of the wrong type, with the key of the value: ``invalid value:
/// integer `70000`, expected u16`` is ``channels: integer `70000`, expected a whole number from 0
/// to 65535``.
pub(super) fn explained(message: &str, key: Option<String>) -> String {
    let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
    if message == WORD_OR_TABLE {
        return format!("{key}expected one of its values, in quotes or as a table");
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let found =
        ["invalid type: ", "invalid value: "].iter().find_map(|kind| found.strip_prefix(kind));
    let Some(found) = found else { return message.to_owned() };
    let words = TYPES.iter().find(|(name, _)| *name == expected).map(|(_, words)| *words);
    let words = words.unwrap_or(if expected.starts_with("struct ") { "a table" } else { expected });
    // The parser's name for a word of a list, in place of the value.
    match found {
        "unit variant" => format!("{key}expected {words}"),
        _ => format!("{key}{found}, expected {words}"),
    }
}

/// The key that is set in a line, from 1, with the table that it is in.
pub(super) fn key_at(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line).map(str::trim).collect();
    let (key, _) = lines.last()?.split_once('=')?;
    let table = lines.iter().rev().find_map(|line| header(line));
    let key = key.trim().to_owned();
    Some(table.map(|table| format!("{table}.{key}")).unwrap_or(key))
}

/// The table of a line such as `[geometry]` or `[[group.row]]`; none of a line of a list.
fn header(line: &str) -> Option<&str> {
    let code = line.split('#').next()?.trim_end();
    let name = code.strip_prefix('[')?.strip_suffix(']')?;
    let name = name.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(name);
    let is_name = |c: char| c.is_alphanumeric() || "._- \"'".contains(c);
    name.chars().all(is_name).then(|| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_said_in_words() {
        let cases = [
            (
                "invalid value: integer `70000`, expected u16",
                "integer `70000`, expected a whole number from 0 to 65535",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "integer `-1`, expected a whole number from 0",
            ),
            (
                "invalid type: string \"no\", expected a boolean",
                "string \"no\", expected true or false",
            ),
            (
                "invalid type: floating point `1.5`, expected u8",
                "floating point `1.5`, expected a whole number from 0 to 255",
            ),
            (
                "invalid type: integer `1`, expected struct LinkSpec",
                "integer `1`, expected a table",
            ),
            (
                "invalid type: unit variant, expected string only",
                "expected one of its values, in quotes",
            ),
            (WORD_OR_TABLE, "expected one of its values, in quotes or as a table"),
            ("missing field `a`", "missing field `a`"),
        ];
        for (message, words) in cases {
            assert_eq!(explained(message, None), words);
        }
    }

    #[test]
    fn the_key_has_its_table() {
        let text = "a = 1\n[geometry]\n# x\n  channels = 2\n[[group.row]]\nlabel = 3\n";
        let key = |line| key_at(text, line);
        assert_eq!(key(1).as_deref(), Some("a"));
        assert_eq!(key(4).as_deref(), Some("geometry.channels"));
        assert_eq!(key(6).as_deref(), Some("group.row.label"));
        assert_eq!(key(3), None);
        let text = "[link] # [x]\nvary = [\n  [1, 2],\n  [3],\n]\nset = 4\n";
        assert_eq!(key_at(text, 6).as_deref(), Some("link.set"));
    }
}
