//! Checks that the crates depend on each other exactly as `docs/dependencies.md` says.
//!
//! Two tables there are checked: which crate may use which crate of the workspace, in both
//! directions (an edge that is not listed fails, and so does a listed edge that does not exist),
//! and which crates may use certain outside crates (`tokio`, `io-uring` ...), even indirectly.
//! Every dependency in a manifest must be named by a source.

mod graph;
mod table;
#[cfg(test)]
mod tests;
mod unused;

use crate::Outcome;
use crate::findings::Findings;
use crate::run::{metadata, root};
use graph::Graph;
use std::collections::BTreeSet;
use std::fs;
use table::Rule;

/// The document with the tables.
const DOCUMENT: &str = "docs/dependencies.md";

/// Compares the tables of the document with the workspace.
pub fn check() -> Outcome<Findings> {
    let text = fs::read_to_string(root().join(DOCUMENT))
        .map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let metadata = metadata(&["--all-features"])?;
    let graph = Graph::from_metadata(&metadata)?;
    let mut findings = Findings::new("edges");
    unused::check(&metadata, &mut findings)?;
    let edges = table::rules(&text, "edges")?;
    let known = table::rules(&text, "known-only-to")?;
    compare_edges(&edges, &graph, &mut findings);
    check_outside(&known, &graph, &mut findings);
    findings.looked_at(format!(
        "{} crates, {} outside crates with a keeper",
        graph.members().len(),
        known.len()
    ));
    Ok(findings)
}

/// In both directions: listed edges and existing ones.
fn compare_edges(rules: &[Rule], graph: &Graph, findings: &mut Findings) {
    let written: BTreeSet<&str> = rules.iter().map(|rule| rule.subject.as_str()).collect();
    for member in graph.members() {
        if !written.contains(member) {
            findings.add(DOCUMENT, format!("crate `{member}` has no row in the table of edges"));
        }
    }
    for rule in rules {
        let Some(actual) = graph.workspace_edges(&rule.subject) else {
            findings.add(DOCUMENT, format!("there is no crate `{}`", rule.subject));
            continue;
        };
        let columns =
            [("", rule.column(0), &actual.normal), (" (tests)", rule.column(1), &actual.dev)];
        for (kind, written, actual) in columns {
            for target in actual.difference(&written) {
                findings.add(
                    DOCUMENT,
                    format!("`{}` uses `{target}`{kind}, which no edge allows", rule.subject),
                );
            }
            for target in written.difference(actual) {
                findings.add(
                    DOCUMENT,
                    format!("the edge from `{}` to `{target}`{kind} does not exist", rule.subject),
                );
            }
        }
    }
}

/// An outside crate is reached only through the crates that may use it.
fn check_outside(rules: &[Rule], graph: &Graph, findings: &mut Findings) {
    for rule in rules {
        let keepers = rule.column(0);
        for member in graph.members() {
            if let Some(path) = graph.way_around(member, &rule.subject, &keepers) {
                findings.add(
                    DOCUMENT,
                    format!(
                        "`{}` must not be used by `{member}`: {}",
                        rule.subject,
                        path.join(" -> ")
                    ),
                );
            }
        }
        for keeper in &keepers {
            if !graph.uses(keeper, &rule.subject) {
                findings
                    .add(DOCUMENT, format!("`{keeper}` may use `{}` and does not", rule.subject));
            }
        }
    }
}
