//! Every key of the files that the laboratory reads: type, unit, range, default, meaning.
//!
//! The list is made from the structures that parse the files: from their fields' types and doc
//! comments (`schemars`). So a key that parses is listed, and is described where it is defined.

mod page;
mod schema;
#[cfg(test)]
mod tests;
mod unit;

pub use page::page;
pub(crate) use schema::ONE_OF;

use crate::cell::Parameters;
use crate::experiment::Spec;
use crate::layout::Layout;
use crate::presets::Kind;
use crate::trace_workload::TraceWorkload;
use schema::Walk;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;
use softflash_drive::spec::DeviceSpec;
use softflash_workload::{BlockWorkload, FlowWorkload, KvWorkload};

/// A key of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Key {
    /// Its path, as `geometry.channels`.
    pub key: String,
    /// What its value is, in words.
    #[serde(rename = "type")]
    pub what: String,
    /// The unit of a number.
    pub unit: Option<&'static str>,
    /// The range of a number.
    pub range: Option<String>,
    /// Whether a file without it is refused.
    pub required: bool,
    /// The value that it has in a file without it, in TOML, if it has one then.
    pub default: Option<String>,
    /// Its meaning.
    pub meaning: String,
    /// Its values, if they are a list of words and tables.
    pub values: Vec<Choice>,
    /// The kind of files that have it, as `kind = "units"`; none if all have it.
    pub only_in: Option<String>,
}

/// A value of a key, of several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The value, in TOML.
    pub value: String,
    /// Its meaning.
    pub meaning: String,
}

/// All keys of a kind of file, sorted within each table.
pub fn of(kind: Kind) -> Vec<Key> {
    match kind {
        Kind::Device => keys::<DeviceSpec>("", None),
        Kind::Layout => layout(),
        Kind::Workload => {
            let block = keys::<BlockWorkload>("", Some("kind = \"block\""));
            let flows = keys::<FlowWorkload>("", Some("kind = \"flows\""));
            let trace = keys::<TraceWorkload>("", Some("kind = \"trace\""));
            let kv = keys::<KvWorkload>("", Some("kind = \"kv\""));
            [vec![kind_of_workload()], block, flows, trace, kv].concat()
        }
        Kind::Experiment => {
            let parameters = keys::<Parameters>("group.set.", None);
            [keys::<Spec>("", None), parameters].concat()
        }
    }
}

fn keys<T: JsonSchema>(prefix: &str, only_in: Option<&str>) -> Vec<Key> {
    let schema = schema_for!(T);
    let mut walk = Walk::of(&schema, only_in);
    walk.table(prefix, schema.as_value());
    walk.keys
}

/// The keys of every layout, and of each kind.
fn layout() -> Vec<Key> {
    let schema: Schema = schema_for!(Layout);
    let mut walk = Walk::of(&schema, None);
    walk.table("", schema.as_value());
    let kinds = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let (mut choices, mut all) = (Vec::new(), walk.keys);
    for kind in kinds {
        let name = kind.pointer("/properties/kind/const").and_then(Value::as_str);
        let value = format!("{:?}", name.unwrap_or_default());
        let mut walk = Walk::of(&schema, Some(&format!("kind = {value}")));
        walk.table("", kind);
        walk.keys.retain(|key| key.key != "kind");
        choices.push(Choice { value, meaning: schema::meaning(kind) });
        all.extend(walk.keys);
    }
    all.insert(0, Key { values: choices, ..key_of_kind("The kind of layout.", true) });
    all
}

fn kind_of_workload() -> Key {
    let choice = |value: &str, meaning: &str| Choice {
        value: format!("{value:?}"),
        meaning: meaning.to_owned(),
    };
    let values = vec![
        choice(
            "block",
            "Requests to a block device: unless the file has an `operation` or a `flow`.",
        ),
        choice("flows", "Several flows of them at once: if the file has a `flow`."),
        choice("trace", "Requests of a recorded trace: if the file has a `trace`."),
        choice("kv", "Requests to a key-value store: if the file has an `operation`."),
    ];
    Key { values, ..key_of_kind("The kind of clients.", false) }
}

fn key_of_kind(meaning: &str, required: bool) -> Key {
    Key {
        key: "kind".to_owned(),
        what: ONE_OF.to_owned(),
        unit: None,
        range: None,
        required,
        default: None,
        meaning: meaning.to_owned(),
        values: Vec::new(),
        only_in: None,
    }
}
