//! Pairs of domains with a copy each of the same volumes.

use crate::testbed::{Testbed, UNIT, content, unit};
use futures_util::future::{Either, join_all, select};
use softflash_base::random::Rng;
use softflash_base::{Time, UnitSet};
use softflash_device::{Device, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_volume::{Domain, DomainConfig, VolumeError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The number of the pair.
const PAIR: u64 = 1 << 40;

/// A device with two domains that are a pair.
struct Pairbed {
    device: Arc<ModelDevice>,
    configs: [DomainConfig; 2],
    units: [UnitSet; 2],
    window: Option<Duration>,
}

impl Pairbed {
    fn new(superblocks: u32, kib: u32) -> Pairbed {
        Pairbed::of(Testbed::new(superblocks, kib))
    }

    fn of(testbed: Testbed) -> Pairbed {
        let Testbed { device, config, .. } = testbed;
        let configs = [1, 2].map(|domain| DomainConfig { domain, ..config.clone() });
        let units = [UnitSet::from(0..2), UnitSet::from(2..4)];
        Pairbed { device, configs, units, window: None }
    }

    fn with_window(self, window: Duration) -> Pairbed {
        Pairbed { window: Some(window), ..self }
    }

    async fn mount(&self, member: usize, runtime: &RuntimeHandle) -> Result<Domain, VolumeError> {
        let queue = self.device.clone().open_queue_pair(&self.units[member]).unwrap();
        let config = self.configs[member].clone();
        Ok(Domain::mount(queue, config, runtime.clone()).await?.0)
    }

    /// Mounts and forms the pair, and runs with it; the power is cut at the end.
    fn run<R>(&self, test: impl AsyncFnOnce(&Domain, &Domain, &RuntimeHandle) -> R) -> R {
        self.mounted(async |first, second, runtime| {
            first.pair(second, PAIR, self.window).await.unwrap();
            let result = test(first, second, runtime).await;
            [first, second].iter().for_each(|domain| domain.check_map().unwrap());
            result
        })
    }

    /// Mounts both domains and runs with them.
    fn mounted<R>(&self, test: impl AsyncFnOnce(&Domain, &Domain, &RuntimeHandle) -> R) -> R {
        let executor = VirtualExecutor::new(1_000_000);
        let result = executor.block_on(async {
            let runtime = executor.handle();
            let first = self.mount(0, &runtime).await.unwrap();
            let second = self.mount(1, &runtime).await.unwrap();
            let result = test(&first, &second, &runtime).await;
            first.stop();
            second.stop();
            result
        });
        self.device.power_cut(executor.now(), 1).unwrap();
        result
    }

    /// Runs with one of the domains alone.
    fn alone<R>(&self, member: usize, test: impl AsyncFnOnce(&Domain) -> R) -> R {
        let executor = VirtualExecutor::new(1_000_000);
        let result = executor.block_on(async {
            let domain = self.mount(member, &executor.handle()).await.unwrap();
            let result = test(&domain).await;
            domain.stop();
            result
        });
        self.device.power_cut(executor.now(), 1).unwrap();
        result
    }
}

async fn read(domain: &Domain, name: &str) -> Vec<u64> {
    let volume = domain.volume(name).unwrap();
    let mut bytes = vec![0; volume.size_bytes().unwrap() as usize];
    volume.read(0, &mut bytes).await.unwrap();
    bytes.chunks(UNIT).map(content).collect()
}

const WINDOWS: [Option<Duration>; 2] = [None, Some(Duration::from_millis(20))];

#[test]
fn both_domains_have_what_was_written() {
    for window in WINDOWS {
        let mut pairbed = Pairbed::new(32, 256);
        pairbed.window = window;
        pairbed.run(async |first, second, _| {
            first.create("v", 1000 * UNIT as u64).await.unwrap();
            let volume = first.volume("v").unwrap();
            for lba in 0..600 {
                volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
            }
            volume.discard(100 * UNIT as u64, 50 * UNIT as u64).await.unwrap();
            first.snapshot("v", "s").await.unwrap();
            for lba in 300..900 {
                volume.write(lba * UNIT as u64, &unit(lba + 5000)).await.unwrap();
            }
            first.clone_snapshot("v", "s", "c").await.unwrap();
            first.volume("c").unwrap().write(0, &unit(77)).await.unwrap();
            assert_eq!(first.compare_copies().await.unwrap(), None);
            assert!(second.list().is_empty(), "the volumes are those of the first");
            first.flush().await.unwrap();
        });
        for member in [0, 1] {
            pairbed.alone(member, async |domain| {
                let expected = (0..1000_u64).map(|lba| match lba {
                    300..900 => lba + 5000,
                    0..100 | 150..300 => lba + 1,
                    _ => 0,
                });
                assert_eq!(read(domain, "v").await, expected.collect::<Vec<_>>());
                assert_eq!(read(domain, "c").await[..2], [77, 2]);
            });
        }
    }
}

/// The value of each mapping unit that is durable, and those written since.
type Expected = BTreeMap<(String, u64), (u64, Vec<u64>)>;

const LBAS: u64 = 400;

/// A client that knows what it may find.
struct Client {
    expected: RefCell<Expected>,
    next: RefCell<u64>,
    volumes: RefCell<Vec<String>>,
}

impl Client {
    /// Compares all, after a restart: what is found counts from then on.
    async fn check(&self, domain: &Domain, at: &str) {
        let names: Vec<String> = domain.list().into_iter().map(|volume| volume.name).collect();
        for name in self.volumes.borrow().iter() {
            assert!(names.contains(name), "{at}: {name} of {names:?}");
        }
        *self.volumes.borrow_mut() = names.clone();
        for name in names {
            for (lba, value) in (0..).zip(read(domain, &name).await) {
                let mut expected = self.expected.borrow_mut();
                let (durable, since) =
                    expected.entry((name.clone(), lba)).or_insert((0, Vec::new()));
                let fits = value == *durable || since.contains(&value);
                assert!(fits, "{at}: {name} {lba}: {value}, expected {durable} or {since:?}");
                (*durable, *since) = (value, Vec::new());
            }
        }
    }

    async fn write(&self, domain: &Domain, rng: &RefCell<Rng>) -> Result<(), VolumeError> {
        let (name, lba, count, value) = {
            let mut rng = rng.borrow_mut();
            let volumes = self.volumes.borrow();
            let name = volumes[rng.below(volumes.len() as u64) as usize].clone();
            let lba = rng.below(LBAS);
            let count = (1 + rng.below(4)).min(LBAS - lba);
            *self.next.borrow_mut() += 1;
            let value = if rng.below(8) == 0 { 0 } else { *self.next.borrow() };
            (name, lba, count, value)
        };
        for lba in lba..lba + count {
            let mut expected = self.expected.borrow_mut();
            let entry = expected.entry((name.clone(), lba)).or_insert((0, Vec::new()));
            entry.1.push(value);
        }
        let volume = domain.volume(&name)?;
        match value {
            0 => volume.discard(lba * UNIT as u64, count * UNIT as u64).await,
            _ => volume.write(lba * UNIT as u64, &unit(value).repeat(count as usize)).await,
        }
    }

    /// Makes all that is complete durable. No write is under way.
    async fn flush(&self, domain: &Domain) -> Result<(), VolumeError> {
        let last = |(durable, since): &(u64, Vec<u64>)| since.last().copied().unwrap_or(*durable);
        let complete: Vec<_> =
            self.expected.borrow().iter().map(|(place, of)| (place.clone(), last(of))).collect();
        domain.flush().await?;
        let mut expected = self.expected.borrow_mut();
        for (place, value) in complete {
            expected.insert(place, (value, Vec::new()));
        }
        Ok(())
    }

    /// Writes at depth, reads back, flushes, and makes volumes and snapshots.
    async fn work(&self, domain: &Domain, rng: &RefCell<Rng>) -> Result<(), VolumeError> {
        for round in 0.. {
            // Ranges of one batch may overlap: only the set of values is known then.
            let writes = 1 + rng.borrow_mut().below(12);
            for result in join_all((0..writes).map(|_| self.write(domain, rng))).await {
                result?;
            }
            let step = rng.borrow_mut().below(10);
            match step {
                0..3 => self.settle(domain).await?,
                3 => {
                    let name = format!("v{}", *self.next.borrow());
                    if self.volumes.borrow().len() < 4 {
                        domain.create(&name, LBAS * UNIT as u64).await?;
                        self.volumes.borrow_mut().push(name);
                    }
                }
                4 => {
                    let of = self.volumes.borrow()[0].clone();
                    let snapshots =
                        domain.list().into_iter().find(|it| it.name == of).unwrap().snapshots;
                    match snapshots.len() {
                        3.. => domain.delete_snapshot(&of, &snapshots[0]).await?,
                        _ => domain.snapshot(&of, &format!("s{round}-{writes}")).await.or_else(
                            |error| match error {
                                VolumeError::Exists { .. } => Ok(()),
                                error => Err(error),
                            },
                        )?,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads everything, so that overlapping writes are known, and flushes.
    async fn settle(&self, domain: &Domain) -> Result<(), VolumeError> {
        let names = self.volumes.borrow().clone();
        for name in names {
            for (lba, value) in (0..).zip(read(domain, &name).await) {
                let mut expected = self.expected.borrow_mut();
                let entry = expected.entry((name.clone(), lba)).or_insert((0, Vec::new()));
                let fits = value == entry.0 || entry.1.contains(&value);
                assert!(fits, "{name} {lba}: {value}, expected {entry:?}");
                entry.1.push(value);
            }
        }
        self.flush(domain).await
    }
}

/// Four seeds; more with `SOFTFLASH_THOROUGH`.
fn seeds(first: u64) -> std::ops::Range<u64> {
    let is_thorough = std::env::var_os("SOFTFLASH_THOROUGH").is_some();
    first..first + if is_thorough { 200 } else { 4 }
}

/// Sessions that a power cut ends, each at a random time.
fn sessions(pairbed: &Pairbed, seed: u64, sessions: u32) {
    let at = format!("seed {seed}");
    let rng = RefCell::new(Rng::seeded(seed));
    let client = Client {
        expected: RefCell::default(),
        next: RefCell::new(0),
        volumes: RefCell::new(Vec::new()),
    };
    for session in 0..sessions {
        let executor = VirtualExecutor::new(1_000_000);
        executor.block_on(async {
            let runtime = executor.handle();
            let work = async {
                let first = pairbed.mount(0, &runtime).await.unwrap();
                let second = pairbed.mount(1, &runtime).await.unwrap();
                first.pair(&second, PAIR, pairbed.window).await.unwrap();
                client.check(&first, &at).await;
                if session % 2 == 0 {
                    assert_eq!(first.compare_copies().await.unwrap(), None, "{at}");
                }
                if client.volumes.borrow().is_empty() {
                    first.create("v0", LBAS * UNIT as u64).await.unwrap();
                    client.volumes.borrow_mut().push("v0".to_owned());
                }
                client.work(&first, &rng).await.unwrap();
            };
            let cut = 1_000_000 * (1 + rng.borrow_mut().below(300));
            let cut = runtime.sleep_until(Time(runtime.now().0 + cut));
            let is_cut = matches!(select(pin!(work), cut).await, Either::Right(_));
            assert!(is_cut, "{at}: the work ends only by the cut");
        });
        let seed = rng.borrow_mut().next_u64();
        pairbed.device.power_cut(executor.now(), seed).unwrap();
    }
}

#[test]
fn nothing_durable_is_lost_by_power_cuts_of_a_pair_without_windows() {
    for seed in seeds(0) {
        sessions(&Pairbed::new(48, 256), seed, 25);
    }
}

#[test]
fn nothing_durable_is_lost_by_power_cuts_of_a_pair_with_windows() {
    for seed in seeds(1000) {
        let window = Duration::from_millis([3, 10, 30, 100][(seed % 4) as usize]);
        sessions(&Pairbed::new(48, 256).with_window(window), seed, 25);
    }
}

#[test]
fn a_domain_that_rests_programs_and_erases_nothing() {
    let window = Duration::from_millis(20);
    let pairbed = Pairbed::new(32, 256).with_window(window);
    pairbed.run(async |first, second, runtime| {
        first.create("v", 800 * UNIT as u64).await.unwrap();
        let volume = first.volume("v").unwrap();
        let mut rng = Rng::seeded(3);
        let work = |domain: &Domain| (domain.programmed().total(), domain.erases());
        let (mut before, mut turns) = ([(0, 0); 2], 0);
        let mut was = [false; 2];
        for write in 0..20_000 {
            volume.write(rng.below(800) * UNIT as u64, &unit(write)).await.unwrap();
            let rests = [first, second].map(|domain| domain.window().unwrap().is_deterministic);
            assert!(rests[0] || rests[1], "both program");
            let now = [first, second].map(work);
            for member in [0, 1] {
                if rests[member] && was[member] {
                    assert_eq!(now[member], before[member], "write {write}, member {member}");
                }
                turns += u32::from(rests[member] && !was[member]);
            }
            (before, was) = (now, rests);
        }
        assert!(turns > 20, "{turns} turns in {:?}", runtime.now());
        let figures = first.pair_figures().unwrap();
        assert!(figures.turns > 20 && figures.longest_drain_ns < 20_000_000, "{figures:?}");
        assert_eq!(first.compare_copies().await.unwrap(), None);
    });
}

#[test]
fn an_empty_domain_gets_a_copy_of_everything_while_clients_write() {
    for (full, window) in [(0, None), (1, None), (0, WINDOWS[1])] {
        let mut pairbed = Pairbed::new(48, 256);
        pairbed.window = window;
        let mut expected = vec![0; 1000];
        pairbed.alone(full, async |domain| {
            domain.create("v", 1000 * UNIT as u64).await.unwrap();
            let volume = domain.volume("v").unwrap();
            for lba in 0..800 {
                volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
                expected[lba as usize] = lba + 1;
            }
            domain.snapshot("v", "old").await.unwrap();
            volume.discard(0, 100 * UNIT as u64).await.unwrap();
            expected[..100].fill(0);
            domain.snapshot("v", "new").await.unwrap();
            domain.clone_snapshot("v", "old", "c").await.unwrap();
            domain.volume("c").unwrap().write(5 * UNIT as u64, &unit(9)).await.unwrap();
            domain.snapshot("c", "s").await.unwrap();
            domain.flush().await.unwrap();
        });
        pairbed.run(async |first, _, runtime| {
            let mut rng = Rng::seeded(1);
            let volume = first.volume("v").unwrap();
            let mut writes = 0;
            while !first.pair_figures().unwrap().is_whole {
                let lba = rng.below(1000);
                expected[lba as usize] = 10_000 + writes;
                volume.write(lba * UNIT as u64, &unit(10_000 + writes)).await.unwrap();
                writes += 1;
                if writes == 20 {
                    first.snapshot("c", "late").await.unwrap();
                    first.create("w", 64 * UNIT as u64).await.unwrap();
                }
                assert!(writes < 100_000, "at {:?}", runtime.now());
            }
            assert!(writes > 50, "{writes} writes");
            assert_eq!(read(first, "v").await, expected);
            assert_eq!(first.compare_copies().await.unwrap(), None);
            first.flush().await.unwrap();
        });
        for member in [0, 1] {
            pairbed.alone(member, async |domain| {
                assert_eq!(read(domain, "v").await, expected);
                let old = domain.open_snapshot("v", "old").unwrap();
                let mut bytes = vec![0; UNIT];
                old.read(50 * UNIT as u64, &mut bytes).await.unwrap();
                assert_eq!(content(&bytes), 51);
                assert_eq!(domain.list().len(), 3);
            });
        }
    }
}

#[test]
fn a_pair_goes_on_with_one_domain_and_is_made_whole_again() {
    for (lost, window) in [(0, None), (1, None), (0, WINDOWS[1]), (1, WINDOWS[1])] {
        let mut pairbed = Pairbed::of(Testbed::of_dies(4));
        pairbed.window = window;
        let mut expected = vec![0; 800];
        let mut rng = Rng::seeded(lost);
        let units: Vec<u16> = pairbed.units[lost as usize].iter().collect();
        let testbed = Testbed {
            device: pairbed.device.clone(),
            units: UnitSet::from(0..4),
            config: DomainConfig::default(),
        };
        pairbed.run(async |first, _, runtime| {
            first.create("v", 800 * UNIT as u64).await.unwrap();
            let volume = first.volume("v").unwrap();
            for write in 1..2000 {
                let lba = rng.below(800);
                expected[lba as usize] = write;
                volume.write(lba * UNIT as u64, &unit(write)).await.unwrap();
                if write == 1000 {
                    testbed.kill(&units, runtime.now().0 + 1_000_000);
                }
                if write % 100 == 0 {
                    assert!(read(first, "v").await == expected, "{lost} {window:?} {write}");
                }
            }
            let figures = first.pair_figures().unwrap();
            assert!(!figures.is_whole && figures.lost_units == 0, "{figures:?}");
            first.snapshot("v", "s").await.unwrap();
            first.flush().await.unwrap();
        });
        // The other one has everything by itself.
        pairbed.alone(1 - lost as usize, async |domain| {
            domain.serve_alone(PAIR).await.unwrap();
            assert_eq!(read(domain, "v").await, expected);
            domain.volume("v").unwrap().write(0, &unit(9999)).await.unwrap();
            expected[0] = 9999;
            domain.flush().await.unwrap();
        });
        pairbed.alone(1 - lost as usize, async |domain| {
            assert_eq!(read(domain, "v").await, expected);
            domain.forget_pair().await.unwrap();
            domain.volume("v").unwrap().write(0, &unit(1)).await.unwrap();
        });
    }
}

#[test]
fn a_copy_that_a_power_cut_ends_begins_again() {
    let pairbed = Pairbed::new(48, 256);
    pairbed.alone(0, async |domain| {
        domain.create("v", 1000 * UNIT as u64).await.unwrap();
        for (first, snapshot) in [(1, "a"), (2000, "b"), (4000, "c")] {
            let volume = domain.volume("v").unwrap();
            for lba in 0..600 {
                volume.write(lba * UNIT as u64, &unit(first + lba)).await.unwrap();
            }
            domain.snapshot("v", snapshot).await.unwrap();
        }
    });
    let mut cuts = 0;
    for ms in (1..).map(|cut| 5 * cut) {
        let is_whole = pairbed.run(async |first, _, runtime| {
            let wait = runtime.sleep_until(Time(runtime.now().0 + ms * 1_000_000));
            first.volume("v").unwrap().write(0, &unit(ms)).await.unwrap();
            wait.await;
            let expected = (0..600).map(|lba| if lba == 0 { ms } else { 4000 + lba });
            assert_eq!(read(first, "v").await[..600], expected.collect::<Vec<_>>());
            first.pair_figures().unwrap().is_whole
        });
        if is_whole {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 3, "{cuts} cuts");
    pairbed.run(async |first, _, _| {
        assert_eq!(first.compare_copies().await.unwrap(), None);
    });
}

#[test]
fn a_pair_ends_and_another_begins_while_clients_write() {
    let mut pairbed = Pairbed::new(48, 256);
    for window in WINDOWS {
        pairbed.window = window;
        let client = Client {
            expected: RefCell::default(),
            next: RefCell::new(0),
            volumes: RefCell::new(vec!["v".to_owned()]),
        };
        let rng = RefCell::new(Rng::seeded(3));
        pairbed.mounted(async |first, second, runtime| {
            first.forget_pair().await.unwrap();
            if first.list().is_empty() {
                first.create("v", LBAS * UNIT as u64).await.unwrap();
            } else {
                let volume = first.volume("v").unwrap();
                volume.discard(0, LBAS * UNIT as u64).await.unwrap();
            }
            let is_done = std::cell::Cell::new(false);
            let change = async {
                let pause = async |ms: u64| {
                    runtime.sleep_until(Time(runtime.now().0 + ms * 1_000_000)).await;
                };
                pause(20).await;
                first.pair(second, PAIR, window).await.unwrap();
                while !first.pair_figures().unwrap().is_whole {
                    pause(5).await;
                }
                pause(50).await;
                assert_eq!(first.compare_copies().await.unwrap(), None);
                first.unpair().await.unwrap();
                assert!(!first.is_paired() && !second.is_paired());
                pause(20).await;
                is_done.set(true);
            };
            let write = async {
                while !is_done.get() {
                    let writes = (0..8).map(|_| client.write(first, &rng));
                    join_all(writes).await.into_iter().collect::<Result<(), _>>().unwrap();
                }
            };
            futures_util::future::join(change, write).await;
            client.settle(first).await.unwrap();
            second.delete("v").await.unwrap();
            second.forget_pair().await.unwrap();
        });
        pairbed.alone(0, async |domain| client.check(domain, "alone").await);
        pairbed.alone(1, async |domain| assert!(domain.list().is_empty()));
    }
}

#[test]
fn damaged_data_are_read_from_the_other_domain_and_written_again() {
    let pairbed = Pairbed::new(48, 256);
    pairbed.run(async |first, _, _| {
        first.create("v", 200 * UNIT as u64).await.unwrap();
        let volume = first.volume("v").unwrap();
        for lba in 0..200 {
            volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
        }
        first.prove().await.unwrap();
    });
    // Pages of the first domain that hold data of the volume.
    let (mut image, mut damaged) = (pairbed.device.image(0..2).unwrap(), 0);
    image.visit(|_, _, page| {
        let value = u64::from_le_bytes(page[..8].try_into().unwrap());
        if (1..=200).contains(&value) && page[8..16] == page[..8] {
            page[100] ^= 1;
            damaged += 1;
        }
    });
    assert!(damaged >= 150, "{damaged} of 200");
    pairbed.device.restore(&image).unwrap();
    let expected: Vec<u64> = (1..=200).collect();
    for healed in [true, false] {
        pairbed.run(async |first, _, runtime| {
            for _ in 0..2 {
                assert_eq!(read(first, "v").await, expected);
            }
            runtime.sleep_until(Time(runtime.now().0 + 10_000_000)).await;
            let figures = first.pair_figures().unwrap();
            assert_eq!((figures.healed_units > 0, figures.lost_units), (healed, 0), "{figures:?}");
            for _ in 0..10 {
                assert_eq!(read(first, "v").await, expected);
            }
            assert_eq!(first.pair_figures().unwrap().healed_units, figures.healed_units);
            first.flush().await.unwrap();
        });
    }
}

#[test]
fn domains_of_different_pairs_or_with_other_volumes_are_no_pair() {
    let pairbed = Pairbed::new(32, 256);
    for member in [0, 1] {
        pairbed.alone(member, async |domain| {
            domain.create("v", 64 * UNIT as u64).await.unwrap();
        });
    }
    pairbed.mounted(async |first, second, runtime| {
        let refused = first.pair(second, PAIR, None).await.unwrap_err();
        assert!(refused.to_string().contains("both have volumes"), "{refused}");
        second.delete("v").await.unwrap();
        first.pair(second, PAIR, None).await.unwrap();
        while !first.pair_figures().unwrap().is_whole {
            runtime.sleep_until(Time(runtime.now().0 + 1_000_000)).await;
        }
    });
    pairbed.mounted(async |first, second, _| {
        let refused = first.pair(second, PAIR + 1, None).await.unwrap_err();
        assert!(refused.to_string().contains("another pair"), "{refused}");
    });
}
