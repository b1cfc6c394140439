//! Lua texts in one form, so that two spellings of a script are equal.

use std::fmt::Write;

/// Longer texts are not known.
const LONGEST: usize = 4096;
/// Texts with more variables are not known.
const MOST_VARIABLES: usize = 16;

/// The script without comments, with single spaces between words, with single quotes, with words
/// of commands in lower case, and with variables numbered in the order of their declaration. None
/// if it has something that no known script has, such as an escape in a string.
pub(super) fn normalise(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
    let mut words = without_parentheses(words(text)?);
    number_variables(&mut words)?;
    Some(words.join(" "))
}

/// The words of a text; those in the parentheses of `redis.call` are in lower case.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    let mut within_call = false;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        let Some(first) = rest.chars().next() else { return Some(words) };
        let length = if let Some(comment) = rest.strip_prefix("--") {
            rest = after_comment(comment)?;
            continue;
        } else if first == '"' || first == '\'' {
            let inner = rest.get(1..)?.split(first).next()?;
            if inner.contains(['\\', '\n']) || inner.len() + 2 > rest.len() {
                return None;
            }
            let inner = if within_call { inner.to_ascii_lowercase() } else { inner.to_owned() };
            words.push(format!("'{inner}'"));
            rest = rest.get(inner.len() + 2..)?;
            continue;
        } else if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else if ["==", "~=", "<=", ">=", ".."].iter().any(|sign| rest.starts_with(sign)) {
            2
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at_checked(length)?;
        match word {
            "(" => within_call |= words.ends_with(&["redis".into(), ".".into(), "call".into()]),
            ")" => within_call = false,
            _ => {}
        }
        // They differ only where a command fails, as with a time that is no number: then the known
        // script fails, too.
        words.push(if word == "pcall" { "call".to_owned() } else { word.to_owned() });
        rest = after;
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The text after the comment, without its `--`. None for `--[=[`, a long comment of another level.
fn after_comment(comment: &str) -> Option<&str> {
    match comment.strip_prefix('[') {
        Some(long) if long.starts_with('=') => None,
        Some(long) if long.starts_with('[') => long.split_once("]]").map(|(_, rest)| rest),
        _ => Some(comment.split_once('\n').map_or("", |(_, rest)| rest)),
    }
}

/// Removes the parentheses around a whole condition.
fn without_parentheses(words: Vec<String>) -> Vec<String> {
    let mut is_kept = vec![true; words.len()];
    for (at, word) in words.iter().enumerate() {
        if (word == "if" || word == "elseif")
            && words.get(at + 1).is_some_and(|next| next == "(")
            && let Some(end) = end_of_condition(&words, at + 1)
        {
            is_kept.get_mut(at + 1).into_iter().for_each(|is_kept| *is_kept = false);
            is_kept.get_mut(end).into_iter().for_each(|is_kept| *is_kept = false);
        }
    }
    words.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(word, _)| word).collect()
}

/// The place of the parenthesis that closes the one at `open`, if `then` follows it.
fn end_of_condition(words: &[String], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (place, word) in words.iter().enumerate().skip(open) {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            // A condition has none, so the search is short.
            "if" | "elseif" | "then" => return None,
            _ => {}
        }
        if depth == 0 {
            return words.get(place + 1).filter(|next| *next == "then").map(|_| place);
        }
    }
    None
}

/// Replaces the names of declared variables by `v1`, `v2` and so on. None if they are more than a
/// known script has.
fn number_variables(words: &mut [String]) -> Option<()> {
    let mut names: Vec<String> = Vec::new();
    let (mut declares, mut follows_name) = (false, false);
    for word in words.iter_mut() {
        match word.as_str() {
            "local" | "for" => (declares, follows_name) = (true, false),
            "," => (declares, follows_name) = (follows_name, false),
            name if declares && name.starts_with(is_of_name) => {
                names.push(name.to_owned());
                (declares, follows_name) = (false, true);
            }
            _ => (declares, follows_name) = (false, false),
        }
        if names.len() > MOST_VARIABLES {
            return None;
        }
        if let Some(number) = names.iter().rposition(|name| name == word) {
            word.clear();
            // Writing to a string does not fail.
            let _ = write!(word, "v{}", number + 1);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_script_are_equal() {
        let plain = r#"if redis.call("get", KEYS[1]) == ARGV[1] then return 1 else return 0 end"#;
        let others = [
            "if redis.call('GET',KEYS[1])==ARGV[1]\nthen\n\treturn 1;\nelse\n\treturn 0;\nend\n",
            "-- the owner\nif (redis.call('get', KEYS[1]) == ARGV[1]) then return 1 else return 0 end",
            "--[[ two\nlines ]] if redis.pcall('get', KEYS[1]) == ARGV[1] then return 1 else return 0 end",
        ];
        for other in others {
            assert_eq!(normalise(other.as_bytes()), normalise(plain.as_bytes()), "{other}");
        }
        let named = |name| format!("local {name} = redis.call('get', KEYS[1]) return {name}");
        assert_eq!(normalise(named("token").as_bytes()), normalise(named("val").as_bytes()));
    }

    #[test]
    fn other_scripts_stay_different() {
        let pairs = [
            ("return KEYS[1]", "return KEYS[2]"),
            ("return ARGV[1] == 'yes'", "return ARGV[1] == 'YES'"),
            ("local a local b return a", "local a local b return b"),
            ("return (1)", "return 1"),
            ("return 11", "return 1 1"),
        ];
        for (one, other) in pairs {
            assert_ne!(normalise(one.as_bytes()), normalise(other.as_bytes()), "{one}");
        }
        let long = "--[=[\nreturn 1\n--]=]";
        for strange in [r#"return "a\n""#, "return 'open", "return 'a\nb'", "--[[ open", long] {
            assert_eq!(normalise(strange.as_bytes()), None, "{strange}");
        }
        assert_eq!(normalise(&[0xff]), None);
        assert_eq!(normalise(&[b' '; LONGEST + 1]), None);
        assert_eq!(normalise("local a = 1 ".repeat(MOST_VARIABLES + 1).as_bytes()), None);
        for hard in ["if (", "if (a) then ", "(", ")", "local ", "elseif (("] {
            normalise(hard.repeat(LONGEST / hard.len()).as_bytes());
        }
    }
}
