use super::*;
use serde_json::{Value, json};

const DOCUMENT_TEXT: &str = "\
before
<!-- edges:begin -->
| crate | may use | its tests also |
|---|---|---|
| `low` | nothing | |
| `high` | `low` | `help` |
| `help` | `low` | |
<!-- edges:end -->
<!-- known-only-to:begin -->
| outside crate | known to |
|---|---|
| `net` | `high` |
<!-- known-only-to:end -->
";

fn package(name: &str) -> Value {
    json!({"id": name, "name": format!("project-{name}"), "manifest_path": format!("/x/crates/{name}/Cargo.toml")})
}

fn node(name: &str, uses: &[(&str, Option<&str>)]) -> Value {
    let deps: Vec<Value> = uses
        .iter()
        .map(|(target, kind)| json!({"pkg": target, "dep_kinds": [{"kind": kind}]}))
        .collect();
    json!({"id": name, "deps": deps})
}

/// `low`, `help` and `high` in the workspace; `net` and `wrap`, which uses it, outside.
fn workspace(low: &[(&str, Option<&str>)], high: &[(&str, Option<&str>)]) -> Graph {
    let outside = |name: &str| json!({"id": name, "name": name, "manifest_path": "/y/Cargo.toml"});
    let metadata = json!({
        "workspace_members": ["low", "help", "high"],
        "packages": [package("low"), package("help"), package("high"), outside("net"), outside("wrap")],
        "resolve": {"nodes": [
            node("low", low), node("help", &[("low", None)]), node("high", high),
            node("net", &[]), node("wrap", &[("net", None)]),
        ]},
    });
    Graph::from_metadata(&metadata).unwrap()
}

fn findings(graph: &Graph) -> Vec<String> {
    let mut findings = Findings::new("edges");
    compare_edges(&table::rules(DOCUMENT_TEXT, "edges").unwrap(), graph, &mut findings);
    check_outside(&table::rules(DOCUMENT_TEXT, "known-only-to").unwrap(), graph, &mut findings);
    findings.all().to_vec()
}

const HIGH: [(&str, Option<&str>); 3] = [("low", None), ("help", Some("dev")), ("net", None)];

#[test]
fn a_workspace_as_written_passes() {
    assert_eq!(findings(&workspace(&[], &HIGH)), [""; 0]);
}

#[test]
fn an_edge_that_is_not_written_fails() {
    let found = findings(&workspace(&[("help", Some("dev"))], &HIGH));
    assert_eq!(found, ["docs/dependencies.md: `low` uses `help` (tests), which no edge allows"]);
}

#[test]
fn a_written_edge_that_does_not_exist_fails() {
    let found = findings(&workspace(&[], &[("low", None), ("net", None)]));
    assert_eq!(
        found,
        ["docs/dependencies.md: the edge from `high` to `help` (tests) does not exist"]
    );
}

#[test]
fn an_outside_crate_is_found_through_other_outside_crates() {
    let found = findings(&workspace(&[("wrap", None)], &HIGH));
    assert_eq!(
        found,
        [
            "docs/dependencies.md: `net` must not be used by `help`: help -> low -> wrap -> net",
            "docs/dependencies.md: `net` must not be used by `low`: low -> wrap -> net",
        ]
    );
}

#[test]
fn a_keeper_that_keeps_nothing_fails() {
    let found = findings(&workspace(&[], &[("low", None), ("help", Some("dev"))]));
    assert_eq!(found, ["docs/dependencies.md: `high` may use `net` and does not"]);
}

#[test]
fn a_document_without_its_table_is_an_error() {
    assert!(table::rules("no table", "edges").is_err());
    assert!(table::rules("<!-- edges:begin -->\n<!-- edges:end -->", "edges").is_err());
}
