//! The cost of generating requests: nanoseconds of CPU time per access, for every pattern.
//!
//! `cargo run --profile dist -p softflash-workload --example workload_speed [accesses]`

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]
#![expect(clippy::unwrap_used, reason = "an example stops at the first error")]

use rustix::time::{ClockId, clock_gettime};
use softflash_base::random::Rng;
use softflash_workload::{
    ArrivalPattern, Arrivals, BlockWorkload, KvOrder, KvSource, KvWorkload, Operation, Pattern,
    RequestSize, SizeShare, ValueSize, check_value, fill_value,
};
use std::hint::black_box;

/// The size of the device.
const CAPACITY_BYTES: u64 = 704_000_000_000;

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let mixed = [4096, 8192, 65_536].map(|bytes| SizeShare { bytes, weight: 1.0 }).to_vec();
    let zipf = |scattered| Pattern::Zipf { exponent: 0.99, scattered };
    let hot_cold = Pattern::HotCold { hot_space: 0.1, hot_accesses: 0.9 };
    let fixed = RequestSize::Fixed(8192);
    for (name, size, pattern, read_fraction) in [
        ("random 8 KiB, reads", fixed.clone(), Pattern::Random, 1.0),
        ("random 8 KiB, half reads", fixed.clone(), Pattern::Random, 0.5),
        ("random, three sizes", RequestSize::Mixed(mixed), Pattern::Random, 0.5),
        ("sequential 8 KiB", fixed.clone(), Pattern::SEQUENTIAL, 1.0),
        ("hot-cold 8 KiB", fixed.clone(), hot_cold, 0.0),
        ("zipf 8 KiB", fixed.clone(), zipf(false), 0.5),
        ("zipf 8 KiB, scattered", fixed, zipf(true), 0.5),
    ] {
        let mut workload = BlockWorkload::new(name, size, pattern);
        workload.read_fraction = read_fraction;
        let mut source = workload.source(CAPACITY_BYTES, Rng::seeded(1)).unwrap();
        report(name, count, || source.next().offset_bytes);
    }
    let mut arrivals = Arrivals::new(ArrivalPattern::Poisson, 1e6, Rng::seeded(1));
    report("poisson arrivals", count, || arrivals.next_at().0);
    let mut source = kv_source();
    report("key-value, uniform", count, || source.next().key);
    let mut value = vec![0; 1 << 20];
    report("filling 1 MiB", 1000, || {
        fill_value(1, black_box(2), &mut value);
        u64::from(value[0])
    });
    report("checking 1 MiB", 1000, || u64::from(check_value(1, 2, black_box(&value)).is_ok()));
}

fn kv_source() -> KvSource {
    let workload = KvWorkload {
        operation: Operation::Mixed { read_fraction: 0.5 },
        order: KvOrder::Uniform,
        value_bytes: ValueSize::Range { min: 1000, max: 5000 },
        keys_per_slice: Some(1_000_000),
        ..KvWorkload::new("speed")
    };
    workload.source(0, 0, &Rng::seeded(1)).unwrap()
}

/// Prints the cost of one call of `work`.
fn report(name: &str, count: u64, mut work: impl FnMut() -> u64) {
    let cpu_ns = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begun = cpu_ns();
    let sum = (0..count).fold(0_u64, |sum, _| sum.wrapping_add(work()));
    let ns = (cpu_ns() - begun) / count as f64;
    println!("{name:<26} {ns:>10.1} ns   ({:016x})", black_box(sum));
}
