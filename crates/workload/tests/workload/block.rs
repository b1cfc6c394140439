//! Requests of block clients follow the configured distributions and stay on the device.

#![expect(clippy::unwrap_used, reason = "a helper of tests")]
#![expect(clippy::print_stdout, reason = "tests print their seed")]

use proptest::prelude::*;
use softflash_base::random::Rng;
use softflash_workload::{
    Access, AccessKind, BlockSource, BlockWorkload, Pattern, RequestSize, SizeShare, Span,
};
use std::collections::BTreeMap;

const SEED: u64 = 4;

fn workload(bytes: u32, pattern: Pattern) -> BlockWorkload {
    BlockWorkload::new("test", RequestSize::Fixed(bytes), pattern)
}

fn source(workload: &BlockWorkload, capacity_bytes: u64) -> BlockSource {
    println!("seed {SEED}");
    workload.source(capacity_bytes, Rng::seeded(SEED)).unwrap()
}

fn take(source: &mut BlockSource, count: usize) -> Vec<Access> {
    (0..count).map(|_| source.next()).collect()
}

/// The number of requests to each place of 4 KiB.
fn counts(source: &mut BlockSource, places: usize, draws: usize) -> Vec<u64> {
    let mut counts = vec![0; places];
    take(source, draws).iter().for_each(|access| counts[access.offset_bytes as usize / 4096] += 1);
    counts
}

/// Four standard deviations of a binomial count.
fn near(count: u64, draws: usize, share: f64) -> bool {
    let expected = draws as f64 * share;
    (count as f64 - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt()
}

#[test]
fn random_places_are_equally_likely() {
    let counts =
        counts(&mut source(&workload(4096, Pattern::Random), 1000 * 4096), 1000, 1_000_000);
    let chi_squared: f64 = counts.iter().map(|&n| (n as f64 - 1000.0).powi(2) / 1000.0).sum();
    // 999 degrees of freedom: mean 999, standard deviation 44.7.
    assert!((chi_squared - 999.0).abs() < 4.0 * 44.7, "{chi_squared}");
}

#[test]
fn zipf_places_follow_the_power_law_scattered_or_not() {
    let draws = 1_000_000;
    let harmonic: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.9)).sum();
    for scattered in [false, true] {
        let workload = workload(4096, Pattern::Zipf { exponent: 0.9, scattered });
        let mut counts = counts(&mut source(&workload, 1000 * 4096), 1000, draws);
        let is_sorted = counts[..20].is_sorted_by(|one, other| one > other);
        assert_eq!(is_sorted, !scattered);
        assert!(counts.iter().all(|&count| count > 0));
        counts.sort_unstable_by(|one, other| other.cmp(one));
        for rank in [0, 1, 2, 5, 10] {
            let share = ((rank + 1) as f64).powf(-0.9) / harmonic;
            assert!(near(counts[rank], draws, share), "rank {rank}: {}", counts[rank]);
        }
    }
}

#[test]
fn the_hot_part_has_its_share() {
    let draws = 1_000_000;
    let pattern = Pattern::HotCold { hot_space: 0.2, hot_accesses: 0.7 };
    let counts = counts(&mut source(&workload(4096, pattern), 1000 * 4096), 1000, draws);
    assert!(near(counts[..200].iter().sum(), draws, 0.7));
    // Both parts are uniform within.
    assert!(near(counts[..100].iter().sum(), draws, 0.35));
    assert!(near(counts[200..600].iter().sum(), draws, 0.15));
}

#[test]
fn kinds_and_sizes_come_in_their_shares() {
    let draws = 400_000;
    let mut workload = workload(1, Pattern::Random);
    (workload.read_fraction, workload.trim_fraction) = (0.6, 0.1);
    let share = |bytes, weight| SizeShare { bytes, weight };
    let (small, large) = (share(512, 3.0), share(65_536, 1.0));
    workload.size = None;
    workload.read_size = Some(RequestSize::Mixed(vec![small, share(7, 0.0), large]));
    workload.write_size = Some(RequestSize::Fixed(4096));
    let mut counts = BTreeMap::new();
    for access in take(&mut source(&workload, 1 << 30), draws) {
        *counts.entry((access.kind, access.bytes)).or_insert(0) += 1;
        assert_eq!(access.offset_bytes % u64::from(access.bytes), 0);
    }
    let expected = [
        ((AccessKind::Read, 512), 0.45),
        ((AccessKind::Read, 65_536), 0.15),
        ((AccessKind::Write, 4096), 0.3),
        ((AccessKind::Trim, 4096), 0.1),
    ];
    assert_eq!(counts.len(), expected.len());
    for (what, share) in expected {
        assert!(near(counts[&what], draws, share), "{what:?}: {}", counts[&what]);
    }
    assert_eq!(workload.read_size.unwrap().mean_bytes(), 16_768.0);
}

#[test]
fn sequential_requests_follow_each_other_and_begin_again() {
    let offsets = |streams, capacity_bytes, count| -> Vec<u64> {
        let workload = workload(10, Pattern::Sequential { streams });
        let accesses = take(&mut source(&workload, capacity_bytes), count);
        accesses.iter().map(|access| access.offset_bytes).collect()
    };
    assert_eq!(offsets(1, 39, 5), [0, 10, 20, 0, 10]);
    // Two streams in parts of two requests; the second one includes the rest.
    assert_eq!(offsets(2, 59, 8), [0, 20, 10, 30, 0, 40, 10, 20]);
}

#[test]
fn sequential_requests_of_several_sizes_never_overlap_on_their_way() {
    let share = |bytes| SizeShare { bytes, weight: 1.0 };
    let mut workload = workload(1, Pattern::SEQUENTIAL);
    workload.size = Some(RequestSize::Mixed(vec![share(512), share(4096), share(1536)]));
    let accesses = take(&mut source(&workload, 1 << 20), 10_000);
    let again = accesses.windows(2).filter(|pair| pair[1].offset_bytes < pair[0].end_bytes());
    let again: Vec<_> = again.collect();
    assert!(again.len() > 10);
    // Only where the end was reached: there was no room for another one.
    assert!(again.iter().all(|pair| pair[1].offset_bytes == 0));
    assert!(again.iter().all(|pair| pair[0].end_bytes() > (1 << 20) - 8192));
}

#[test]
fn equal_seeds_give_equal_requests_and_others_give_others() {
    let patterns = [
        Pattern::Random,
        Pattern::Zipf { exponent: 1.0, scattered: true },
        Pattern::HotCold { hot_space: 0.1, hot_accesses: 0.9 },
    ];
    for pattern in patterns {
        let of = |seed| {
            let source = workload(4096, pattern).source(1 << 40, Rng::seeded(seed));
            take(&mut source.unwrap(), 1000)
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

#[test]
fn a_device_that_is_exactly_large_enough_is() {
    for pattern in [Pattern::Random, Pattern::SEQUENTIAL] {
        let workload = workload(8192, pattern);
        let mut exact = source(&workload, 8192);
        assert!(take(&mut exact, 10).iter().all(|access| access.offset_bytes == 0));
        let error = workload.source(8191, Rng::seeded(SEED)).unwrap_err().to_string();
        assert!(error.contains("8192 bytes") && error.contains("capacity of 8191"), "{error}");
    }
}

fn sizes() -> impl Strategy<Value = RequestSize> {
    let share = (1_u32..40_000, 0.1_f64..10.0);
    let share = share.prop_map(|(bytes, weight)| SizeShare { bytes, weight });
    prop_oneof![
        (1_u32..100_000).prop_map(RequestSize::Fixed),
        prop::collection::vec(share, 1..5).prop_map(RequestSize::Mixed),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Random),
        (1_u32..9).prop_map(|streams| Pattern::Sequential { streams }),
        (0.0..3.0, any::<bool>())
            .prop_map(|(exponent, scattered)| Pattern::Zipf { exponent, scattered }),
        (0.001..1.0, 0.0..1.0)
            .prop_map(|(hot_space, hot_accesses)| Pattern::HotCold { hot_space, hot_accesses }),
    ]
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::default()),
        (0.001..=1.0).prop_map(Span::Share),
        (1_u64..1 << 40).prop_map(Span::Bytes)
    ]
}

proptest! {
    /// Any workload is refused or stays on the device.
    #[test]
    fn requests_stay_on_the_device_and_are_aligned(
        (pattern, span) in (patterns(), spans()),
        (reads, writes) in (sizes(), sizes()),
        align_bytes in prop::option::of(1_u32..20_000),
        read_fraction in 0.0..=1.0,
        capacity_bytes in prop_oneof![1_u64..500_000, 1_u64..1 << 41],
        seed: u64,
    ) {
        let mut workload = BlockWorkload::new("any", reads, pattern);
        (workload.read_fraction, workload.span) = (read_fraction, span);
        (workload.write_size, workload.align_bytes) = (Some(writes), align_bytes);
        let Ok(mut source) = workload.source(capacity_bytes, Rng::seeded(seed)) else {
            return Ok(());
        };
        for access in take(&mut source, 300) {
            prop_assert!(access.bytes > 0 && access.end_bytes() <= capacity_bytes);
            if let Span::Bytes(span_bytes) = span {
                prop_assert!(access.end_bytes() <= span_bytes);
            }
            let align_bytes = u64::from(align_bytes.unwrap_or(access.bytes));
            prop_assert_eq!(access.offset_bytes % align_bytes, 0);
        }
    }

    /// Requests that fit ten times over are never refused.
    #[test]
    fn a_large_device_takes_all(pattern in patterns(), size in sizes(), seed: u64) {
        let workload = BlockWorkload::new("any", size, pattern);
        prop_assert!(workload.source(10 * 100_000, Rng::seeded(seed)).is_ok());
    }
}
