//! Power cuts at random times: what was flushed is there, and of what was not, each mapping unit has
//! one of the states that it had since.

use crate::bed::{Bed, UNIT, content, unit};
use futures_util::future::{Either, join_all, select};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_device::Device;
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_volume::{Domain, Volume, VolumeError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;

const CLIENTS: u64 = 4;
const LBAS: u64 = 200;

/// The states that a mapping unit may have after a cut: the last that was durable, and all since.
#[derive(Debug, Clone, Default)]
struct Promise {
    possible: Vec<u64>,
}

impl Promise {
    fn of(state: u64) -> Promise {
        Promise { possible: vec![state] }
    }

    fn newest(&self) -> u64 {
        *self.possible.last().unwrap_or(&0)
    }
}

#[derive(Default)]
struct Reference {
    volume: BTreeMap<u64, Promise>,
    snapshots: BTreeMap<String, BTreeMap<u64, u64>>,
    next: u64,
}

impl Reference {
    fn begin(&mut self, lba: u64, state: u64) {
        self.volume.entry(lba).or_insert_with(|| Promise::of(0)).possible.push(state);
    }

    /// All states that were the newest when a flush began are durable. Writes that were not complete
    /// then may be missing.
    fn flushed(&mut self, before: &BTreeMap<u64, u64>) {
        for (lba, &state) in before {
            let possible = &mut self.volume.get_mut(lba).unwrap().possible;
            let at = possible.iter().position(|&possible| possible == state);
            if let Some(at) = at {
                possible.drain(..at);
            }
        }
    }
}

/// One client, alone on its part of the volume: its requests are one after the other.
async fn client(
    volume: Volume,
    number: u64,
    reference: &RefCell<Reference>,
    mut rng: Rng,
) -> Result<(), VolumeError> {
    let first = number * LBAS;
    loop {
        let lba = first + rng.below(LBAS);
        match rng.below(20) {
            0 => {
                let count = 1 + rng.below(20.min(first + LBAS - lba));
                (lba..lba + count).for_each(|lba| reference.borrow_mut().begin(lba, 0));
                volume.discard(lba * UNIT as u64, count * UNIT as u64).await?;
            }
            1 => {
                let own = |reference: &Reference| -> BTreeMap<u64, u64> {
                    let range = reference.volume.range(first..first + LBAS);
                    range.map(|(&lba, promise)| (lba, promise.newest())).collect()
                };
                let before = own(&reference.borrow());
                volume.flush().await?;
                reference.borrow_mut().flushed(&before);
            }
            2..8 => {
                let mut read = vec![0; UNIT];
                volume.read(lba * UNIT as u64, &mut read).await?;
                let expected = reference.borrow().volume.get(&lba).map_or(0, Promise::newest);
                assert_eq!(content(&read), expected, "unit {lba}");
            }
            _ => {
                let count = (1 + rng.below(8)).min(first + LBAS - lba);
                let mut data = Vec::new();
                for lba in lba..lba + count {
                    let mut reference = reference.borrow_mut();
                    reference.next += 1;
                    let state = reference.next;
                    reference.begin(lba, state);
                    data.extend(unit(state));
                }
                volume.write(lba * UNIT as u64, &data).await?;
            }
        }
    }
}

/// Compares everything with the reference; what is found is what holds from now on.
async fn compare(domain: &Domain, reference: &mut Reference) {
    let volume = domain.volume("v").unwrap();
    let mut read = vec![0; (CLIENTS * LBAS) as usize * UNIT];
    volume.read(0, &mut read).await.unwrap();
    for (lba, bytes) in (0..).zip(read.chunks(UNIT)) {
        let found = content(bytes);
        let promise = reference.volume.entry(lba).or_insert_with(|| Promise::of(0));
        assert!(promise.possible.contains(&found), "unit {lba} is {found}: {promise:?}");
        *promise = Promise::of(found);
    }
    for (name, contents) in &reference.snapshots {
        let snapshot = domain.open_snapshot("v", name).unwrap();
        snapshot.read(0, &mut read).await.unwrap();
        for (lba, bytes) in (0..).zip(read.chunks(UNIT)) {
            let expected = contents.get(&lba).copied().unwrap_or(0);
            assert_eq!(content(bytes), expected, "unit {lba} of {name}");
        }
    }
    domain.check_map().unwrap();
}

/// Takes or deletes a snapshot while no client works.
async fn change_snapshots(domain: &Domain, reference: &mut Reference, rng: &mut Rng, round: u64) {
    // A snapshot whose creation a cut interrupted is not in the reference.
    let known = domain.list()[0].snapshots.clone();
    for name in known.iter().filter(|name| !reference.snapshots.contains_key(*name)) {
        domain.delete_snapshot("v", name).await.unwrap();
    }
    if rng.chance(0.5) {
        let name = format!("s{round}");
        domain.snapshot("v", &name).await.unwrap();
        let contents = reference.volume.iter().map(|(&lba, promise)| (lba, promise.newest()));
        let contents = contents.collect();
        reference.snapshots.insert(name, contents);
    }
    if reference.snapshots.len() > 2 {
        let at = rng.below(reference.snapshots.len() as u64) as usize;
        let name = reference.snapshots.keys().nth(at).unwrap().clone();
        domain.delete_snapshot("v", &name).await.unwrap();
        reference.snapshots.remove(&name);
    }
}

async fn session(
    domain: &Domain,
    runtime: &RuntimeHandle,
    reference: &RefCell<Reference>,
    rng: &mut Rng,
    round: u64,
) {
    compare(domain, &mut reference.borrow_mut()).await;
    change_snapshots(domain, &mut reference.borrow_mut(), rng, round).await;
    let volume = domain.volume("v").unwrap();
    let clients = (0..CLIENTS).map(|number| {
        client(volume.clone(), number, reference, rng.fork(format!("{round} {number}")))
    });
    let working = join_all(clients);
    let lasts = Time(runtime.now().0 + 1_000_000 + rng.below(400_000_000));
    match select(pin!(working), runtime.sleep_until(lasts)).await {
        Either::Left((ended, _)) => panic!("{ended:?}"),
        Either::Right(_) => {}
    }
}

fn survive(seed: u64) {
    println!("SOFTFLASH_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let mut bed = Bed::new(24, 256);
    bed.config.checkpoint_entries = 200 + rng.below(5000);
    bed.config.frame_units = 8 + rng.below(57) as u32;
    let reference = RefCell::new(Reference::default());
    bed.run(async |domain, _, _| domain.create("v", CLIENTS * LBAS * UNIT as u64).await.unwrap());
    for round in 0..12 {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        executor.block_on(async {
            let queue = bed.device.open_queue_pair(0..bed.device.info().units).unwrap();
            let mounted = Domain::mount(queue, bed.config.clone(), runtime.clone()).await;
            let (domain, _) = mounted.unwrap();
            session(&domain, &runtime, &reference, &mut rng, round).await;
        });
        bed.device.power_cut(executor.now(), rng.next_u64()).unwrap();
    }
}

#[test]
fn nothing_flushed_is_lost_by_power_cuts() {
    match std::env::var("SOFTFLASH_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => survive(seed),
        None => (0..12).for_each(survive),
    }
}
