//! The loops of clients that are tasks of the virtual executor: closed, in batches, and open.
//!
//! The engine of drives simulates clients as events instead (`drive/host.rs`), as tasks would take
//! most of its time.

use super::quota::Quota;
use crate::cell::Control;
use crate::error::LabError;
use futures_util::future::{Either, select, try_join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use softflash_base::Time;
use softflash_runtime::RuntimeHandle;
use softflash_workload::Arrivals;
use std::iter::once;

/// The clock, the think time and the stop flag of a loop.
#[derive(Clone, Copy)]
pub struct Pace<'a> {
    /// Clock and executor.
    pub runtime: &'a RuntimeHandle,
    /// Checked for a stop.
    pub control: &'a Control<'a>,
    /// From the end of a batch to the next.
    pub think_ns: u64,
}

impl Pace<'_> {
    fn check(&self) -> Result<(), LabError> {
        if self.control.stopped() { Err(LabError::Stopped) } else { Ok(()) }
    }
}

/// A closed loop: submits a batch of up to `batch` requests, and the next batch when all of it have
/// completed. `next` returns the request of a place in the batch, until there is none left.
pub async fn closed<F>(
    pace: &Pace<'_>,
    batch: usize,
    mut next: impl FnMut(usize) -> Option<F>,
) -> Result<(), LabError>
where
    F: Future<Output = Result<(), LabError>>,
{
    while let Some(first) = next(0) {
        pace.check()?;
        let more: Vec<F> = (1..batch).map_while(&mut next).collect();
        if more.is_empty() {
            first.await?;
        } else {
            try_join_all(once(first).chain(more)).await?;
        }
        if pace.think_ns > 0 {
            pace.runtime.sleep_until(pace.runtime.now() + pace.think_ns).await;
        }
    }
    Ok(())
}

/// An open loop: submits requests at the times of `arrivals`, independent of completions, until the
/// quota is used up, and waits for their completions. Each request takes an idle client, or a new
/// one, and returns it to `idle`.
pub async fn open<C, F>(
    pace: &Pace<'_>,
    mut arrivals: Arrivals,
    mut quota: Quota,
    idle: &mut Vec<C>,
    mut make: impl FnMut(Option<C>) -> Result<F, LabError>,
) -> Result<(), LabError>
where
    F: Future<Output = Result<C, LabError>>,
{
    let begin = pace.runtime.now();
    let mut under_way = FuturesUnordered::new();
    loop {
        let at = begin + arrivals.next_at().0;
        arrival(pace, at, &mut under_way, idle).await?;
        if !quota.take(at) {
            break;
        }
        pace.check()?;
        under_way.push(make(idle.pop())?);
    }
    while let Some(ended) = under_way.next().await {
        idle.push(ended?);
    }
    Ok(())
}

/// Submits requests at their own times, until `next` has none left, and waits for their
/// completions. Times must not decrease.
pub async fn timed<F>(
    pace: &Pace<'_>,
    mut next: impl FnMut() -> Option<Result<(Time, F), LabError>>,
) -> Result<(), LabError>
where
    F: Future<Output = Result<(), LabError>>,
{
    let mut under_way = FuturesUnordered::new();
    while let Some(request) = next() {
        let (at, request) = request?;
        arrival(pace, at, &mut under_way, &mut Vec::new()).await?;
        pace.check()?;
        under_way.push(request);
    }
    while let Some(ended) = under_way.next().await {
        ended?;
    }
    Ok(())
}

/// Waits until `at`; meanwhile the requests under way go on, and return their clients to `idle`.
async fn arrival<C, F>(
    pace: &Pace<'_>,
    at: Time,
    under_way: &mut FuturesUnordered<F>,
    idle: &mut Vec<C>,
) -> Result<(), LabError>
where
    F: Future<Output = Result<C, LabError>>,
{
    let mut arrival = pace.runtime.sleep_until(at);
    while !under_way.is_empty() {
        match select(arrival, under_way.next()).await {
            Either::Left(_) => break,
            Either::Right((ended, still)) => {
                idle.extend(ended.transpose()?);
                arrival = still;
            }
        }
    }
    pace.runtime.sleep_until(at).await;
    Ok(())
}
