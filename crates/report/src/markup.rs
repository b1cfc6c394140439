//! HTML and SVG as text that is well-formed by construction: all elements are closed, and all text
//! is escaped.

use std::fmt::{Display, Write};

/// Elements that may end at once. In HTML all others need an end tag even when they are empty.
const MAY_BE_EMPTY: [&str; 7] = ["meta", "line", "rect", "path", "circle", "br", "stop"];

/// Elements inside of running text, after which a line break would become a space.
const INLINE: [&str; 6] = ["a", "code", "text", "title", "span", "strong"];

#[derive(Default)]
pub(crate) struct Markup {
    out: String,
    open: Vec<&'static str>,
    /// The last start tag still takes attributes.
    in_tag: bool,
}

impl Markup {
    pub(crate) fn new() -> Markup {
        Markup::default()
    }

    pub(crate) fn doctype(&mut self) {
        self.out.push_str("<!DOCTYPE html>\n");
    }

    pub(crate) fn open(&mut self, tag: &'static str) -> &mut Markup {
        self.end_tag();
        self.out.push('<');
        self.out.push_str(tag);
        self.open.push(tag);
        self.in_tag = true;
        self
    }

    /// An attribute of the element just opened.
    pub(crate) fn attr(&mut self, name: &str, value: impl Display) -> &mut Markup {
        debug_assert!(self.in_tag, "attribute {name} comes after the content of its element");
        if self.in_tag {
            let _ = write!(self.out, " {name}=\"");
            escape(&value.to_string(), &mut self.out);
            self.out.push('"');
        }
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Markup {
        self.end_tag();
        escape(text, &mut self.out);
        self
    }

    /// A style sheet of our own: CSS is not escaped in HTML.
    pub(crate) fn style(&mut self, css: &str) -> &mut Markup {
        self.open("style").end_tag();
        self.out.push_str(css);
        self.close()
    }

    /// Adds the finished text of another [`Markup`].
    pub(crate) fn finished(&mut self, markup: &str) -> &mut Markup {
        self.end_tag();
        self.out.push_str(markup);
        self
    }

    pub(crate) fn close(&mut self) -> &mut Markup {
        let Some(tag) = self.open.pop() else { return self };
        if self.in_tag && MAY_BE_EMPTY.contains(&tag) {
            self.out.push_str("/>");
            self.in_tag = false;
        } else {
            self.end_tag();
            let _ = write!(self.out, "</{tag}>");
        }
        if !INLINE.contains(&tag) {
            self.out.push('\n');
        }
        self
    }

    /// An element with nothing but text in it.
    pub(crate) fn element(&mut self, tag: &'static str, text: &str) -> &mut Markup {
        self.open(tag).text(text).close()
    }

    /// The text, with all elements closed.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn end_tag(&mut self) {
        if self.in_tag {
            self.out.push('>');
            self.in_tag = false;
        }
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            // XML has no way to say these.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut markup = Markup::new();
        markup.open("p").attr("title", "\"<'").text("a<b> & c\u{0}\u{1b}d").close();
        let expected = "<p title=\"&quot;&lt;&#39;\">a&lt;b&gt; &amp; c\u{fffd}\u{fffd}d</p>\n";
        assert_eq!(markup.finish(), expected);
    }

    #[test]
    fn empty_elements_end_as_html_wants_it() {
        let mut markup = Markup::new();
        markup.open("td").close().open("rect").attr("x", 1).close();
        assert_eq!(markup.finish(), "<td></td>\n<rect x=\"1\"/>\n");
    }

    #[test]
    fn what_is_left_open_is_closed() {
        let mut markup = Markup::new();
        markup.open("div").open("p").text("x");
        assert_eq!(markup.finish(), "<div><p>x</p>\n</div>\n");
    }
}
