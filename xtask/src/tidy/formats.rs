//! Formats: the code that encodes and decodes bytes of a medium denies lossy casts, so that no
//! number is cut to the width of its field unnoticed.

use super::places::{ancestors, exists};
use crate::files::SourceFile;
use crate::findings::Findings;
use syn::punctuated::Punctuated;
use syn::{AttrStyle, Attribute, Meta, Token};

/// Directories and files with these names hold formats.
const NAMES: [&str; 7] =
    ["format", "header", "tag", "label", "dump_file", "persisted", "patch_image"];

/// Files with formats that have other names.
const OTHERS: [&str; 2] = ["crates/device/src/model/image.rs", "crates/device/src/model/record.rs"];

/// Files with such a name that hold none: "format" is also the command that makes a store.
const NO_FORMATS: [&str; 2] =
    ["crates/cli/src/cmd/format.rs", "crates/lab/src/experiment/label.rs"];

const LINTS: [&str; 4] =
    ["cast_possible_truncation", "cast_possible_wrap", "cast_precision_loss", "cast_sign_loss"];

/// Checks that each format denies lossy casts, by itself or by a module around it.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for file in files.iter().filter(|file| is_format(&file.path)) {
        let around = ancestors(&file.path);
        let around = files.iter().filter(|other| around.contains(&other.path));
        let denied: Vec<String> =
            around.chain([file]).flat_map(|file| denied_lints(&file.text)).collect();
        let missing = LINTS.iter().filter(|lint| !denied.iter().any(|denied| denied == *lint));
        let missing: Vec<String> = missing.map(|lint| format!("clippy::{lint}")).collect();
        if !missing.is_empty() {
            let remedy = missing.join(", ");
            let problem = format!(
                "a format without a denial of lossy casts: add `#![deny({remedy})]` to it or to a \
                 module around it"
            );
            findings.add(&file.path, problem);
        }
    }
}

/// Checks that the files of the lists exist.
pub fn check_lists(files: &[SourceFile], findings: &mut Findings) {
    for path in OTHERS.into_iter().chain(NO_FORMATS).filter(|path| !exists(files, path)) {
        findings.add("xtask/src/tidy/formats.rs", format!("{path} does not exist"));
    }
}

fn is_format(path: &str) -> bool {
    let Some((_, inside)) = path.split_once("/src/").filter(|_| path.starts_with("crates/")) else {
        return false;
    };
    let Some(module) = inside.strip_suffix(".rs") else { return false };
    let is_named = module.split('/').any(|name| NAMES.contains(&name));
    (is_named || OTHERS.contains(&path)) && !NO_FORMATS.contains(&path)
}

/// The lints of clippy that a file denies for itself and for the modules in it. A denial that holds
/// except in tests counts.
fn denied_lints(text: &str) -> Vec<String> {
    let file = syn::parse_file(text);
    let attributes = file.map(|file| file.attrs).unwrap_or_default();
    let inner = attributes.iter().filter(|it| matches!(it.style, AttrStyle::Inner(_)));
    inner.flat_map(denied_by).collect()
}

fn denied_by(attribute: &Attribute) -> Vec<String> {
    let list = |meta: &Meta| -> Vec<Meta> {
        let list = meta.require_list().ok();
        let parsed =
            list.map(|list| list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated));
        parsed.and_then(Result::ok).into_iter().flatten().collect()
    };
    let denials = if attribute.path().is_ident("cfg_attr") {
        let mut parts = list(&attribute.meta).into_iter();
        let holds = parts.next().is_some_and(|condition| {
            condition.path().is_ident("not") && list(&condition).iter().all(is_test)
        });
        if holds { parts.collect() } else { Vec::new() }
    } else {
        vec![attribute.meta.clone()]
    };
    let denials =
        denials.iter().filter(|it| it.path().is_ident("deny") || it.path().is_ident("forbid"));
    let lints = denials.flat_map(list);
    lints.filter_map(|lint| Some(lint.path().segments.last()?.ident.to_string())).collect()
}

fn is_test(meta: &Meta) -> bool {
    meta.path().is_ident("test")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIAL: &str = "#![deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, \
                          clippy::cast_precision_loss, clippy::cast_sign_loss)]\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile { path: (*path).into(), text: (*text).into() })
            .collect();
        let mut findings = Findings::new("tidy");
        check(&files, &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn a_format_without_a_denial_is_found_with_the_remedy() {
        let problems = found(&[
            ("crates/a/src/format/mod.rs", "mod page;\n"),
            ("crates/a/src/format/page.rs", "pub struct Page;\n"),
            ("crates/a/src/page.rs", "pub struct Page;\n"),
            ("crates/a/src/header.rs", DENIAL),
        ]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(
            problems[1],
            "crates/a/src/format/page.rs: a format without a denial of lossy casts: add \
             `#![deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, \
             clippy::cast_precision_loss, clippy::cast_sign_loss)]` to it or to a module around it"
        );
    }

    #[test]
    fn a_module_around_a_format_can_deny_for_it() {
        let except_in_tests = format!("#![cfg_attr(not(test), {})]", &DENIAL[3..DENIAL.len() - 2]);
        for denial in [DENIAL, &except_in_tests] {
            let inner = ("crates/a/src/x/format/log/page.rs", "pub struct Page;\n");
            for around in ["x/format/log.rs", "x/format/log/mod.rs", "x/mod.rs", "x.rs", "lib.rs"] {
                let around = format!("crates/a/src/{around}");
                let problems = found(&[inner, (&around, denial)]);
                assert!(problems.is_empty(), "{around}: {problems:?}");
            }
            assert_eq!(found(&[inner, ("crates/a/src/x/other.rs", denial)]).len(), 1);
        }
    }

    #[test]
    fn a_listed_file_that_does_not_exist_is_found() {
        let listed = OTHERS.into_iter().chain(NO_FORMATS);
        let mut files: Vec<SourceFile> =
            listed.map(|path| SourceFile { path: path.into(), text: String::new() }).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let gone = files.remove(0).path;
        let mut findings = Findings::new("tidy");
        check_lists(&files, &mut findings);
        let problem = format!("xtask/src/tidy/formats.rs: {gone} does not exist");
        assert_eq!(findings.all(), [problem]);
    }

    #[test]
    fn a_denial_in_part_or_under_another_condition_is_not_enough() {
        let path = "crates/a/src/tag.rs";
        let part = found(&[(path, &DENIAL.replace("clippy::cast_sign_loss", ""))]);
        assert!(part[0].contains("add `#![deny(clippy::cast_sign_loss)]`"), "{part:?}");
        let fuzzing = format!("#![cfg_attr(not(fuzzing), {})]", &DENIAL[3..DENIAL.len() - 2]);
        assert_eq!(found(&[(path, &fuzzing)]).len(), 1);
        assert_eq!(found(&[(path, &DENIAL.replace("deny", "warn"))]).len(), 1);
    }
}
