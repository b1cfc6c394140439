//! Requests of key-value clients.

#![expect(clippy::unwrap_used, reason = "a helper of tests")]
#![expect(clippy::print_stdout, reason = "tests print their seed")]

use softflash_base::random::Rng;
use softflash_workload::{KvAccess, KvKind, KvOrder, KvSource, KvWorkload, Operation, ValueSize};

const SEED: u64 = 9;

fn workload(order: KvOrder, operation: Operation, keys: u64) -> KvWorkload {
    KvWorkload {
        slices: 4,
        clients: 3,
        order,
        operation,
        keys_per_slice: Some(keys),
        ..KvWorkload::new("test")
    }
}

fn source(workload: &KvWorkload, slice: u32, client: u32) -> KvSource {
    println!("seed {SEED}");
    workload.source(slice, client, &Rng::seeded(SEED)).unwrap()
}

fn take(mut source: KvSource, count: usize) -> Vec<KvAccess> {
    (0..count).map(|_| source.next()).collect()
}

fn near(count: usize, draws: usize, share: f64) -> bool {
    let expected = draws as f64 * share;
    (count as f64 - expected).abs() < 4.0 * (expected * (1.0 - share)).sqrt()
}

#[test]
fn clients_have_requests_of_their_own_that_depend_on_nobody() {
    let workload = workload(KvOrder::Uniform, Operation::Read, 1 << 30);
    let of = |slice, client| take(source(&workload, slice, client), 100);
    assert_eq!(of(2, 1), of(2, 1));
    let keys =
        |slice, client| of(slice, client).iter().map(|access| access.key).collect::<Vec<_>>();
    assert_ne!(keys(2, 1), keys(2, 2));
    assert_ne!(keys(2, 1), keys(1, 1));
    assert!(of(2, 1).iter().all(|access| access.slice == 2 && access.kind == KvKind::Read));
}

#[test]
fn keys_in_order_begin_spread_and_come_round() {
    let workload = workload(KvOrder::InOrder, Operation::Read, 10);
    let keys = |client| -> Vec<u64> {
        take(source(&workload, 0, client), 11).iter().map(|access| access.key).collect()
    };
    assert_eq!(keys(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(keys(1)[..4], [3, 4, 5, 6]);
    assert_eq!(keys(2)[..5], [6, 7, 8, 9, 0]);
}

#[test]
fn strided_keys_go_through_all_in_passes_from_a_random_one_on() {
    for (all, stride) in [(10, 4), (12, 4), (45, 15), (7, 1), (7, 7), (5, 9)] {
        let workload = workload(KvOrder::Strided { keys: stride }, Operation::Read, all);
        let accesses = take(source(&workload, 1, 2), 2 * all as usize);
        let keys: Vec<u64> = accesses.iter().map(|access| access.key).collect();
        let mut round = keys[..all as usize].to_vec();
        for pair in keys.windows(2) {
            let further = pair[0] + stride;
            let next_pass = (pair[0] % stride + 1) % stride.min(all);
            assert_eq!(pair[1], if further < all { further } else { next_pass }, "{keys:?}");
        }
        round.sort_unstable();
        assert!(round.into_iter().eq(0..all), "{all} by {stride}: {keys:?}");
    }
    let workload = workload(KvOrder::Strided { keys: 15 }, Operation::Read, 1 << 30);
    let first = |slice, client| take(source(&workload, slice, client), 1)[0].key;
    assert_eq!(first(0, 0), first(0, 0));
    assert!(first(0, 0) != first(1, 0) && first(0, 0) != first(0, 1));
}

#[test]
fn the_clients_of_a_slice_agree_on_what_is_popular() {
    let (keys, draws) = (500_u32, 300_000);
    let workload = workload(KvOrder::Zipf { exponent: 1.0 }, Operation::Read, keys.into());
    let harmonic: f64 = (1..=keys).map(|rank| 1.0 / f64::from(rank)).sum();
    let ranked = |slice, client| {
        let mut counts = vec![(0_usize, 0_usize); keys as usize];
        for access in take(source(&workload, slice, client), draws) {
            let key = access.key as usize;
            counts[key] = (counts[key].0 + 1, key);
        }
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts
    };
    let (one, other, elsewhere) = (ranked(0, 0), ranked(0, 1), ranked(1, 0));
    let first = |counts: &[(usize, usize)]| counts[..3].iter().map(|c| c.1).collect::<Vec<_>>();
    assert_eq!(first(&one), first(&other));
    assert_ne!(first(&one), first(&elsewhere));
    assert!(near(one[0].0, draws, 1.0 / harmonic), "{:?}", one[0]);
    assert!(near(one[4].0, draws, 0.2 / harmonic), "{:?}", one[4]);
    assert!(one.iter().all(|&(count, _)| count > 0));
}

#[test]
fn values_have_sizes_within_the_range_and_keep_them() {
    let mut workload =
        workload(KvOrder::InOrder, Operation::Mixed { read_fraction: 0.25 }, 100_000);
    workload.value_bytes = ValueSize::Range { min: 1000, max: 2999 };
    let accesses = take(source(&workload, 0, 0), 200_000);
    let (round, again) = accesses.split_at(100_000);
    assert!(round.iter().zip(again).all(|(one, other)| one.bytes == other.bytes));
    assert!(round.iter().all(|access| (1000..=2999).contains(&access.bytes)));
    for tenth in 0..10 {
        let sizes = 1000 + tenth * 200..1200 + tenth * 200;
        let count = round.iter().filter(|access| sizes.contains(&access.bytes)).count();
        assert!(near(count, 100_000, 0.1), "{sizes:?}: {count}");
    }
    let reads = accesses.iter().filter(|access| access.kind == KvKind::Read).count();
    assert!(near(reads, 200_000, 0.25), "{reads}");
}

#[test]
fn scans_begin_at_keys_and_have_their_length() {
    let workload = workload(KvOrder::Uniform, Operation::Scan { scan_bytes: 8 << 20 }, 50);
    let accesses = take(source(&workload, 3, 0), 1000);
    assert!(accesses.iter().all(|access| access.key < 50 && access.bytes == 8 << 20));
    assert!(accesses.iter().all(|access| access.kind == KvKind::Scan));
}

#[test]
fn scans_in_order_begin_where_the_last_one_ended() {
    let mut workload = workload(KvOrder::InOrder, Operation::Scan { scan_bytes: 4096 }, 90);
    (workload.value_bytes, workload.key_bytes) = (ValueSize::Fixed(80), 20);
    let keys: Vec<u64> = take(source(&workload, 0, 1), 4).iter().map(|access| access.key).collect();
    assert_eq!(keys, [30, 70, 0, 40]);
}

#[test]
fn an_amount_of_data_comes_to_a_number_of_keys() {
    let mut workload = KvWorkload::new("test");
    (workload.keys_per_slice, workload.data_bytes_per_slice) = (None, Some(1 << 30));
    workload.value_bytes = ValueSize::Range { min: 100_000, max: 1_000_000 };
    assert_eq!(workload.keys(), (1 << 30) / 550_016);
    let maker = workload.key_maker(b"{12}").unwrap();
    assert_eq!(&maker.key(1951)[..], b"{12}000000001951");
}
