use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::join_all;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, Setting, Volume};

const LBAS: u64 = 1000;

async fn weighted(domain: &Domain, name: &str, weight: u16) -> Volume {
    domain.create_with(name, LBAS * UNIT as u64, &[Setting::Weight(weight)]).await.unwrap();
    domain.volume(name).unwrap()
}

/// Requests of so many tasks until a time; each writes, or reads every second time.
async fn saturate(runtime: &RuntimeHandle, volume: &Volume, tasks: u64, reads: bool, end: Time) {
    let task = async |task: u64| {
        let mut rng = Rng::seeded(1).fork(format!("task {task}"));
        while runtime.now() < end {
            let at = rng.below(LBAS) * UNIT as u64;
            match reads && rng.chance(0.5) {
                true => volume.read(at, &mut [0; UNIT]).await.unwrap(),
                false => volume.write(at, &unit(task)).await.unwrap(),
            }
        }
    };
    join_all((0..tasks).map(task)).await;
}

fn bytes(domain: &Domain) -> Vec<u64> {
    let counters = domain.volume_counters();
    counters.iter().map(|(_, of)| of.read_bytes + of.written_bytes).collect()
}

#[test]
fn saturated_volumes_get_shares_by_their_weights() {
    for reads in [false, true] {
        Testbed::new(32, 256).run(async |domain, runtime, _| {
            let (a, b) = (weighted(domain, "a", 100).await, weighted(domain, "b", 300).await);
            let end = runtime.now() + 2_000_000_000;
            let work =
                [saturate(runtime, &a, 64, reads, end), saturate(runtime, &b, 64, reads, end)];
            join_all(work).await;
            let [a, b] = bytes(domain)[..] else { panic!("two volumes") };
            let ratio = b as f64 / a as f64;
            println!("reads {reads}: {a} and {b} bytes, 1 : {ratio:.2}");
            assert!((2.7..3.3).contains(&ratio), "{a} and {b}: {ratio}");
            assert!(a > 1 << 20, "{a}");
        });
    }
}

/// The slowest write of a volume with one request at a time, and the requests of others that were
/// counted during one of its requests at most.
async fn alone_at_a_time(domain: &Domain, runtime: &RuntimeHandle, volume: &Volume) -> (u64, u64) {
    let (mut slowest_ns, mut waits) = (0, 0);
    for lba in 0..100 {
        runtime.sleep_until(runtime.now() + 10_000_000).await;
        let start = runtime.now();
        volume.write(lba * UNIT as u64, &unit(lba)).await.unwrap();
        slowest_ns = slowest_ns.max(runtime.now().since_ns(start));
        waits = domain.volume_counters()[2].1.weight_waits;
    }
    (slowest_ns, waits)
}

#[test]
fn an_unsaturated_volume_does_not_wait_for_its_turn_whatever_its_weight() {
    let testbed = Testbed::new(32, 256);
    let (slowest, waits) = testbed.run(async |domain, runtime, _| {
        let (a, b) = (weighted(domain, "a", 1000).await, weighted(domain, "b", 1000).await);
        let quiet = weighted(domain, "quiet", 1).await;
        let end = runtime.now() + 1_100_000_000;
        let others = join_all([
            saturate(runtime, &a, 64, false, end),
            saturate(runtime, &b, 64, false, end),
        ]);
        let measured = alone_at_a_time(domain, runtime, &quiet);
        futures_util::future::join(others, measured).await.1
    });
    println!("slowest write: {slowest} ns, waits for a turn: {waits}");
    assert_eq!(waits, 0);
}
