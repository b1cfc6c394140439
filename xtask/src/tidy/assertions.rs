//! Counts the assertions of the crates whose boundaries must hold in release builds, too: a fact is
//! asserted where it is written, and where it is relied on.

use super::uses::is_for_tests;
use crate::files::SourceFile;
use crate::findings::Findings;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, Macro};

/// The crates.
const CRATES: [&str; 3] = ["crates/drive", "crates/mapping", "crates/volume"];

/// Lines of code for which there is one assertion at least. Comments and blank lines do not count.
const LINES: usize = 200;

/// Assertions of release builds.
const ASSERTIONS: [&str; 3] = ["assert", "assert_eq", "assert_ne"];

/// Checks the sources of the crates, without their tests.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    for name in CRATES {
        let of_crate = |file: &&SourceFile| is_source_of(name, &file.path);
        let (mut lines, mut assertions) = (0, 0);
        for file in files.iter().filter(of_crate) {
            let code = without_tests(&file.text);
            lines += code.lines().filter(|line| is_code(line)).count();
            assertions += count(&file.text);
        }
        let needed = lines.div_ceil(LINES);
        if assertions < needed {
            let problem = format!(
                "{assertions} release assertions in {lines} lines; {needed} are needed. Assert a \
                 fact where it is written and where it is relied on"
            );
            findings.add(name, problem);
        }
    }
}

fn is_source_of(name: &str, path: &str) -> bool {
    let inside = path.strip_prefix(name).and_then(|path| path.strip_prefix("/src/"));
    inside.is_some_and(|path| {
        path.ends_with(".rs") && !path.split(['/', '.']).any(|part| part == "tests")
    })
}

/// The text up to the module of tests, which is the last one of a file.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

/// The assertions of a source, without tests.
fn count(text: &str) -> usize {
    let mut counter = Counter(0);
    // Sources that cannot be parsed are found elsewhere.
    if let Ok(file) = syn::parse_file(text) {
        counter.visit_file(&file);
    }
    counter.0
}

struct Counter(usize);

impl<'ast> Visit<'ast> for Counter {
    fn visit_item(&mut self, item: &'ast Item) {
        if !super::uses::is_item_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.0 += usize::from(ASSERTIONS.iter().any(|name| call.path.is_ident(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: String) -> Vec<String> {
        let file = SourceFile { path: "crates/volume/src/core.rs".to_owned(), text };
        let mut findings = Findings::new("tidy");
        check(&[file], &mut findings);
        findings.all().to_vec()
    }

    #[test]
    fn two_hundred_lines_of_code_have_an_assertion() {
        let code = |lines| "fn f() {}\n".repeat(lines);
        let asserts = "fn g() {\n    assert!(true);\n}\n";
        assert_eq!(found(code(197) + asserts), [""; 0]);
        assert_eq!(found(code(198) + asserts).len(), 1);
        // Neither comments nor tests count.
        let tests = "\n#[cfg(test)]\nmod tests {\n    fn t() {\n        assert!(true);\n    }\n}\n";
        let debug = "fn h() {\n    debug_assert!(true);\n}\n";
        assert_eq!(found(code(197) + asserts + &"// A comment.\n\n".repeat(50) + tests), [""; 0]);
        assert_eq!(found(code(10) + debug + tests).len(), 1);
        assert_eq!(found(String::new()), [""; 0]);
    }
}
