//! The speed of writes and lookups of 1 KiB values in the engine, on one thread, without sockets.
//! `cargo run --profile dist -p softflash-store --example engine_speed`

use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::{Durability, Entry};
use softflash_testing::Testbed;
use std::time::Duration;

#[expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints its measurement")]
fn main() {
    let (keys, operations) = (100_000, 1_000_000);
    let mut testbed = Testbed::new(1, 1, 16, 32, 8 << 20);
    testbed.options.memory_bytes = 512 << 20;
    testbed.options.durability = Durability::Interval(Duration::from_secs(1));
    let mut random = Rng::seeded(1);
    let mut key = move || Bytes::from(format!("key:{:012}", random.below(keys)));
    testbed.run(async |stores, runtime| {
        let (store, began) = (&stores[0], runtime.now());
        for number in 0..operations {
            let mut transaction = store.begin();
            transaction.put(key(), Entry::new(Bytes::from(vec![7; 1024]))).unwrap();
            store.commit(transaction).await.unwrap();
            if number % 64 == 0 {
                softflash_runtime::yield_now().await;
            }
        }
        let wrote = runtime.now();
        let mut found = 0;
        for _ in 0..operations {
            found += u64::from(store.begin().get(&key()).await.unwrap().is_some());
        }
        let rate = |ns: u64| operations as f64 / (ns as f64 / 1e9);
        println!(
            "put {:.0}/s, get {:.0}/s ({found} found)",
            rate(wrote.since_ns(began)),
            rate(runtime.now().since_ns(wrote))
        );
        println!("{:#?}", store.stats().await.unwrap());
    });
}
