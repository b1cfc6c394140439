//! The first sentence of a source's comment, as text for a page.

/// The first sentence of the `//!` comment at the start of a source; nothing if it has none.
pub fn first(text: &str) -> Option<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("//!"));
    let comment = lines.map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = comment.take_while(|line| !line.is_empty()).collect();
    let paragraph = without_links(&paragraph.join(" "));
    let sentence = &paragraph[..end(&paragraph)];
    // A colon at the end leads to a list, which is not part of the sentence.
    let sentence = sentence.trim_end_matches(['.', ':']);
    (!sentence.is_empty()).then(|| format!("{sentence}."))
}

/// The end of the first sentence: after a full stop outside of code, before another sentence.
fn end(paragraph: &str) -> usize {
    let mut code = false;
    for (at, sign) in paragraph.char_indices() {
        code ^= sign == '`';
        let rest = &paragraph[at + sign.len_utf8()..];
        let begins = |next: char| next.is_uppercase() || next.is_numeric() || "`([".contains(next);
        let is_last = rest.strip_prefix(' ').is_some_and(|rest| rest.starts_with(begins));
        if sign == '.' && !code && is_last {
            return at + 1;
        }
    }
    paragraph.len()
}

/// The text without the targets of links: `[text](target)` and `[text]` become `text`.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once('[') {
        let is_code = (plain.matches('`').count() + before.matches('`').count()) % 2 == 1;
        let Some((inner, after)) = link.split_once(']').filter(|_| !is_code) else {
            plain.extend([before, "["]);
            rest = link;
            continue;
        };
        plain.extend([before, &inner.replace("`mod@", "`")]);
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_at_its_full_stop() {
        let text =
            "#![no_main]\n\n//! Reads `a. B` in version 1.2 of\n//! the format. Then more.\n";
        assert_eq!(first(text).as_deref(), Some("Reads `a. B` in version 1.2 of the format."));
    }

    #[test]
    fn a_sentence_ends_with_its_paragraph() {
        assert_eq!(
            first("//! `softflash info`\n//!\n//! More.\n").as_deref(),
            Some("`softflash info`.")
        );
        assert_eq!(first("//! Kinds:\n//!\n//! - one\n").as_deref(), Some("Kinds."));
    }

    #[test]
    fn links_become_text() {
        let text = "//! A [`Store`] by [its](crate::a) `[map]`, see [`mod@map`].\n";
        assert_eq!(first(text).as_deref(), Some("A `Store` by its `[map]`, see `map`."));
    }

    #[test]
    fn a_source_without_a_comment_has_no_sentence() {
        assert_eq!(first("/// An item.\nfn item() {}\n"), None);
    }
}
