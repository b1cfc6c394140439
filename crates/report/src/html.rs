//! The page around tables and figures.

use crate::figure::Figure;
use crate::markup::Markup;
use crate::palette;
use crate::report::{Block, Report, Section};
use crate::table::Table;
use std::collections::BTreeSet;

/// Rows of a figure's data that are written. More would make pages that browsers are slow with.
const DATA_ROWS: usize = 1000;

pub(crate) fn page(report: &Report) -> String {
    let mut markup = Markup::new();
    markup.doctype();
    markup.open("html").attr("lang", "en").attr("xmlns", "http://www.w3.org/1999/xhtml");
    head(&mut markup, report);
    markup.open("body").open("main").element("h1", &report.title);
    text(&mut markup, &report.intro);
    let ids = ids(&report.sections);
    contents(&mut markup, report, &ids);
    for (part, id) in report.sections.iter().zip(&ids) {
        section(&mut markup, part, id);
    }
    markup.finish()
}

fn head(markup: &mut Markup, report: &Report) {
    markup.open("head").open("meta").attr("charset", "utf-8").close();
    markup.open("meta").attr("name", "viewport").attr("content", "width=device-width").close();
    markup.open("meta").attr("name", "color-scheme").attr("content", "light dark").close();
    markup.element("title", &report.title);
    let dark = palette::dark_rules();
    let css = include_str!("page.css");
    // Paper is white, independent of the colours of the screen.
    markup.style(&format!(
        "\n{css}@media screen and (prefers-color-scheme: dark) {{\n{DARK_PAGE}{dark}}}\n"
    ));
    markup.close();
}

const DARK_PAGE: &str = ":root{--paper:#16181d;--ink:#e4e6ea;--soft:#a4a9b3;--line:#363a43;\
--link:#7cb8ff;--good:#5fd08f;--bad:#ff9b7a;--raised:#1d2026}\n";

/// The table of contents, where there is anything to choose from.
fn contents(markup: &mut Markup, report: &Report, ids: &[String]) {
    if report.sections.len() < 2 {
        return;
    }
    markup.open("nav").attr("aria-label", "Contents").open("ol");
    for (section, id) in report.sections.iter().zip(ids) {
        markup.open("li").open("a").attr("href", format!("#{id}"));
        markup.text(&section.title).close().close();
    }
    markup.close().close();
}

fn section(markup: &mut Markup, section: &Section, id: &str) {
    markup.open("section").attr("id", id).element("h2", &section.title);
    text(markup, &section.text);
    for block in &section.blocks {
        match block {
            Block::Text(words) => text(markup, words),
            Block::Table(table) => write_table(markup, table),
            other => {
                if let Some(picture) = other.figure() {
                    figure(markup, picture);
                }
            }
        }
    }
    markup.close();
}

fn write_table(markup: &mut Markup, table: &Table) {
    markup.open("figure");
    match table.folded {
        true => markup.open("details").element("summary", &table.title),
        false => markup.element("figcaption", &table.title),
    };
    table.write(markup, usize::MAX);
    note(markup, &table.note);
    if table.folded {
        markup.close();
    }
    markup.close();
}

fn figure(markup: &mut Markup, figure: &dyn Figure) {
    markup.open("figure").element("figcaption", figure.title());
    markup.finished(&figure.svg());
    note(markup, figure.note());
    markup.open("details").element("summary", "Data");
    figure.data().write(markup, DATA_ROWS);
    markup.close().close();
}

fn note(markup: &mut Markup, note: &str) {
    if !note.is_empty() {
        markup.open("p").attr("class", "note");
        inline(markup, note);
        markup.close();
    }
}

/// Paragraphs and lists.
fn text(markup: &mut Markup, text: &str) {
    for part in text.split("\n\n") {
        let lines: Vec<&str> = part.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        for run in lines.chunk_by(|one, next| one.starts_with("- ") == next.starts_with("- ")) {
            if run[0].starts_with("- ") {
                markup.open("ul");
                for item in run {
                    markup.open("li");
                    inline(markup, item.trim_start_matches("- "));
                    markup.close();
                }
            } else {
                markup.open("p");
                inline(markup, &run.join(" "));
            }
            markup.close();
        }
    }
}

/// Words with `code` in backticks; a backtick without its partner is a backtick.
fn inline(markup: &mut Markup, text: &str) {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        markup.text(text);
        return;
    }
    for (index, part) in parts.into_iter().enumerate() {
        if index % 2 == 1 {
            markup.element("code", part);
        } else {
            markup.text(part);
        }
    }
}

/// Each section's id made fit for links, and made different from those before.
fn ids(sections: &[Section]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let unique = |section: &Section| {
        let plain: String =
            section
                .id
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' }
                })
                .collect();
        let plain = if plain.is_empty() { "section".to_string() } else { plain };
        let mut id = plain.clone();
        let mut number = 2;
        while !taken.insert(id.clone()) {
            id = format!("{plain}-{number}");
            number += 1;
        }
        id
    };
    sections.iter().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(words: &str) -> String {
        let mut markup = Markup::new();
        text(&mut markup, words);
        markup.finish()
    }

    #[test]
    fn paragraphs_lists_and_code() {
        let html = written("One\nline.\n\nUse `a<b`:\n- first\n- second\nend");
        let expected = "<p>One line.</p>\n<p>Use <code>a&lt;b</code>:</p>\n\
            <ul><li>first</li>\n<li>second</li>\n</ul>\n<p>end</p>\n";
        assert_eq!(html, expected);
        assert_eq!(written("a ` b"), "<p>a ` b</p>\n");
        assert_eq!(written("  \n\n"), "");
    }

    #[test]
    fn ids_are_different_and_plain() {
        let sections = ["A b", "a-b", "", "ü"].map(|id| Section::new(id, "t"));
        assert_eq!(ids(&sections), ["a-b", "a-b-2", "section", "-"]);
    }
}
