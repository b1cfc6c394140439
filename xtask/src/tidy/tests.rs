use super::*;

fn project(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let mut files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Findings::new("tidy");
    look(&project(files), &mut findings);
    findings.all().to_vec()
}

#[test]
fn a_tidy_project_passes() {
    let readme = "# It\n\nSee [the map](docs/map.md#the-map-of-it) and `crates/a/src/lib.rs`.\n";
    let files = [
        ("README.md", readme),
        ("docs/map.md", "# Map\n\n## The map, of it\n"),
        ("crates/a/src/lib.rs", "//! See `docs/map.md`.\nmod part;\n"),
        ("crates/a/src/part.rs", "pub(crate) mod deep;\n"),
        ("crates/a/src/part/deep.rs", "//! Deep.\n"),
    ];
    assert_eq!(found(&files), [""; 0]);
}

#[test]
fn a_choice_outside_the_registry_is_found() {
    let files = [
        ("crates/a/src/lib.rs", "mod placement;\nmod victim;\n"),
        ("crates/a/src/placement.rs", "//! Asks.\nuse softflash_policy::PlacementPolicy;\n"),
        ("crates/a/src/victim.rs", "//! Chooses by itself.\n"),
    ];
    let problem = "chooses without the registry; add a policy to `crates/policy`, and ask it";
    assert_eq!(found(&files), [format!("crates/a/src/victim.rs: {problem}")]);
}

#[test]
fn a_path_that_a_guide_names_must_exist() {
    let guide = "# A\n\n`docs/gone.md` and `docs/map.md`\n\n## `crates/a`\n\n`lib.rs`, `gone.rs`\n";
    let files =
        [("ARCHITECTURE.md", guide), ("docs/map.md", "# Map\n"), ("crates/a/src/lib.rs", "\n")];
    assert_eq!(
        found(&files),
        [
            "ARCHITECTURE.md:3: docs/gone.md does not exist",
            "ARCHITECTURE.md:7: gone.rs does not exist",
        ]
    );
}

#[test]
fn a_link_leads_to_a_file_and_a_heading() {
    let text = "# A\n\n[a](gone.md) [b](b.md#no) [c](b.md) [d](#a) [e](https://x.org/)\n";
    let files = [("docs/a.md", text), ("docs/b.md", "# B\n")];
    assert_eq!(
        found(&files),
        [
            "docs/a.md:3: the link target gone.md does not exist",
            "docs/a.md:3: docs/b.md has no heading #no"
        ]
    );
}

#[test]
fn a_comment_is_as_wide_as_the_code() {
    let (wide, link) = ("word ".repeat(20), "x".repeat(100));
    let text = format!("//! {wide}x\n// {link}\nconst A: &str = \"{wide}\";\n");
    let found = found(&[("crates/a/src/lib.rs", &text)]);
    assert_eq!(found, ["crates/a/src/lib.rs:1: a comment wider than 100 columns; wrap it"]);
}

#[test]
fn a_comment_names_documents_that_exist() {
    let files = [("crates/a/src/lib.rs", "//! See `docs/formats.md`.\n")];
    assert_eq!(found(&files), ["crates/a/src/lib.rs:1: docs/formats.md does not exist"]);
}

#[test]
fn unfinished_work_and_paths_of_one_machine_are_found() {
    let text = ["//! TO", "DO\n//! /ro", "ot/x\n//! a/wo", "rk/x\n"].concat();
    let problems = found(&[("crates/a/src/lib.rs", &text)]);
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn long_files_are_found() {
    let problems = found(&[("crates/a/src/lib.rs", &"//!\n".repeat(701))]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("701 lines"), "{problems:?}");
}

#[test]
fn a_source_that_no_module_names_is_found() {
    let files =
        [("crates/a/src/lib.rs", "// mod part;\n"), ("crates/a/src/part.rs", "//! Dead.\n")];
    assert_eq!(found(&files), ["crates/a/src/part.rs: no `mod part;` names this file"]);
}
