//! A workload of several flows, as in a TOML preset.

use super::split::{Own, Split};
use crate::block::{Begin, BlockSource, BlockWorkload};
use crate::error::{Problem, WorkloadError, count};
use crate::load::MAX_OUTSTANDING;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use softflash_base::random::Rng;
use std::collections::BTreeSet;
use std::fmt;

/// The most flows of a workload, with their copies.
const MAX_FLOWS: u64 = 1024;

/// Several flows of requests to one device at once, each with its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowWorkload {
    /// The preset's name.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub title: String,
    /// The number of requests of a run, of all flows, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The duration of a run in virtual nanoseconds, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Virtual time before the measured part, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_ns: u64,
    /// The flows.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
}

/// One of several flows: the requests of a block workload. Its `requests`, `passes` and
/// `duration_ns` are limits of the flow, of each copy: it ends there, while the others go on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// Flows that are alike, each with requests, limits and caps of its own; the figures are those
    /// of all together.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 1024), extend("default" = 1))]
    pub copies: u32,
    /// Each copy begins so many bytes behind the one before.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(extend("default" = 0))]
    pub copy_offset_bytes: u64,
    /// From the beginning of the run, or of its warm-up, to the first request, in nanoseconds; with
    /// `after_previous` in this flow or one before it, from the end of the flows before.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(extend("default" = 0))]
    pub start_ns: u64,
    /// Ends after as many bytes as so many times its span, of each copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Whether it begins when all flows before it in the file have ended, as do those behind it.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub after_previous: bool,
    /// Its requests; the name is that of the flow.
    #[serde(flatten)]
    pub workload: BlockWorkload,
}

impl<'de> Deserialize<'de> for Flow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flow, D::Error> {
        deserializer.deserialize_map(FlowVisitor)
    }
}

struct FlowVisitor;

impl<'de> Visitor<'de> for FlowVisitor {
    type Value = Flow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of a flow")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Flow, A::Error> {
        let mut own = Own::default();
        let rest = MapAccessDeserializer::new(Split { entries, own: &mut own });
        let workload = BlockWorkload::deserialize(rest)?;
        Ok(Flow {
            copies: own.copies.unwrap_or(1),
            copy_offset_bytes: own.copy_offset_bytes.unwrap_or(0),
            start_ns: own.start_ns.unwrap_or(0),
            passes: own.passes,
            after_previous: own.after_previous.unwrap_or(false),
            workload,
        })
    }
}

impl From<BlockWorkload> for Flow {
    fn from(workload: BlockWorkload) -> Flow {
        Flow {
            copies: 1,
            copy_offset_bytes: 0,
            start_ns: 0,
            passes: None,
            after_previous: false,
            workload,
        }
    }
}

impl Flow {
    /// The name of the flow.
    pub fn name(&self) -> &str {
        &self.workload.name
    }

    /// The random numbers of one of its copies: those of a flow do not depend on the others.
    pub fn rng(&self, run: &Rng, copy: u32) -> Rng {
        run.fork("flow").fork(self.name()).fork(copy.to_le_bytes())
    }

    /// The requests of one of its copies, as a workload of their own, on a device of
    /// `capacity_bytes`.
    ///
    /// # Errors
    /// A copy that begins beyond the capacity is an error.
    pub fn copy(&self, copy: u32, capacity_bytes: u64) -> Result<BlockWorkload, WorkloadError> {
        let offset_bytes = self.copy_offset_bytes.saturating_mul(copy.into());
        if offset_bytes == 0 {
            return Ok(self.workload.clone());
        }
        let align_bytes = self.workload.largest_align_bytes();
        let first = self.workload.begin.of(capacity_bytes, align_bytes);
        let first_bytes = first.map_err(|problem| problem.of(self.name()))?;
        let begin = Begin::Bytes(first_bytes.saturating_add(offset_bytes));
        Ok(BlockWorkload { begin, ..self.workload.clone() })
    }

    /// The requests after which it ends on a device of `capacity_bytes`; `None` without such a
    /// limit.
    pub fn most_requests(&self, capacity_bytes: u64) -> Result<Option<u64>, WorkloadError> {
        let of_passes = match self.passes {
            None => None,
            Some(passes) => {
                let span = self.workload.span_bytes(capacity_bytes);
                let span_bytes = span.map_err(|problem| problem.of(self.name()))?;
                let bytes = u64::from(passes).saturating_mul(span_bytes) as f64;
                Some((bytes / self.workload.mean_bytes()).ceil() as u64)
            }
        };
        Ok(self.workload.requests.into_iter().chain(of_passes).min())
    }

    /// Whether it has a limit.
    fn ends(&self) -> bool {
        let BlockWorkload { requests, duration_ns, .. } = &self.workload;
        requests.is_some() || duration_ns.is_some() || self.passes.is_some()
    }

    /// The writes and trims of one of its copies alone, those of its threads that only write among
    /// them; `None` if it reads only.
    pub(super) fn writes_of_copy(
        &self,
        copy: u32,
        capacity_bytes: u64,
        rng: &Rng,
        names: &WriteSeeds<'_>,
    ) -> Result<Option<BlockSource>, WorkloadError> {
        let workload = self.copy(copy, capacity_bytes)?;
        let (writing, name) = match workload.of_writers() {
            Some(writers) if workload.read_fraction == 1.0 => (writers, names.writers),
            _ => (workload, names.accesses),
        };
        if !writing.writes() && writing.trim_fraction == 0.0 {
            return Ok(None);
        }
        let trims = writing.trims_of_writes();
        let source = writing.source(capacity_bytes, rng.fork(name))?;
        Ok(Some(source.without_reads(trims, rng.fork(names.settling))))
    }

    fn problem(&self) -> Result<(), Problem> {
        self.passes.map_or(Ok(()), |passes| count("passes", passes.into(), u32::MAX.into()))?;
        count("copies", self.copies.into(), MAX_FLOWS)?;
        self.workload.problem()
    }
}

/// The names of a run's random numbers of requests, of threads that only write, and of settling.
#[derive(Debug, Clone, Copy)]
pub struct WriteSeeds<'a> {
    /// Of the requests.
    pub accesses: &'a str,
    /// Of the threads that only write.
    pub writers: &'a str,
    /// Of settling.
    pub settling: &'a str,
}

impl FlowWorkload {
    /// A workload of these flows, without limits of its own.
    pub fn new(name: impl Into<String>, flows: Vec<Flow>) -> FlowWorkload {
        FlowWorkload {
            name: name.into(),
            title: String::new(),
            requests: None,
            duration_ns: None,
            warm_up_ns: 0,
            flows,
        }
    }

    /// Checks that the workload is valid on a device that is large enough.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        self.problem().map_err(|problem| problem.of(&self.name))
    }

    fn problem(&self) -> Result<(), Problem> {
        if self.flows.is_empty() {
            return Err(Problem::NoFlows);
        }
        let mut names = BTreeSet::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let name = flow.name();
            if name.is_empty() {
                return Err(Problem::Unnamed { number: index + 1 });
            }
            if !names.insert(name) {
                return Err(Problem::SameName { name: name.to_owned() });
            }
            flow.problem().map_err(|problem| Problem::OfFlow {
                flow: name.to_owned(),
                problem: Box::new(problem),
            })?;
        }
        if let Some(flow) = self.endless() {
            return Err(Problem::Endless { flow: flow.name().to_owned() });
        }
        let sum = |of: fn(&Flow) -> u64| -> u64 {
            let each = self.flows.iter().map(|flow| of(flow).saturating_mul(flow.copies.into()));
            each.fold(0, u64::saturating_add)
        };
        count("flows with their copies", sum(|_| 1), MAX_FLOWS)?;
        let outstanding = sum(|flow| {
            let of_load = flow.workload.load.outstanding().unwrap_or(1);
            of_load.saturating_add(flow.workload.writers.into())
        });
        count("requests that all flows keep outstanding", outstanding, MAX_OUTSTANDING)
    }

    /// Requests and virtual nanoseconds of a run, if the workload limits them: its own, or else
    /// those after which every flow has ended. `u64::MAX` requests stand for a run that ends by
    /// itself.
    pub fn limits(&self) -> (Option<u64>, Option<u64>) {
        let flows = || self.flows.iter().map(|flow| &flow.workload);
        let all_end = self.flows.iter().all(Flow::ends);
        let in_phases = self.flows.iter().any(|flow| flow.after_previous);
        match (self.requests, self.duration_ns) {
            (None, None) if in_phases && all_end => (Some(u64::MAX), None),
            (None, None) if flows().all(|flow| flow.duration_ns.is_some()) => {
                (None, flows().filter_map(|flow| flow.duration_ns).max())
            }
            (None, None) if flows().all(|flow| flow.requests.is_some()) => {
                let of = |flow: &Flow| {
                    let requests = flow.workload.requests.unwrap_or(0);
                    requests.saturating_mul(flow.copies.into())
                };
                (Some(self.flows.iter().map(of).fold(0, u64::saturating_add)), None)
            }
            (None, None) if all_end => (Some(u64::MAX), None),
            own => own,
        }
    }

    /// The phase of each flow: those of a phase run at once, and begin when all of the phases
    /// before have ended.
    pub fn phases(&self) -> impl Iterator<Item = usize> {
        self.flows.iter().scan(0, |phase, flow| {
            *phase += usize::from(flow.after_previous);
            Some(*phase)
        })
    }

    /// A flow that never ends, though others wait for its end.
    fn endless(&self) -> Option<&Flow> {
        let last = self.phases().last()?;
        let mut flows = self.flows.iter().zip(self.phases());
        flows.find(|(flow, phase)| *phase < last && !flow.ends()).map(|(flow, _)| flow)
    }

    /// Whether any flow writes.
    pub fn writes(&self) -> bool {
        self.flows.iter().any(|flow| flow.workload.writes())
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_one(number: &u32) -> bool {
    *number == 1
}
