//! Circular dependencies between the files of a crate: such files cannot be read or changed
//! independently. A file depends on those that its paths name, and on those whose inherent methods
//! it calls.

use super::methods::{Homes, Methods};
use super::uses::Uses;
use crate::files::SourceFile;
use crate::findings::Findings;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of files in a cycle: a module and its closest helpers.
const LARGEST: usize = 4;

/// The files of a crate by module path; without the crate root, which only names the others.
type Modules = BTreeMap<Vec<String>, Module>;

struct Module {
    uses: Uses,
    methods: Methods,
}

/// Modules that use each other, directly or indirectly.
type Circle = Vec<Vec<String>>;

/// Finds the cycles of each crate.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let directories: BTreeSet<&str> =
        files.iter().filter_map(|file| Some(file.path.split_once("/src/")?.0)).collect();
    let modules = |directory| (directory, modules(directory, files, findings));
    let crates: BTreeMap<&str, Modules> = directories.into_iter().map(modules).collect();
    for (directory, modules) in &crates {
        let needed = dependencies(directory, files);
        let needed = needed.iter().filter_map(|needed| crates.get(needed.as_str()));
        let elsewhere = needed.flat_map(BTreeMap::values).flat_map(|it| it.methods.exported());
        let homes = homes(modules, &elsewhere.collect());
        let circles = circles(modules, &homes);
        for circle in circles.iter().filter(|circle| circle.len() > LARGEST) {
            findings.add(directory, describe(circle, modules, &homes));
        }
    }
}

/// The directories of the project's crates that a crate depends on outside of its tests.
fn dependencies(directory: &str, files: &[SourceFile]) -> Vec<String> {
    let manifest = format!("{directory}/Cargo.toml");
    let manifest = files.iter().find(|file| file.path == manifest);
    let text = manifest.map_or("", |file| file.text.as_str());
    let before_tests = text.split("[dev-dependencies]").next().unwrap_or_default();
    let names = before_tests.lines().filter_map(|line| line.strip_prefix("softflash-"));
    let end = |sign: char| !sign.is_alphanumeric() && sign != '-' && sign != '_';
    names.filter_map(|name| Some(format!("crates/{}", name.split(end).next()?))).collect()
}

/// The files of a circle, and the calls of methods between them.
fn describe(circle: &Circle, modules: &Modules, homes: &Homes<'_>) -> String {
    let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
    let mut described = format!("{} files use each other: {}", names.len(), names.join(", "));
    for (from, name) in circle.iter().zip(&names) {
        let mut called: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
        let calls = modules.get(from).into_iter().flat_map(|it| it.methods.calls(from, homes));
        for (method, home) in calls.filter(|(_, home)| circle.iter().any(|file| file == home)) {
            called.entry(home).or_default().push(method);
        }
        for (home, methods) in called {
            let (home, methods) = (home.join("::"), methods.join(", "));
            described.push_str(&format!("\n    {name} calls {methods} of {home}"));
        }
    }
    described
}

fn homes<'a>(modules: &'a Modules, elsewhere: &BTreeSet<&str>) -> Homes<'a> {
    Methods::homes(modules.iter().map(|(module, it)| (&module[..], &it.methods)), elsewhere)
}

fn modules(directory: &str, files: &[SourceFile], findings: &mut Findings) -> Modules {
    let mut modules = Modules::new();
    for file in files {
        let inside = file.path.strip_prefix(directory).and_then(|path| path.strip_prefix("/src/"));
        let Some(path) = inside.and_then(|path| path.strip_suffix(".rs")) else { continue };
        let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
        names.pop_if(|name| name == "mod");
        if names.iter().any(|name| name == "tests") || ["lib", "main"].contains(&path) {
            continue;
        }
        match syn::parse_file(&file.text) {
            Ok(parsed) => {
                let module = Module { uses: Uses::of(&parsed), methods: Methods::of(&parsed) };
                modules.insert(names, module);
            }
            Err(error) => findings.add(&file.path, error),
        }
    }
    modules
}

fn circles(modules: &Modules, homes: &Homes<'_>) -> Vec<Circle> {
    let edges: BTreeMap<&[String], BTreeSet<Vec<String>>> =
        modules.keys().map(|module| (&module[..], used_by(module, modules, homes))).collect();
    let reached: BTreeMap<&[String], BTreeSet<Vec<String>>> =
        edges.keys().map(|module| (*module, reach(module, &edges))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let back =
            |other: &&Vec<String>| reached.get(&other[..]).is_some_and(|r| r.contains(*module));
        let circle: Circle = others.iter().filter(back).cloned().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reach(
    from: &[String],
    edges: &BTreeMap<&[String], BTreeSet<Vec<String>>>,
) -> BTreeSet<Vec<String>> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_vec()]);
    while let Some(module) = open.pop() {
        for next in edges.get(&module[..]).into_iter().flatten() {
            if reached.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    reached
}

/// The modules that a module uses.
fn used_by(module: &[String], modules: &Modules, homes: &Homes<'_>) -> BTreeSet<Vec<String>> {
    let Some(Module { uses, methods }) = modules.get(module) else { return BTreeSet::new() };
    let needed = uses.handed_on.iter().filter(|(_, here)| uses.words.contains(here));
    let paths = uses.paths.iter().chain(needed.map(|(path, _)| path));
    let named = paths.filter_map(|path| resolve(module, path, modules, 0));
    let called = methods.calls(module, homes).map(|(_, home)| home.to_vec());
    named.chain(called).filter(|used| used != module).collect()
}

/// The module to which a path leads, followed through re-exports.
fn resolve(
    from: &[String],
    path: &[String],
    modules: &Modules,
    depth: usize,
) -> Option<Vec<String>> {
    let absolute = absolute(from, path, modules)?;
    let length =
        (1..=absolute.len()).rev().find(|length| modules.contains_key(&absolute[..*length]))?;
    let (module, rest) = absolute.split_at(length);
    let handed_on = &modules.get(module)?.uses.handed_on;
    let passed = rest.first().and_then(|name| handed_on.iter().find(|(_, here)| here == name));
    match passed {
        Some((path, _)) if depth < 4 => {
            resolve(module, path, modules, depth + 1).or_else(|| Some(module.to_vec()))
        }
        _ => Some(module.to_vec()),
    }
}

/// A path relative to the crate root; none if it leaves the crate.
fn absolute(from: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([from, rest].concat()),
        "super" => {
            let (_, above) = from.split_last()?;
            match rest.first() {
                Some(next) if next == "super" => absolute(above, rest, modules),
                _ => Some([above, rest].concat()),
            }
        }
        _ => {
            let inside = [from, path].concat();
            modules.contains_key(&inside[..=from.len()]).then_some(inside)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile {
                path: format!("crates/x/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        let mut findings = Findings::new("tidy");
        let modules = modules("crates/x", &files, &mut findings);
        let circles = circles(&modules, &homes(&modules, &BTreeSet::new()));
        assert!(findings.all().is_empty());
        circles
            .iter()
            .map(|circle| circle.iter().map(|m| m.join("::")).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn files_that_use_each_other_are_a_circle() {
        let (a, b) = (("a.rs", "use crate::b::B;"), ("b/mod.rs", "fn f() { super::c::g() }"));
        assert_eq!(found(&[a, b, ("c.rs", "use crate::a::A;")]), ["a b c"]);
        assert!(
            found(&[a, b, ("c.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")]).is_empty()
        );
    }

    #[test]
    fn a_reexport_is_not_a_use() {
        let facade = ("b/mod.rs", "mod d;\npub use d::D;\npub struct B;");
        let inner = ("b/d.rs", "use super::B;");
        assert!(found(&[facade, inner]).is_empty());
        let user = ("b/mod.rs", "mod d;\npub use d::D;\npub struct B(D);");
        assert_eq!(found(&[user, inner]), ["b b::d"]);
        // Through the facade to the defining module.
        let low = ("b/d.rs", "use crate::e::E;");
        assert_eq!(found(&[facade, low, ("e.rs", "use crate::b::D;")]), ["b::d e"]);
    }

    #[test]
    fn a_visibility_is_not_a_use() {
        let root = ("a/mod.rs", "mod b;\nuse b::B;\npub struct A(B);");
        assert!(found(&[root, ("a/b.rs", "pub(in crate::a) struct B;")]).is_empty());
    }

    #[test]
    fn a_call_of_an_inherent_method_is_a_use() {
        let root = ("a/mod.rs", "mod b;\npub struct A;\nimpl A { fn f(&self) { self.settle(); } }");
        let part = ("a/b.rs", "use super::A;\nimpl A { pub fn settle(&self) {} }");
        assert_eq!(found(&[root, part]), ["a a::b"]);
        // As a path, and in a macro.
        for call in ["fn f(it: &A) { A::settle(it) }", "fn f(it: A) { assert!(it.settle(1)); }"] {
            let call = format!("mod b;\npub struct A;\n{call}");
            assert_eq!(found(&[("a/mod.rs", &call), part]), ["a a::b"]);
        }
        let tests = "mod b;\npub struct A;\n#[cfg(test)]\nfn f(it: A) { it.settle() }";
        assert!(found(&[("a/mod.rs", tests), part]).is_empty());
    }

    #[test]
    fn a_call_whose_name_does_not_tell_the_method_is_no_use() {
        let root = ("a/mod.rs", "mod b;\npub struct A;\nimpl A { fn f(&self) { self.settle(); } }");
        let part = ("a/b.rs", "use super::A;\nimpl A { pub fn settle(&self) {} }");
        let other = ("c.rs", "trait C { fn settle(&self); }");
        assert!(found(&[root, part, other]).is_empty(), "two files define it");
        let part = ("a/b.rs", "use super::A;\nimpl Settle for A { fn settle(&self) {} }");
        assert!(found(&[root, part]).is_empty(), "a method of a trait");
        let root = ("a/mod.rs", "mod b;\npub struct A;\nfn f(it: Vec<A>) { it.push(A); }");
        let part = ("a/b.rs", "use super::A;\nimpl A { pub fn push(&self) {} }");
        assert!(found(&[root, part]).is_empty(), "a method of the standard library");
    }

    #[test]
    fn a_name_that_a_dependency_exports_does_not_tell_the_method() {
        let source = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let links = |file: u32| format!("use crate::f{}::F;\npub struct F;\n", file + 1);
        let mut files: Vec<SourceFile> =
            (0..5).map(|file| source(&format!("crates/x/src/f{file}.rs"), &links(file))).collect();
        files.push(source("crates/x/src/f5.rs", "pub struct F;\nfn f(it: &Y) { it.settle(); }"));
        files[0].text.push_str("impl F { fn settle(&self) {} }");
        let problems = |files: &[SourceFile]| {
            let mut findings = Findings::new("tidy");
            check(files, &mut findings);
            findings.all().to_vec()
        };
        let found = problems(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/x: 6 files use each other: f0, f1"), "{found:?}");
        assert!(found[0].ends_with("\n    f5 calls settle of f0"), "{found:?}");
        let manifest = "[dependencies]\nsoftflash-y.workspace = true\n";
        files.push(source("crates/x/Cargo.toml", manifest));
        files.push(source("crates/y/src/lib.rs", "mod y;"));
        files.push(source("crates/y/src/y.rs", "impl Y { pub fn settle(&self) {} }"));
        assert_eq!(problems(&files), [""; 0]);
    }
}
