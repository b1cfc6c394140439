//! Workloads of a device: blocks, or keys and values.

use crate::toml_text::of_kind;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use softflash_workload::{BlockWorkload, FlowWorkload, KvWorkload, WorkloadError};
use toml::{Table, Value};

/// A workload, as a preset in TOML states it. `kind` is `block`, `flows` or `kv`; without it, a
/// workload with a `flow` has several flows, and one with an `operation` is a key-value workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Requests to a block device.
    Block(BlockWorkload),
    /// Several flows of requests to a block device at once.
    Flows(FlowWorkload),
    /// Requests to a key-value store.
    Kv(KvWorkload),
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(_) => return Err(D::Error::custom("kind: expected a text in quotes")),
            None if table.contains_key("flow") => "flows".to_owned(),
            None if table.contains_key("operation") => "kv".to_owned(),
            None => "block".to_owned(),
        };
        match kind.as_str() {
            "block" => of_kind(table).map(Workload::Block),
            "flows" => of_kind(table).map(Workload::Flows),
            "kv" => of_kind(table).map(Workload::Kv),
            _ => Err(D::Error::unknown_variant(&kind, &["block", "flows", "kv"])),
        }
    }
}

impl Workload {
    /// Checks its values.
    ///
    /// # Errors
    /// The error names the invalid value.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        match self {
            Workload::Block(workload) => workload.validate(),
            Workload::Flows(workload) => workload.validate(),
            Workload::Kv(workload) => workload.validate(),
        }
    }

    /// Requests and virtual nanoseconds of a run, if the workload limits them.
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Workload::Block(workload) => (workload.requests, workload.duration_ns),
            Workload::Flows(workload) => workload.limits(),
            Workload::Kv(workload) => (workload.requests, workload.duration_ns),
        }
    }

    /// Virtual nanoseconds of the warm-up, unless the experiment sets one.
    pub fn warm_up_ns(&self) -> u64 {
        match self {
            Workload::Flows(workload) => workload.warm_up_ns,
            Workload::Block(_) | Workload::Kv(_) => 0,
        }
    }
}
