//! Planted bugs: the file that the table of bugs names for a bug must plant it.

use crate::files::SourceFile;
use crate::findings::Findings;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, Item, LitStr, Result, Token};

/// The file with the table.
const TABLE: &str = "crates/base/src/planted.rs";

/// An entry of the table: `Variant: "description", "place";`.
struct Entry {
    variant: String,
    place: String,
}

/// The entries of the table.
struct Table(Vec<Entry>);

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Entry> {
        let variant = input.parse::<Ident>()?.to_string();
        input.parse::<Token![:]>()?;
        input.parse::<LitStr>()?;
        input.parse::<Token![,]>()?;
        let place = input.parse::<LitStr>()?.value();
        input.parse::<Token![;]>()?;
        Ok(Entry { variant, place })
    }
}

impl Parse for Table {
    fn parse(input: ParseStream<'_>) -> Result<Table> {
        let mut entries = Vec::new();
        while !input.is_empty() {
            entries.push(input.parse()?);
        }
        Ok(Table(entries))
    }
}

/// Checks the place of every bug.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let Some(Table(entries)) = files.iter().find(|file| file.path == TABLE).and_then(table) else {
        return findings.add(TABLE, "no table of planted bugs");
    };
    for Entry { variant, place } in entries {
        let path = format!("crates/{place}");
        let file = files.iter().find(|file| file.path == path);
        if !file.is_some_and(|file| names(&file.text, &format!("Bug::{variant}"))) {
            findings.add(TABLE, format!("{path} does not plant {variant}"));
        }
    }
}

/// The table in the invocation of the macro `bugs`.
fn table(file: &SourceFile) -> Option<Table> {
    let items = syn::parse_file(&file.text).ok()?.items;
    items.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("bugs") => item.mac.parse_body().ok(),
        _ => None,
    })
}

/// Whether a text has this path, and not only a longer one that starts with it.
fn names(text: &str, path: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
    text.split(path).skip(1).any(|rest| !rest.starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), text: (*text).into() };
        let files: Vec<SourceFile> = files.iter().map(file).collect();
        let mut findings = Findings::new("tidy");
        check(&files, &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn a_wrong_place_of_a_bug_is_found() {
        let table = "bugs! {\n    // Reads.\n    Lost: \"it is lost\", \"a/src/read.rs\";\n    \
                     Late: \"it is late\", \"a/src/gone.rs\";\n}\n";
        let read = |text| found(&[(TABLE, table), ("crates/a/src/read.rs", text)]);
        let gone = format!("{TABLE}: crates/a/src/gone.rs does not plant Late");
        assert_eq!(read("fn read() { bug(Bug::Lost); }\n"), [gone.as_str()]);
        let lost = format!("{TABLE}: crates/a/src/read.rs does not plant Lost");
        assert_eq!(read("fn read() { bug(Bug::LostToo); }\n"), [lost, gone]);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_found() {
        let problem = format!("{TABLE}: no table of planted bugs");
        assert_eq!(found(&[]), [problem.as_str()]);
        assert_eq!(found(&[(TABLE, "bugs! { Lost: \"it is lost\"; }\n")]), [problem]);
    }
}
