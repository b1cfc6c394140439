//! Circular dependencies between the files of a crate: such files cannot be read or changed
//! independently.

use super::uses::Uses;
use crate::files::SourceFile;
use crate::findings::Findings;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of files in a cycle: a module and its closest helpers.
const LARGEST: usize = 4;

/// The files of a crate by module path; without the crate root, which only names the others.
type Modules<'a> = BTreeMap<Vec<String>, (&'a SourceFile, Uses)>;

/// Finds the cycles of each crate.
pub fn check(files: &[SourceFile], findings: &mut Findings) {
    let crates: BTreeSet<&str> =
        files.iter().filter_map(|file| Some(file.path.split_once("/src/")?.0)).collect();
    for directory in crates {
        let circles = circles(&modules(directory, files, findings));
        for circle in circles.iter().filter(|circle| circle.len() > LARGEST) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let problem = format!("{} files use each other: {}", names.len(), names.join(", "));
            findings.add(directory, problem);
        }
    }
}

fn modules<'a>(directory: &str, files: &'a [SourceFile], findings: &mut Findings) -> Modules<'a> {
    let mut modules = Modules::new();
    for file in files {
        let inside = file.path.strip_prefix(directory).and_then(|path| path.strip_prefix("/src/"));
        let Some(path) = inside.and_then(|path| path.strip_suffix(".rs")) else { continue };
        let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
        names.pop_if(|name| name == "mod");
        if names.iter().any(|name| name == "tests") || ["lib", "main"].contains(&path) {
            continue;
        }
        match Uses::of(&file.text) {
            Ok(uses) => drop(modules.insert(names, (file, uses))),
            Err(error) => findings.add(&file.path, error),
        }
    }
    modules
}

/// Groups of modules that use each other, directly or indirectly.
fn circles(modules: &Modules<'_>) -> Vec<Vec<Vec<String>>> {
    let edges: BTreeMap<&[String], BTreeSet<Vec<String>>> =
        modules.keys().map(|module| (&module[..], used_by(module, modules))).collect();
    let reached: BTreeMap<&[String], BTreeSet<Vec<String>>> =
        edges.keys().map(|module| (*module, reach(module, &edges))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        let back =
            |other: &&Vec<String>| reached.get(&other[..]).is_some_and(|r| r.contains(*module));
        let circle: Vec<Vec<String>> = others.iter().filter(back).cloned().collect();
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
fn used_by(module: &[String], modules: &Modules<'_>) -> BTreeSet<Vec<String>> {
    let Some((_, uses)) = modules.get(module) else { return BTreeSet::new() };
    let needed = uses.handed_on.iter().filter(|(_, here)| uses.words.contains(here));
    let paths = uses.paths.iter().chain(needed.map(|(path, _)| path));
    let used = paths.filter_map(|path| resolve(module, path, modules, 0));
    used.filter(|used| used != module).collect()
}

/// The module to which a path leads, followed through re-exports.
fn resolve(
    from: &[String],
    path: &[String],
    modules: &Modules<'_>,
    depth: usize,
) -> Option<Vec<String>> {
    let absolute = absolute(from, path, modules)?;
    let length =
        (1..=absolute.len()).rev().find(|length| modules.contains_key(&absolute[..*length]))?;
    let (module, rest) = absolute.split_at(length);
    let handed_on = &modules.get(module)?.1.handed_on;
    let passed = rest.first().and_then(|name| handed_on.iter().find(|(_, here)| here == name));
    match passed {
        Some((path, _)) if depth < 4 => {
            resolve(module, path, modules, depth + 1).or_else(|| Some(module.to_vec()))
        }
        _ => Some(module.to_vec()),
    }
}

/// A path relative to the crate root; none if it leaves the crate.
fn absolute(from: &[String], path: &[String], modules: &Modules<'_>) -> Option<Vec<String>> {
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
        let circles = circles(&modules("crates/x", &files, &mut findings));
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
}
