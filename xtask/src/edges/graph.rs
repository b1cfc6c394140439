//! The dependency graph from `cargo metadata`.

use crate::Outcome;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Crates of the workspace are named by their directory (`store`), others by their package name.
pub struct Graph {
    members: BTreeMap<String, Edges>,
    /// By package id: name and dependencies, without those of tests.
    packages: BTreeMap<String, (String, Vec<String>)>,
}

/// Dependencies of a crate of the workspace.
#[derive(Debug, Default, Clone)]
pub struct Edges {
    /// Crates of the workspace, normal or build dependencies.
    pub normal: BTreeSet<String>,
    /// Crates of the workspace, for tests only.
    pub dev: BTreeSet<String>,
    /// Package ids of all dependencies, those of tests included.
    all: Vec<String>,
}

impl Graph {
    /// Parses the output of `cargo metadata`.
    pub fn from_metadata(metadata: &Value) -> Outcome<Graph> {
        let members: BTreeSet<&str> =
            list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
        let mut names = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let id = text(&package["id"])?;
            let name = match members.contains(id) {
                true => directory(text(&package["manifest_path"])?),
                false => text(&package["name"])?.to_owned(),
            };
            names.insert(id.to_owned(), name);
        }
        let mut graph = Graph { members: BTreeMap::new(), packages: BTreeMap::new() };
        for node in list(&metadata["resolve"]["nodes"]) {
            let id = text(&node["id"])?;
            let name = names.get(id).cloned().unwrap_or_default();
            let mut edges = Edges::default();
            let mut needed = Vec::new();
            for dependency in list(&node["deps"]) {
                let target = text(&dependency["pkg"])?;
                let (runs, tests) = kinds(dependency);
                edges.all.push(target.to_owned());
                if runs {
                    needed.push(target.to_owned());
                }
                if let (true, Some(name)) = (members.contains(target), names.get(target)) {
                    if runs {
                        edges.normal.insert(name.clone());
                    }
                    if tests {
                        edges.dev.insert(name.clone());
                    }
                }
            }
            if members.contains(id) {
                graph.members.insert(name.clone(), edges);
            }
            graph.packages.insert(id.to_owned(), (name, needed));
        }
        match graph.members.len() {
            0 => Err("cargo metadata lists no workspace member".to_owned()),
            _ => Ok(graph),
        }
    }

    /// The crates of the workspace.
    pub fn members(&self) -> Vec<&str> {
        self.members.keys().map(String::as_str).collect()
    }

    /// Dependencies of a crate of the workspace; `None` if there is no such crate.
    pub fn workspace_edges(&self, member: &str) -> Option<&Edges> {
        self.members.get(member)
    }

    /// Whether a crate of the workspace depends on an outside crate directly.
    pub fn uses(&self, member: &str, outside: &str) -> bool {
        self.members.get(member).is_some_and(|edges| {
            edges
                .all
                .iter()
                .any(|id| self.packages.get(id).is_some_and(|(name, _)| name == outside))
        })
    }

    /// A path from `member`, with its tests, to `outside` that passes none of `keepers`.
    pub fn way_around(
        &self,
        member: &str,
        outside: &str,
        keepers: &BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if keepers.contains(member) {
            return None;
        }
        let mut queue: VecDeque<(&str, Vec<String>)> = VecDeque::new();
        let mut seen = BTreeSet::new();
        for id in &self.members.get(member)?.all {
            queue.push_back((id, vec![member.to_owned()]));
        }
        while let Some((id, mut path)) = queue.pop_front() {
            let Some((name, needed)) = self.packages.get(id) else { continue };
            if !seen.insert(id) || (keepers.contains(name) && self.members.contains_key(name)) {
                continue;
            }
            path.push(name.clone());
            if name == outside {
                return Some(path);
            }
            queue.extend(needed.iter().map(|next| (next.as_str(), path.clone())));
        }
        None
    }
}

/// Whether a dependency is normal or for builds, and whether it is for tests.
fn kinds(dependency: &Value) -> (bool, bool) {
    let mut kinds = list(&dependency["dep_kinds"]).map(|kind| kind["kind"].as_str());
    let tests = kinds.clone().any(|kind| kind == Some("dev"));
    (kinds.any(|kind| kind != Some("dev")), tests)
}

/// The name of a manifest's directory.
fn directory(manifest: &str) -> String {
    manifest.rsplit('/').nth(1).unwrap_or(manifest).to_owned()
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> + Clone {
    value.as_array().into_iter().flatten()
}

pub(super) fn text(value: &Value) -> Outcome<&str> {
    value.as_str().ok_or_else(|| format!("cargo metadata: a string was expected, not {value}"))
}
