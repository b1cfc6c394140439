//! Policies of the registry in a domain.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Ownership};
use softflash_policy::{Chosen, LifetimePolicy, Listed, WearPolicy, all};
use softflash_volume::Domain;

/// Mapping units that stay, and those that are overwritten.
const COLD: u64 = 900;
const HOT: u64 = 60;

/// Writes all units of two volumes, then overwrites the hot ones; returns the newest contents.
async fn overwrite(domain: &Domain, writes: u64) -> Vec<u64> {
    domain.create("cold", COLD * UNIT as u64).await.unwrap();
    domain.create("hot", HOT * UNIT as u64).await.unwrap();
    let (cold, hot) = (domain.volume("cold").unwrap(), domain.volume("hot").unwrap());
    let mut rng = Rng::seeded(7);
    let mut newest = vec![0; HOT as usize];
    for lba in 0..COLD {
        cold.write(lba * UNIT as u64, &unit(1 + lba)).await.unwrap();
    }
    for number in 1..=writes {
        let lba = rng.below(HOT);
        hot.write(lba * UNIT as u64, &unit(number)).await.unwrap();
        newest[lba as usize] = number;
    }
    domain.flush().await.unwrap();
    newest
}

async fn check(domain: &Domain, newest: &[u64]) {
    let (cold, hot) = (domain.volume("cold").unwrap(), domain.volume("hot").unwrap());
    let mut bytes = vec![0; UNIT];
    for lba in 0..COLD {
        cold.read(lba * UNIT as u64, &mut bytes).await.unwrap();
        assert_eq!(content(&bytes), 1 + lba, "cold, {lba}");
    }
    for (lba, wanted) in (0..).zip(newest) {
        hot.read(lba * UNIT as u64, &mut bytes).await.unwrap();
        assert_eq!(content(&bytes), *wanted, "hot, {lba}");
    }
}

/// All policies of a kind as `KIND=POLICY`, with small parameters.
fn choices(kind: &str) -> Vec<String> {
    let of_kind = all().into_iter().filter(|one| one.kind == kind);
    let text = |Listed { form, parameters, .. }: Listed| {
        let name = form.split(':').next().unwrap_or_default();
        let numbers = parameters.iter().map(|it| format!(":{}", it.least.max(2).min(it.most)));
        format!("{kind}={name}{}", numbers.collect::<String>())
    };
    of_kind.map(text).collect()
}

/// Overwrites a domain with this choice until it is collected, and compares all data, also after
/// another mount.
fn collect(mut testbed: Testbed, choice: &str, writes: u64) {
    testbed.config = testbed.config.clone().with_policies(&choice.parse().unwrap());
    let newest = testbed.run(async |domain, _, _| {
        let newest = overwrite(domain, writes).await;
        assert!(domain.counters().collected > 0, "{choice}: nothing was collected");
        check(domain, &newest).await;
        newest
    });
    testbed.run(async |domain, _, _| check(domain, &newest).await);
}

#[test]
fn every_victim_policy_collects_a_domain() {
    for choice in choices("victim") {
        collect(Testbed::new(64, 64), &choice, 6_000);
    }
}

#[test]
fn every_lifetime_policy_that_needs_no_foresight_serves_a_domain() {
    let all = choices("lifetime");
    let (of_drives, of_volumes): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|choice| choice.parse::<Chosen>().is_err());
    assert_eq!(of_drives, ["lifetime=oracle:2"]);
    for choice in of_volumes {
        // Units with two classes.
        collect(Testbed::new(128, 64), &choice, 30_000);
    }
}

/// Write amplification of nine hot writes for each cold one to one volume, once each unit of it was
/// written.
fn write_amplification(lifetime: LifetimePolicy) -> f64 {
    const TOGETHER: u64 = 8;
    let mut testbed = Testbed::new(512, 256);
    testbed.config.lifetime = lifetime;
    testbed.config.op_percent = 25.0;
    testbed.run(async |domain, _, _| {
        let requests = domain.space().usable_bytes / UNIT as u64 * 9 / 10 / TOGETHER;
        let bytes = TOGETHER * UNIT as u64;
        domain.create("volume", requests * bytes).await.unwrap();
        let volume = domain.volume("volume").unwrap();
        let data = unit(1).repeat(TOGETHER as usize);
        let mut rng = Rng::seeded(11);
        for request in 0..requests {
            volume.write(request * bytes, &data).await.unwrap();
        }
        let hot = requests / 10;
        let mut overwrite = async |writes| {
            for step in 0..writes {
                let at =
                    if step % 10 == 0 { hot + rng.below(requests - hot) } else { rng.below(hot) };
                volume.write(at * bytes, &data).await.unwrap();
            }
        };
        overwrite(12 * requests).await;
        let before = domain.counters();
        overwrite(2 * requests).await;
        let after = domain.counters();
        let (written, moved) = (after.written - before.written, after.collected - before.collected);
        (written + moved) as f64 / written as f64
    })
}

#[test]
fn predicted_lifetimes_lower_the_write_amplification_of_skewed_writes() {
    let none = write_amplification(LifetimePolicy::NONE);
    let sepbit = write_amplification("sepbit".parse().unwrap());
    println!("write amplification: {sepbit:.3} by sepbit, {none:.3} without");
    assert!(sepbit < 0.95 * none, "{sepbit:.3} by sepbit, {none:.3} without");
}

#[test]
fn every_order_of_dies_serves_a_domain() {
    for order in ["fifo", "reads-first", "deadline:2"] {
        let mut testbed = Testbed::new(64, 64);
        let chosen = format!("order={order}").parse().unwrap();
        testbed.config = testbed.config.clone().with_policies(&chosen);
        assert_eq!(testbed.config.order.to_string(), order);
        testbed.run(async |domain, _, _| check(domain, &overwrite(domain, 3_000).await).await);
    }
}

/// The fewest and the most erases of the blocks of any unit, after many overwrites.
fn erases(testbed: &Testbed, overwrite: impl AsyncFnOnce(&Domain)) -> (u32, u32) {
    testbed.run(async |domain, _, _| overwrite(domain).await);
    testbed.on_flash(async |queue, config, runtime| {
        let owner = Ownership::of(Domain::owner(config.domain));
        let (flash, _) =
            Flash::mount_of(queue, FtlConfig::default(), owner, runtime).await.unwrap();
        let units = flash.units().iter().map(|unit| flash.telemetry(unit)).collect::<Vec<_>>();
        flash.stop();
        let fewest = units.iter().map(|unit| unit.erase_count_min).min().unwrap_or(0);
        (fewest, units.iter().map(|unit| unit.erase_count_max).max().unwrap_or(0))
    })
}

#[test]
fn static_levelling_moves_cold_data_so_that_their_superblocks_wear_too() {
    let erases = |wear| {
        let mut testbed = Testbed::new(64, 64);
        testbed.config.wear = wear;
        let mut newest = Vec::new();
        let counts = erases(&testbed, async |domain| newest = overwrite(domain, 40_000).await);
        testbed.run(async |domain, _, _| check(domain, &newest).await);
        counts
    };
    let (fewest, most) = erases(WearPolicy::DYNAMIC);
    assert!(fewest <= 1 && most > 20, "without it {fewest} to {most} erases");
    let (fewest, most) = erases(WearPolicy::level_by(6));
    assert!(fewest > 1 && most - fewest <= 6 + 6, "with it {fewest} to {most} erases");
}

/// The leaves of a map of many leaves lie in superblocks that no checkpoint writes again for want
/// of space.
#[test]
fn static_levelling_moves_cold_leaves_of_the_map_too() {
    const LEAVES: u64 = 8;
    let erases = |wear| {
        let mut testbed = Testbed::new(32, 512);
        testbed.config.wear = wear;
        erases(&testbed, async |domain| {
            domain.create("cold", LEAVES * 1024 * UNIT as u64).await.unwrap();
            domain.create("hot", HOT * UNIT as u64).await.unwrap();
            let (cold, hot) = (domain.volume("cold").unwrap(), domain.volume("hot").unwrap());
            for lba in (0..LEAVES * 1024).step_by(64) {
                cold.write(lba * UNIT as u64, &unit(1).repeat(64)).await.unwrap();
            }
            let mut rng = Rng::seeded(8);
            for number in 1..=30_000 {
                hot.write(rng.below(HOT) * UNIT as u64, &unit(number)).await.unwrap();
            }
            domain.flush().await.unwrap();
        })
    };
    let (fewest, most) = erases(WearPolicy::DYNAMIC);
    assert!(fewest <= 1 && most > 8, "without it {fewest} to {most} erases");
    let (fewest, most) = erases(WearPolicy::level_by(2));
    assert!(fewest > 1 && most - fewest <= 2 + 4, "with it {fewest} to {most} erases");
}
