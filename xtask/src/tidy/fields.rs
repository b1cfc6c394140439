//! Finds mechanisms whose fields are visible to many files: any of these may change any field, so
//! no file says what holds for them.
//!
//! A field counts if it is visible outside the folder of its file; in a folder with the root of a
//! crate, if it is visible outside the file. *Plain records* are exempt: values that are compared,
//! written or read ([`VALUES`]), and options ([`OPTIONS`]), of which no field depends on another.

use crate::files::SourceFile;
use crate::findings::Findings;
use syn::{Field, Fields, Item, ItemStruct, Meta, Visibility};

/// Maximum number of visible fields.
const MOST: usize = 12;

/// A struct that derives one of these is a value.
const VALUES: [&str; 3] = ["PartialEq", "Serialize", "Deserialize"];

/// The ends of the names of options.
const OPTIONS: [&str; 3] = ["Options", "Config", "Spec"];

/// Other plain records, with the reason. Keep it short: a mechanism belongs in parts.
const RECORDS: [(&str, &str, &str); 2] = [
    (
        "crates/protocol/src/context/counters.rs",
        "Counters",
        "counters that threads only add to, each independent of the others",
    ),
    (
        "crates/store/src/shard/recovery/run.rs",
        "Recovered",
        "the result of a recovery, which the opening takes apart once",
    ),
];

/// Checks the structs of every source.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for file in files.iter().filter(|file| is_product(&file.path)) {
        // Sources that cannot be parsed are found elsewhere.
        let Ok(parsed) = syn::parse_file(&file.text) else { continue };
        look_into(&parsed.items, &file.path, findings);
    }
    for (path, name, _) in RECORDS {
        let is_there = |file: &SourceFile| file.text.contains(&format!("struct {name} {{"));
        if files.iter().any(|file| file.path == path && !is_there(file)) {
            findings.add(path, format!("has no {name}; it is no exempt record any more"));
        }
    }
}

fn is_product(path: &str) -> bool {
    path.ends_with(".rs") && path.contains("/src/")
}

fn look_into(items: &[Item], path: &str, findings: &mut Findings) {
    for item in items {
        match item {
            Item::Struct(found) => {
                let visible = found.fields.iter().filter(|field| counts(field, path)).count();
                if visible > MOST && !is_record(found, path) {
                    let name = &found.ident;
                    let problem = format!(
                        "{visible} fields of {name} are visible outside; the maximum is {MOST}. \
                         Make parts with private fields"
                    );
                    findings.add(path, problem);
                }
            }
            Item::Mod(module) => {
                let inside = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                look_into(inside, path, findings);
            }
            _ => {}
        }
    }
}

/// Whether a field is visible outside the folder, or of a file beside the crate root outside it.
fn counts(field: &Field, path: &str) -> bool {
    match &field.vis {
        Visibility::Inherited => false,
        Visibility::Public(_) => true,
        Visibility::Restricted(to) => {
            let is_of_folder = to.path.is_ident("super") && !path.ends_with("/mod.rs");
            let inside = path.rsplit_once("/src/").map_or(path, |(_, inside)| inside);
            !(to.path.is_ident("self") || is_of_folder && inside.contains('/'))
        }
    }
}

fn is_record(found: &ItemStruct, path: &str) -> bool {
    let name = found.ident.to_string();
    let is_listed = RECORDS.iter().any(|(file, record, _)| (*file, *record) == (path, &*name));
    is_listed
        || OPTIONS.iter().any(|end| name.ends_with(end))
        || derives(found).iter().any(|derived| VALUES.contains(&derived.as_str()))
        || matches!(found.fields, Fields::Unit)
}

/// The traits that a struct derives.
fn derives(found: &ItemStruct) -> Vec<String> {
    let lists = found.attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => Some(list.tokens.to_string()),
        _ => None,
    });
    let names = |list: String| {
        let name = |path: &str| path.rsplit("::").next().unwrap_or_default().trim().to_owned();
        list.split(',').map(name).collect::<Vec<String>>()
    };
    lists.flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, before: &str, visibility: &str, count: usize) -> usize {
        let fields: String = (0..count).map(|at| format!("{visibility} f{at}: u8,")).collect();
        let text = format!("{before} {{ {fields} }}");
        let mut findings = Findings::new("tidy");
        check(&[SourceFile { path: path.to_owned(), text }], &mut findings);
        findings.all().len()
    }

    #[test]
    fn a_mechanism_has_twelve_visible_fields_at_most() {
        let core = |visibility, count| {
            found_in("crates/x/src/core.rs", "pub(crate) struct Core", visibility, count)
        };
        // As the core of the volumes once was.
        assert_eq!((core("pub", 36), core("pub(crate)", 13), core("pub(super)", 13)), (1, 1, 1));
        assert_eq!((core("pub", 12), core("", 36), core("pub(self)", 13)), (0, 0, 0));
    }

    #[test]
    fn fields_that_only_the_folder_sees_do_not_count() {
        let inside = |path, visibility| found_in(path, "pub struct Replay", visibility, 13);
        let path = "crates/x/src/recovery/replay.rs";
        assert_eq!((inside(path, "pub(super)"), inside(path, "pub(in crate::shard)")), (0, 1));
        assert_eq!(inside("crates/x/src/recovery/mod.rs", "pub(super)"), 1);
    }

    #[test]
    fn plain_records_are_exempt() {
        let path = "crates/x/src/a.rs";
        let record = |before| found_in(path, before, "pub", 20);
        assert_eq!(record("#[derive(Debug, Clone, PartialEq)] pub struct Stats"), 0);
        assert_eq!(record("#[derive(serde::Serialize)] pub struct Row"), 0);
        assert_eq!(
            (record("pub struct ServerConfig"), record("#[derive(Debug)] struct Die")),
            (0, 1)
        );
    }
}
