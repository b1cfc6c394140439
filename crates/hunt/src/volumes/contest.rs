//! Three volumes compete, of which one begins later than the others: while all have requests
//! waiting, the bytes of each are in proportion to its weight.

use super::client::{Ended, UNIT};
use futures_util::future::try_join_all;
use softflash_base::random::Rng;
use softflash_runtime::Event;
use softflash_volume::{Domain, Setting, Volume, VolumeError};
use std::cell::Cell;

/// The volumes, and their mapping units.
const NAMES: [&str; 3] = ["contest-0", "contest-1", "contest-2"];
const UNITS: u64 = 8;
/// Requests of each volume at once, more than the `slots` of all volumes.
const SPARE_REQUESTS: u64 = 8;
/// Requests while two compete and while three do, for each slot.
const OF_TWO: u64 = 40;
const OF_THREE: u64 = 24;

/// The state of the contest.
struct Contest {
    /// Bytes that each volume has read in this part.
    bytes: [Cell<u64>; 3],
    requests: Cell<u64>,
    slots: u64,
    /// The third volume begins.
    third: Event,
    is_over: Cell<bool>,
}

/// A volume in the contest.
struct Rival {
    place: usize,
    volume: Volume,
    weight: u64,
    request_bytes: u64,
}

/// Runs the contest on a domain with so many units; `slots` requests are under way at most.
pub(super) async fn contest(domain: &Domain, slots: u64, mut rng: Rng) -> Result<(), Ended> {
    let mut rivals = Vec::new();
    for (place, name) in NAMES.into_iter().enumerate() {
        let weight = 100 + rng.below(101);
        let request_bytes = (1 + rng.below(4)) * UNIT;
        match prepared(domain, name, weight).await {
            Ok(volume) => rivals.push(Rival { place, volume, weight, request_bytes }),
            Err(VolumeError::OutOfSpace { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if rivals.len() == NAMES.len() {
        compete(&rivals, slots).await?;
    }
    drop(rivals);
    for info in domain.list().into_iter().filter(|info| NAMES.contains(&&*info.name)) {
        domain.delete(&info.name).await?;
    }
    Ok(())
}

/// A volume with data on the flash.
async fn prepared(domain: &Domain, name: &str, weight: u64) -> Result<Volume, VolumeError> {
    let weight = Setting::Weight(u16::try_from(weight).unwrap_or(u16::MAX));
    domain.create_with(name, UNITS * UNIT, &[weight]).await?;
    let volume = domain.volume(name)?;
    volume.write(0, &vec![1; (UNITS * UNIT) as usize]).await?;
    volume.flush().await?;
    Ok(volume)
}

async fn compete(rivals: &[Rival], slots: u64) -> Result<(), Ended> {
    let contest = Contest {
        bytes: Default::default(),
        requests: Cell::new(0),
        slots,
        third: Event::new(),
        is_over: Cell::new(false),
    };
    let each = 0..slots + SPARE_REQUESTS;
    let readers =
        rivals.iter().flat_map(|rival| each.clone().map(|_| contest.read_with(rival, rivals)));
    try_join_all(readers).await.map(drop)
}

impl Contest {
    /// Reads until the contest is over.
    async fn read_with(&self, rival: &Rival, rivals: &[Rival]) -> Result<(), Ended> {
        if rival.place == NAMES.len() - 1 {
            self.third.wait().await;
        }
        let mut into = vec![0; rival.request_bytes as usize];
        while !self.is_over.get() {
            rival.volume.read(0, &mut into).await?;
            if self.is_over.get() {
                break;
            }
            self.note(rival);
            if self.third.is_set() && self.requests.get() >= OF_THREE * self.slots {
                self.is_over.set(true);
                self.judge(rivals)?;
            } else if !self.third.is_set() && self.requests.get() >= OF_TWO * self.slots {
                self.bytes.iter().for_each(|bytes| bytes.set(0));
                self.requests.set(0);
                self.third.set();
            }
        }
        Ok(())
    }

    fn note(&self, rival: &Rival) {
        self.requests.set(self.requests.get() + 1);
        if let Some(bytes) = self.bytes.get(rival.place) {
            bytes.set(bytes.get() + rival.request_bytes);
        }
    }

    /// The services of two volumes by their weights differ by at most that of the requests under
    /// way: theorem 1 of start-time fair queueing with a depth, twice for the requests that were
    /// under way at the beginning.
    fn judge(&self, rivals: &[Rival]) -> Result<(), Ended> {
        let served = |rival: &Rival| self.bytes.get(rival.place).map_or(0, Cell::get);
        let by_weight = |bytes: u64, rival: &Rival| bytes as f64 / rival.weight as f64;
        for (one, other) in rivals.iter().flat_map(|one| rivals.iter().map(move |b| (one, b))) {
            let requests =
                by_weight(one.request_bytes, one) + by_weight(other.request_bytes, other);
            let most = 2.0 * (self.slots + 1) as f64 * requests;
            let (one_served, other_served) = (served(one), served(other));
            if by_weight(one_served, one) - by_weight(other_served, other) > most {
                return Err(Ended::Wrong(format!(
                    "volumes of the weights {} and {} compete, and have read {one_served} and {other_served} bytes",
                    one.weight, other.weight
                )));
            }
        }
        Ok(())
    }
}
