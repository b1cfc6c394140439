//! An open loop: requests come at times of their own, whether others have ended or not.

use super::clients::{Client, Phase};
use super::tally::Quota;
use crate::error::LabError;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use softflash_workload::Arrivals;

/// Makes requests until the quota is used up, and waits for their ends. Each request takes a client that has none, or
/// a new one.
pub async fn work(
    phase: &Phase<'_>,
    mut arrivals: Arrivals,
    mut quota: Quota,
    idle: &mut Vec<Client>,
    mut new_client: impl FnMut() -> Result<Client, LabError>,
) -> Result<(), LabError> {
    let bed = phase.bed;
    let begin = bed.now();
    let mut under_way = FuturesUnordered::new();
    loop {
        let at = begin + arrivals.next_at().0;
        let mut arrival = bed.runtime.sleep_until(at);
        while !under_way.is_empty() {
            match select(arrival, under_way.next()).await {
                Either::Left(_) => break,
                Either::Right((ended, still)) => {
                    idle.extend(ended.transpose()?);
                    arrival = still;
                }
            }
        }
        bed.runtime.sleep_until(at).await;
        if !quota.take(at) {
            break;
        }
        if phase.control.stopped() {
            return Err(LabError::Stopped);
        }
        let mut client = idle.pop().map_or_else(&mut new_client, Ok)?;
        under_way.push(async move {
            client.request(phase, quota.until).await?;
            Ok::<Client, LabError>(client)
        });
    }
    while let Some(ended) = under_way.next().await {
        idle.push(ended?);
    }
    Ok(())
}
