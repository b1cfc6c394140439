//! The limits of a volume: requests wait for the token buckets, in the order of their arrival.

use crate::core::Core;
use crate::error::VolumeError;
use crate::tenant::{Limit, Tenant};
use futures_util::future::{Either, select};
use softflash_base::planted::{self, Bug};
use softflash_runtime::Event;
use std::pin::pin;

/// Returns when a request of so many bytes may begin; fails if it waits once it is `given_up`.
pub(crate) async fn wait(
    core: &Core,
    tenant: &Tenant,
    bytes: u64,
    given_up: Option<&Event>,
) -> Result<(), VolumeError> {
    if !tenant.is_limited() || planted::bug(Bug::LimitsIgnored) {
        return Ok(());
    }
    let Some(given_up) = given_up else { return wait_for_turn(core, tenant, bytes).await };
    match select(pin!(wait_for_turn(core, tenant, bytes)), pin!(given_up.wait())).await {
        Either::Left((begins, _)) => begins,
        Either::Right(_) => Err(VolumeError::Stopped),
    }
}

async fn wait_for_turn(core: &Core, tenant: &Tenant, bytes: u64) -> Result<(), VolumeError> {
    let _turn = tenant.turn.acquire(1).await;
    let mut has_waited = false;
    loop {
        core.tasks.check_running()?;
        let (now, (limit, ready)) = (core.tasks.now(), tenant.ready_at());
        if ready <= now {
            tenant.take(now, bytes);
            return Ok(());
        }
        if !std::mem::replace(&mut has_waited, true) {
            tenant.count(|counters| match limit {
                Limit::Iops => counters.iops_waits += 1,
                Limit::Bandwidth => counters.bandwidth_waits += 1,
            });
        }
        select(core.tasks.sleep_until(ready), pin!(tenant.changed.notified())).await;
    }
}
