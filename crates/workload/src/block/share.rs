//! The share of one drive in the workload of a cluster.

use super::spec::BlockWorkload;
use crate::error::{Problem, WorkloadError, count};
use crate::load::{Load, MAX_OUTSTANDING, RateCaps};

impl BlockWorkload {
    /// The workload of one of `drives` drives that share this one evenly: an equal part of the
    /// threads, the arrivals, the caps and the requests, each on a capacity of its own.
    ///
    /// # Errors
    /// A number that is no multiple of `drives` is an error, as the parts would differ.
    pub fn share(&self, drives: u32) -> Result<BlockWorkload, WorkloadError> {
        self.part(drives).map_err(|problem| problem.of(&self.name))
    }

    fn part(&self, drives: u32) -> Result<BlockWorkload, Problem> {
        count("drives", drives.into(), MAX_OUTSTANDING)?;
        let even = |field, value: u64| match value.is_multiple_of(drives.into()) {
            true => Ok(value / u64::from(drives)),
            false => Err(Problem::Uneven { field, value, drives }),
        };
        // The part of a number of 32 bits has no more.
        let threads = |field, value: u32| even(field, value.into()).map(|part| part as u32);
        let load = match self.load {
            Load::Closed { threads: all, queue_depth, batch, barrier, think_ns } => {
                let threads = threads("load.closed.threads", all)?;
                Load::Closed { threads, queue_depth, batch, barrier, think_ns }
            }
            Load::Open { requests_per_second, arrivals } => Load::Open {
                requests_per_second: requests_per_second / f64::from(drives),
                arrivals,
            },
        };
        let caps = self.rate_caps;
        let cap = |field, cap: Option<u64>| cap.map(|cap| even(field, cap)).transpose();
        let rate_caps = RateCaps {
            read_bytes_per_second: cap(
                "rate_caps.read_bytes_per_second",
                caps.read_bytes_per_second,
            )?,
            write_bytes_per_second: cap(
                "rate_caps.write_bytes_per_second",
                caps.write_bytes_per_second,
            )?,
            burst_bytes: caps.burst_bytes / u64::from(drives),
        };
        let requests = self.requests.map(|all| all.div_ceil(drives.into()));
        let writers = threads("writers", self.writers)?;
        Ok(BlockWorkload { load, writers, rate_caps, requests, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Pattern, RequestSize};

    fn workload() -> BlockWorkload {
        let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), Pattern::Random);
        (workload.load, workload.writers) = (Load::closed(44, 2), 11);
        workload.rate_caps.write_bytes_per_second = Some(44_000_000);
        workload.requests = Some(100);
        workload
    }

    #[test]
    fn a_drive_has_its_part_of_threads_caps_and_requests() {
        let part = workload().share(11).unwrap();
        assert_eq!((part.load, part.writers), (Load::closed(4, 2), 1));
        assert_eq!(part.rate_caps.write_bytes_per_second, Some(4_000_000));
        assert_eq!((part.requests, part.pattern), (Some(10), workload().pattern));
        assert_eq!(workload().share(1).unwrap(), workload());
    }

    #[test]
    fn what_cannot_be_shared_evenly_is_named_with_the_remedy() {
        let error = |drives| workload().share(drives).unwrap_err().to_string();
        assert!(error(0).contains("drives is 0"), "{}", error(0));
        let wanted = "load.closed.threads = 44 cannot be shared evenly by 3 drives; take a multiple of 3, such as 45";
        assert!(error(3).contains(wanted), "{}", error(3));
        assert!(error(4).contains("writers = 11"), "{}", error(4));
    }
}
