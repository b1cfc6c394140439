//! Several requests of a client at once.

use super::client::{Client, Ended, UNIT, is_refused};
use super::limits::Quota;
use super::reference::Name;
use futures_util::future::join_all;
use softflash_base::Time;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{MAPPING_UNIT_BYTES, Volume, VolumeError};

/// The most requests of a burst.
const MOST: u64 = 8;
/// Share of writes in a burst.
const WRITES: f64 = 0.6;

/// A request of a burst: a write of these data, or a read.
pub(super) struct Request {
    pub name: Name,
    pub lba: u32,
    pub count: u32,
    volume: Volume,
    pub data: Option<Vec<u8>>,
}

/// A request that has ended, with what was read.
pub(super) struct Answered {
    pub request: Request,
    pub at: Time,
    pub result: Result<Vec<u8>, VolumeError>,
}

impl Request {
    async fn answered(self, runtime: &RuntimeHandle) -> Answered {
        let offset = u64::from(self.lba) * UNIT;
        let result = match &self.data {
            Some(data) => self.volume.write(offset, data).await.map(|()| Vec::new()),
            None => {
                let mut bytes = vec![0; self.count as usize * MAPPING_UNIT_BYTES];
                self.volume.read(offset, &mut bytes).await.map(|()| bytes)
            }
        };
        Answered { request: self, at: runtime.now(), result }
    }
}

impl Client<'_> {
    /// Several reads and writes at once.
    pub(super) async fn burst(&mut self) -> Result<(), Ended> {
        let count = 2 + self.rng.below(MOST - 1);
        let mut requests = Vec::new();
        for (name, lba, count) in self.disjoint(count) {
            let writes = self.rng.chance(WRITES);
            requests.push(self.begun(name, lba, count, writes)?);
        }
        let quotas = self.quotas(requests.iter().map(|request| &request.name));
        let mut answered = at_once(requests, self.runtime).await;
        // The order in which they have ended.
        answered.sort_by_key(|answered| answered.at);
        for Answered { request, at, .. } in &answered {
            if let Some(data) = &request.data {
                self.check_pace(&request.name, data.len() as u64, *at)?;
            }
        }
        self.judge(answered, &quotas).await
    }

    /// Ranges of volumes, none of which overlaps with another.
    pub(super) fn disjoint(&mut self, most: u64) -> Vec<(Name, u32, u32)> {
        let mut ranges: Vec<(Name, u32, u32)> = Vec::new();
        for _ in 0..most {
            let Some((name, lba, count)) = self.range() else { break };
            let overlaps = |(other, first, units): &(Name, u32, u32)| {
                *other == name && lba < first + units && *first < lba + count
            };
            if !ranges.iter().any(overlaps) {
                ranges.push((name, lba, count));
            }
        }
        ranges
    }

    /// A request that is about to be made.
    pub(super) fn begun(
        &mut self,
        name: Name,
        lba: u32,
        count: u32,
        writes: bool,
    ) -> Result<Request, Ended> {
        let volume = self.domain.volume(&name.volume)?;
        let data = writes.then(|| self.new_data(&name, lba, count));
        Ok(Request { name, lba, count, volume, data })
    }

    /// Compares what was read, looks at what refused writes have left, and compares the quotas. The
    /// error of a refused write is returned at the end.
    pub(super) async fn judge(
        &mut self,
        answered: Vec<Answered>,
        quotas: &[Quota],
    ) -> Result<(), Ended> {
        let mut refusal = None;
        for Answered { request: Request { name, lba, count, data, .. }, result, .. } in answered {
            match result {
                Ok(bytes) if data.is_none() => self.compare_newest(&name, lba, &bytes)?,
                Ok(_) => {}
                Err(VolumeError::DataLoss { .. }) if self.may_lose && data.is_none() => {}
                Err(error) if is_refused(&error) => {
                    self.look_again(&name, lba, count).await?;
                    self.check_refusal(&name, &error)?;
                    refusal = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        quotas.iter().try_for_each(|quota| self.check_quota(quota))?;
        refusal.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Makes the requests at once.
pub(super) async fn at_once(requests: Vec<Request>, runtime: &RuntimeHandle) -> Vec<Answered> {
    join_all(requests.into_iter().map(|request| request.answered(runtime))).await
}
