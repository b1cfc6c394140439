//! Redis' glob patterns: `*`, `?`, `[a-z]`, `[^a]` and `\` as escape.

/// Whether matching ignores case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Same,
    Ignored,
}

impl Case {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Case::Same => byte,
            Case::Ignored => byte.to_ascii_lowercase(),
        }
    }
}

/// A pattern over keys or names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glob<'a> {
    pattern: &'a [u8],
    case: Case,
}

impl<'a> Glob<'a> {
    pub fn new(pattern: &'a [u8]) -> Glob<'a> {
        Glob { pattern, case: Case::Same }
    }

    pub fn ignoring_case(pattern: &'a [u8]) -> Glob<'a> {
        Glob { pattern, case: Case::Ignored }
    }

    /// Whether the whole `text` matches. A lone `*` also matches the empty text, as in KEYS and
    /// SCAN.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.pattern == b"*" || fits(self.pattern, text, self.case, &mut false)
    }
}

/// `hopeless` becomes true when a `*` finds no match for the rest of the pattern: then extending an
/// earlier `*` cannot help either, which limits the time to |pattern| x |text|.
fn fits(mut pattern: &[u8], mut text: &[u8], case: Case, hopeless: &mut bool) -> bool {
    while let ([kind, after @ ..], [byte, rest @ ..]) = (pattern, text) {
        pattern = after;
        match kind {
            b'*' => {
                while let [b'*', after @ ..] = pattern {
                    pattern = after;
                }
                if pattern.is_empty() {
                    return true;
                }
                while let [_, rest @ ..] = text {
                    if fits(pattern, text, case, hopeless) {
                        return true;
                    }
                    if *hopeless {
                        return false;
                    }
                    text = rest;
                }
                *hopeless = true;
                return false;
            }
            b'?' => {}
            b'[' => {
                let (found, after) = class(pattern, *byte, case);
                if !found {
                    return false;
                }
                pattern = after;
            }
            kind => {
                let mut literal = *kind;
                if let (b'\\', [escaped, after @ ..]) = (literal, pattern) {
                    literal = *escaped;
                    pattern = after;
                }
                if case.fold(literal) != case.fold(*byte) {
                    return false;
                }
            }
        }
        text = rest;
        if text.is_empty() {
            while let [b'*', after @ ..] = pattern {
                pattern = after;
            }
        }
    }
    pattern.is_empty() && text.is_empty()
}

/// Whether `byte` is in the class that begins at `pattern`, and the pattern after the class.
fn class(mut pattern: &[u8], byte: u8, case: Case) -> (bool, &[u8]) {
    let mut negated = false;
    if let [b'^', after @ ..] = pattern {
        negated = true;
        pattern = after;
    }
    let (exact, byte) = (byte, case.fold(byte));
    let mut found = false;
    loop {
        pattern = match pattern {
            [b'\\', escaped, after @ ..] => {
                // Like Redis, which does not fold case here.
                found |= *escaped == exact;
                after
            }
            [] => return (found != negated, pattern),
            [b']', after @ ..] => return (found != negated, after),
            [from, b'-', to, after @ ..] => {
                // The bytes of a range compare like C's signed characters.
                let [from, to, byte] =
                    [case.fold(*from), case.fold(*to), byte].map(u8::cast_signed);
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                after
            }
            [member, after @ ..] => {
                found |= case.fold(*member) == byte;
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_redis() {
        let cases = [
            ("*", "", true),
            ("", "", true),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a", "", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[b-a]llo", "hallo", true),
            ("h[a-", "h-", true),
            ("[abc", "b", true),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            (r"a\", r"a\", true),
            (r"[\]]", "]", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(
                Glob::new(pattern.as_bytes()).matches(text.as_bytes()),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(Glob::ignoring_case(b"SLOW*").matches(b"slowlog-max-len"));
        assert!(Glob::ignoring_case(br"[\A]").matches(b"A"));
        assert!(!Glob::ignoring_case(br"[\A]").matches(b"a"));
    }
}
