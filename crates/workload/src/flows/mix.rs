//! The writes of several flows as one sequence.

use super::spec::{FlowWorkload, WriteSeeds};
use crate::access::Access;
use crate::block::BlockSource;
use crate::error::WorkloadError;
use softflash_base::random::Rng;

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
