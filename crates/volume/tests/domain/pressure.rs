//! Collection and the writes of clients keep in step.

use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::join_all;
use softflash_base::random::Rng;
use softflash_device::ModelConfig;
use softflash_runtime::RuntimeHandle;
use softflash_volume::Volume;
use std::cell::{Cell, RefCell};

/// Bytes of a write.
const WRITE: u64 = 4 * UNIT as u64;
/// Writes under way at once.
const DEPTH: u64 = 32;
/// The longest write over the median: the bar.
const MOST: u64 = 20;

/// So many random writes to a volume of so many bytes; returns how long each has taken, the
/// shortest first, in nanoseconds.
async fn overwrite(
    volume: &Volume,
    bytes: u64,
    writes: u64,
    (seed, runtime): (u64, &RuntimeHandle),
) -> Vec<u64> {
    let (left, took) = (Cell::new(writes), RefCell::new(Vec::new()));
    let (left, took_of_all) = (&left, &took);
    let client = |number: u64| async move {
        let mut rng = Rng::seeded(seed).fork(format!("client {number}"));
        while left.get() > 0 {
            left.set(left.get() - 1);
            let (at, start) = (rng.below(bytes / WRITE), runtime.now());
            volume.write(at * WRITE, &unit(at).repeat(4)).await.unwrap();
            took_of_all.borrow_mut().push(runtime.now().since_ns(start));
        }
    };
    join_all((0..DEPTH).map(client)).await;
    let mut took = took.into_inner();
    took.sort_unstable();
    took
}

#[test]
fn no_write_waits_for_the_collection_of_a_superblock() {
    let seed = 7;
    println!("seed {seed}");
    let mut config = ModelConfig::model();
    config.array.geometry.channels = 1;
    config.array.geometry.chips_per_channel = 1;
    config.array.geometry.blocks_per_plane = 64;
    // Superblocks of 8 MiB in one unit: no other takes writes meanwhile.
    config.array.geometry.pages_per_block = 512;
    Testbed::of(config).run(async |domain, runtime, _| {
        domain.create("v", 1 << 40).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let bytes = domain.space().usable_bytes * 95 / 100 / WRITE * WRITE;
        for at in (0..bytes).step_by(64 * UNIT) {
            volume.write(at, &vec![1; (bytes - at).min(64 * UNIT as u64) as usize]).await.unwrap();
        }
        let writes = bytes / WRITE;
        overwrite(&volume, bytes, writes, (seed, runtime)).await;
        let took = overwrite(&volume, bytes, writes, (seed + 1, runtime)).await;
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        let ratio = longest as f64 / median as f64;
        println!("median {median} ns, longest {longest} ns: {ratio:.1} times");
        assert!(longest < MOST * median, "{longest} ns beside a median of {median} ns");
    });
}
