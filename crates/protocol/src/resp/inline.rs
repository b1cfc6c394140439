//! Inline commands: a line of words as typed by a person, with Redis' quoting rules.

use crate::resp::request::Args;
use bytes::{BufMut, Bytes, BytesMut};

/// Splits a line into words; `None` where quotes do not balance. Gives up after more than `most`
/// words.
///
/// Between double quotes `\xHH`, `
/// `, `\r`, `\t`, `\b`, `\a` and `\` before any other byte are escapes; between single quotes only
/// `\'` is. A closing quote must be followed by space or the end.
pub(crate) fn split_words(line: &[u8], most: usize) -> Option<Args> {
    let mut words = Args::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start_c();
        if rest.is_empty() || words.len() > most {
            return Some(words);
        }
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after;
    }
}

fn next_word(line: &[u8]) -> Option<(Bytes, &[u8])> {
    let mut word = BytesMut::new();
    let mut rest = line;
    loop {
        match rest {
            [] => return Some((word.freeze(), rest)),
            [byte, ..] if is_space(*byte) || *byte == 0 => {
                return Some((word.freeze(), &rest[1..]));
            }
            [b'"', quoted @ ..] => rest = double_quoted(quoted, &mut word)?,
            [b'\'', quoted @ ..] => rest = single_quoted(quoted, &mut word)?,
            [byte, after @ ..] => {
                word.put_u8(*byte);
                rest = after;
                continue;
            }
        }
        // A closing quote ends the word.
        return Some((word.freeze(), rest));
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut BytesMut) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.put_u8(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.put_u8(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [b'"', after @ ..] => return ends_word(after),
            [byte, after @ ..] => {
                word.put_u8(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut BytesMut) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\\', b'\'', after @ ..] => {
                word.put_u8(b'\'');
                after
            }
            [b'\'', after @ ..] => return ends_word(after),
            [byte, after @ ..] => {
                word.put_u8(*byte);
                after
            }
        };
    }
}

fn ends_word(after: &[u8]) -> Option<&[u8]> {
    match after {
        [] => Some(after),
        [byte, ..] if is_space(*byte) => Some(after),
        _ => None,
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// C's `isspace`, which includes the vertical tab.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

trait TrimC {
    fn trim_ascii_start_c(&self) -> &[u8];
}

impl TrimC for [u8] {
    fn trim_ascii_start_c(&self) -> &[u8] {
        let start = self.iter().position(|byte| !is_space(*byte)).unwrap_or(self.len());
        self.get(start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split_words(line.as_bytes(), usize::MAX)?;
        Some(words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    }

    #[test]
    fn words_are_split_at_space() {
        assert_eq!(
            words("  SET  key\tvalue "),
            Some(vec!["SET".into(), "key".into(), "value".into()])
        );
        assert_eq!(words(""), Some(vec![]));
        assert_eq!(words(" \t "), Some(vec![]));
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words(r#"set k "a b""#), Some(vec!["set".into(), "k".into(), "a b".into()]));
        assert_eq!(words(r#""\x41\n\q\"""#), Some(vec!["A\nq\"".into()]));
        assert_eq!(words(r"'a\'b\n'"), Some(vec![r"a'b\n".into()]));
        assert_eq!(words(r#"foo"bar""#), Some(vec!["foobar".into()]));
        assert_eq!(words(r#""""#), Some(vec![String::new()]));
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [r#""abc"#, "'abc", r#""abc"def"#, "'abc'def", r#""abc\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
