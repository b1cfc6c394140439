//! Closed and open loops.

use super::arrivals::{ArrivalPattern, Arrivals, MAX_RATE};
use crate::error::{Problem, WorkloadError, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// The most outstanding requests of a closed loop.
pub(crate) const MAX_OUTSTANDING: u64 = 1 << 24;

/// When requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Clients that wait for their requests: the device sets the pace.
    Closed {
        /// Clients, alike and independent of each other.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 16777216))]
        threads: u32,
        /// Requests, or batches, that each of them keeps outstanding.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 16777216))]
        queue_depth: u32,
        /// Requests that are made together; if absent, each is made alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 16777216))]
        batch: Option<u32>,
        /// A batch is followed by the next when the whole batch has completed; otherwise each
        /// completed request is followed by another at once.
        #[serde(default)]
        barrier: bool,
        /// From the end of a request (of a batch, with a barrier) to the next, in nanoseconds.
        #[serde(default)]
        think_ns: u64,
    },
    /// Requests arrive at given times, whether the device keeps up or not.
    Open {
        /// The mean number of requests per second.
        #[schemars(range(min = 0.0, max = 1e9))]
        requests_per_second: f64,
        /// Their distribution over time.
        #[serde(default)]
        arrivals: ArrivalPattern,
    },
}

fn one() -> u32 {
    1
}

impl Default for Load {
    fn default() -> Load {
        Load::closed(1, 1)
    }
}

impl Load {
    /// A closed loop of single requests.
    pub fn closed(threads: u32, queue_depth: u32) -> Load {
        Load::Closed { threads, queue_depth, batch: None, barrier: false, think_ns: 0 }
    }

    /// Requests that a closed loop keeps outstanding; `None` for an open one, which has no bound.
    pub fn outstanding(&self) -> Option<u64> {
        match *self {
            Load::Closed { threads, queue_depth, batch, .. } => Some(
                u64::from(threads)
                    .saturating_mul(queue_depth.into())
                    .saturating_mul(batch.unwrap_or(1).into()),
            ),
            Load::Open { .. } => None,
        }
    }

    /// The arrivals of an open loop; `None` for a closed one.
    pub fn arrivals(&self, rng: Rng) -> Option<Arrivals> {
        match *self {
            Load::Open { requests_per_second, arrivals } => {
                Some(Arrivals::new(arrivals, requests_per_second, rng))
            }
            Load::Closed { .. } => None,
        }
    }

    /// Checks the values of the load of a workload.
    ///
    /// # Errors
    /// The error names the workload and the invalid value.
    pub fn validate_of(&self, workload: &str) -> Result<(), WorkloadError> {
        self.validate().map_err(|problem| problem.of(workload))
    }

    pub(crate) fn validate(&self) -> Result<(), Problem> {
        match *self {
            Load::Closed { threads, queue_depth, batch, .. } => {
                count("load.closed.threads", threads.into(), MAX_OUTSTANDING)?;
                count("load.closed.queue_depth", queue_depth.into(), MAX_OUTSTANDING)?;
                let batch = batch.unwrap_or(1);
                count("load.closed.batch", batch.into(), MAX_OUTSTANDING)?;
                let outstanding = self.outstanding().unwrap_or(0);
                count("threads × queue_depth × batch of load.closed", outstanding, MAX_OUTSTANDING)
            }
            Load::Open { requests_per_second: value, arrivals } => {
                if !(value > 0.0 && value <= MAX_RATE) {
                    return Err(Problem::Rate { field: "load.open.requests_per_second", value });
                }
                arrivals.validate()
            }
        }
    }
}
