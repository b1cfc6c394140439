//! Writes that wait for a low limit, which is lifted meanwhile: they begin at once.

use super::burst::at_once;
use super::client::{Client, Ended};
use super::reference::Pending;
use futures_util::future::join;
use softflash_volume::{Setting, VolumeError};
use std::time::Duration;

/// The writes of a burst.
const MOST_WRITES: u64 = 4;
/// The limit is lifted after 2^10 to 2^25 ns.
const LONGEST_WAIT: u64 = 25;
/// The longest time that the writes may take without a limit, on flash without slow operations;
/// with the limit they take seconds.
const PATIENCE: Duration = Duration::from_secs(1);

impl Client<'_> {
    /// Sets a low limit, writes, and lifts the limit.
    pub(super) async fn lift(&mut self) -> Result<(), Ended> {
        let volumes = self.reference.borrow().volumes();
        let Some(name) = self.one(volumes) else { return Ok(()) };
        let low = match self.rng.below(2) {
            0 => Setting::Iops(Some(1)),
            _ => Setting::Bandwidth(Some(4096)),
        };
        self.change(&name, &[low]).await?;
        let count = 2 + self.rng.below(MOST_WRITES);
        let mut requests = Vec::new();
        for (of, lba, count) in self.disjoint(2 * count) {
            if of == name {
                requests.push(self.begun(of, lba, count, true)?);
            }
        }
        let quotas = self.quotas([&name].into_iter());
        let lifted = [Setting::Iops(None), Setting::Bandwidth(None)];
        let after = self.settings_after(&name, &lifted);
        self.reference.borrow_mut().pending = Some(Pending::Sets(name.clone(), after));
        let wait = Duration::from_nanos(1 << (10 + self.rng.below(LONGEST_WAIT - 9)));
        let (domain, runtime) = (self.domain, self.runtime);
        let lift = async {
            runtime.sleep_until(runtime.now() + wait).await;
            let result = domain.set(&name.volume, &lifted).await;
            (result, runtime.now())
        };
        let (answered, (result, lifted_at)) = join(at_once(requests, runtime), lift).await;
        result?;
        // The writes were under way: nothing is known to be durable.
        self.reference.borrow_mut().complete();
        self.paces.restart(&name, runtime.now());
        let is_full = |error: &VolumeError| matches!(error, VolumeError::OutOfSpace { .. });
        let full = answered.iter().any(|answered| answered.result.as_ref().is_err_and(is_full));
        let last = answered.iter().map(|answered| answered.at).max();
        let late = last.map(|last| Duration::from_nanos(last.since_ns(lifted_at)));
        let patience = PATIENCE.mul_f64(self.slowdown);
        if let Some(late) = late.filter(|late| *late > patience && !full && !self.full) {
            return Err(Ended::Wrong(format!(
                "a write of {name:?} ended {late:?} after its limit was lifted"
            )));
        }
        self.judge(answered, &quotas).await
    }
}
