//! Workloads of a device: blocks, recorded traces, or keys and values.

use crate::presets;
use crate::toml_text::of_kind;
use crate::trace_workload::TraceWorkload;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use softflash_workload::{BlockWorkload, FlowWorkload, KvWorkload, WorkloadError};
use std::path::Path;
use toml::{Table, Value};

/// A workload, as a preset in TOML states it. `kind` is `block`, `flows`, `trace` or `kv`; without
/// it, a workload with a `flow` has several flows, one with a `trace` repeats that, and one with an
/// `operation` is a key-value workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Requests to a block device.
    Block(BlockWorkload),
    /// Several flows of requests to a block device at once.
    Flows(FlowWorkload),
    /// Requests of a trace to a block device.
    Trace(TraceWorkload),
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
            None if table.contains_key("trace") => "trace".to_owned(),
            None if table.contains_key("operation") => "kv".to_owned(),
            None => "block".to_owned(),
        };
        match kind.as_str() {
            "block" => of_kind(table).map(Workload::Block),
            "flows" => of_kind(table).map(Workload::Flows),
            "trace" => of_kind(table).map(Workload::Trace),
            "kv" => of_kind(table).map(Workload::Kv),
            _ => Err(D::Error::unknown_variant(&kind, &["block", "flows", "trace", "kv"])),
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
            Workload::Trace(workload) => workload.validate(),
            Workload::Kv(workload) => workload.validate(),
        }
    }

    /// Requests and virtual nanoseconds of a run, if the workload limits them.
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        match self {
            Workload::Block(workload) => (workload.requests, workload.duration_ns),
            Workload::Flows(workload) => workload.limits(),
            Workload::Trace(workload) => (workload.requests, workload.duration_ns),
            Workload::Kv(workload) => (workload.requests, workload.duration_ns),
        }
    }

    /// Virtual nanoseconds of the warm-up, unless the experiment sets one.
    pub fn warm_up_ns(&self) -> u64 {
        match self {
            Workload::Flows(workload) => workload.warm_up_ns,
            Workload::Block(_) | Workload::Trace(_) | Workload::Kv(_) => 0,
        }
    }

    /// The same with the path of its trace, if it has one, seen from a directory.
    pub(crate) fn seen_from(self, directory: &Path) -> Workload {
        match self {
            Workload::Trace(workload) => {
                let trace = presets::seen_from(directory, &workload.trace);
                Workload::Trace(TraceWorkload { trace, ..workload })
            }
            other => other,
        }
    }
}
