//! The writes of several flows as one sequence.

use super::spec::{FlowWorkload, WriteSeeds};
use crate::access::Access;
use crate::block::{BlockSource, Scatter};
use crate::error::WorkloadError;
use softflash_base::random::Rng;
use std::ops::Range;

/// The writes and trims of all flows, each flow as often as its weight says: what settles a device
/// into their common steady state.
#[derive(Debug, Clone)]
pub struct Mix {
    rng: Rng,
    /// The writes of each copy of a flow, with the sum of the weights up to and including it.
    parts: Vec<(f64, BlockSource)>,
}

impl FlowWorkload {
    /// The writes and trims of the flows, by a weight for each flow, of a run with the random
    /// numbers `run`; `None` if no flow of a weight above 0 writes.
    pub fn writes_by_weight(
        &self,
        weights: &[f64],
        capacity_bytes: u64,
        run: &Rng,
        names: &WriteSeeds<'_>,
    ) -> Result<Option<Mix>, WorkloadError> {
        let (mut sum, mut parts) = (0.0, Vec::new());
        for (flow, weight) in self.flows.iter().zip(weights) {
            for copy in 0..flow.copies {
                let rng = flow.rng(run, copy);
                let writes = flow.writes_of_copy(copy, capacity_bytes, &rng, names)?;
                if let Some(source) = writes.filter(|_| *weight > 0.0) {
                    sum += weight / f64::from(flow.copies);
                    parts.push((sum, source));
                }
            }
        }
        let rng = run.fork("flow").fork(names.settling);
        Ok((!parts.is_empty()).then_some(Mix { rng, parts }))
    }
}

impl Mix {
    /// As [`BlockSource::by_rank`]; also `None` if several flows write a span over which the places
    /// of one of them are scattered.
    pub fn by_rank(self) -> Option<(Mix, Scatter)> {
        let spans: Vec<Range<u64>> = self.parts.iter().map(|(_, source)| source.span()).collect();
        let overlap = |number: usize| {
            let others = spans.iter().enumerate().filter(|(other, _)| *other != number);
            let span = &spans[number];
            others
                .map(|(_, other)| other)
                .any(|other| other.start < span.end && span.start < other.end)
        };
        let (mut parts, mut scatter) = (Vec::with_capacity(spans.len()), Scatter::default());
        for (number, (sum, source)) in self.parts.into_iter().enumerate() {
            let (by_rank, scattered) = source.by_rank()?;
            if !scattered.is_empty() && overlap(number) {
                return None;
            }
            parts.push((sum, by_rank));
            scatter.add(scattered);
        }
        Some((Mix { parts, ..self }, scatter))
    }

    /// The same requests, drawn from another generator. The popular places stay the same.
    #[must_use]
    pub fn with_rng(self, rng: &Rng) -> Mix {
        let parts = self.parts.into_iter().zip(0_u64..);
        let redrawn = |((sum, source), number): ((f64, BlockSource), u64)| {
            (sum, source.with_rng(rng.fork(number.to_le_bytes())))
        };
        Mix { parts: parts.map(redrawn).collect(), rng: rng.fork("flow") }
    }

    /// The longest write, in bytes.
    pub fn longest_write_bytes(&self) -> u32 {
        self.parts.iter().map(|(_, source)| source.longest_write_bytes()).max().unwrap_or(0)
    }

    /// The next write or trim.
    #[expect(clippy::should_implement_trait, reason = "an iterator may end, this does not")]
    pub fn next(&mut self) -> Access {
        let all = self.parts.last().map_or(0.0, |(sum, _)| *sum);
        let drawn = self.rng.unit_f64() * all;
        let found = self.parts.partition_point(|(sum, _)| *sum <= drawn);
        let last = self.parts.len() - 1;
        self.parts[found.min(last)].1.next()
    }
}
