//! Classes computed by hand.

use super::*;

fn policy(text: &str) -> LifetimePolicy {
    text.parse().unwrap()
}

fn write(age: u32) -> Write {
    Write {
        age: Some(age),
        clock: 5000,
        continues: None,
        foretold: None,
        capacity: 1000,
        short: 40,
    }
}

fn moved(class: u32, age: u32) -> Moved {
    Moved { class, age, foretold: None, capacity: 1000, short: 40 }
}

#[test]
fn every_policy_keeps_to_its_classes_and_none_has_one() {
    assert_eq!(LifetimePolicy::default(), LifetimePolicy::NONE);
    assert_eq!(classes(LifetimePolicy::NONE), 1);
    for text in ["none", "interval:2", "interval:8", "decay:3", "sfr:5", "sepbit", "oracle:4"] {
        let (policy, mut estimate) = (policy(text), Estimate::default());
        let count = classes(policy);
        assert!((1..=MOST_CLASSES).contains(&count), "{text}");
        for age in [None, Some(0), Some(1), Some(999), Some(1000), Some(u32::MAX)] {
            for (capacity, short) in [(1, 0), (1000, 40), (u32::MAX, u32::MAX)] {
                let write = Write { age, capacity, short, ..write(0) };
                let class = class_of_write(policy, &write, &mut estimate);
                assert!(class < count, "{text}: {class} of {age:?}");
                let age = age.unwrap_or(0);
                let moved = Moved { class, age, foretold: None, capacity, short };
                let moved = class_of_moved(policy, &moved);
                assert!(moved < count && moved >= class, "{text}: {moved} after {class}");
            }
        }
    }
}

#[test]
fn the_interval_between_writes_gives_the_class_and_a_move_the_next_one() {
    let policy = policy("interval:4");
    let class = |write: Write| class_of_write(policy, &write, &mut Estimate::default());
    assert_eq!(
        [1000, 999, 500, 499, 250, 249, 0].map(|age| class(write(age))),
        [3, 2, 2, 1, 1, 0, 0]
    );
    assert_eq!(
        class(Write { age: None, ..write(0) }),
        3,
        "nothing says that it will be overwritten"
    );
    assert_eq!([0, 1, 2, 3].map(|class| class_of_moved(policy, &moved(class, 5))), [1, 2, 3, 3]);
}

#[test]
fn a_decaying_average_follows_the_last_lifetimes() {
    let (policy, mut estimate) = (policy("decay:4"), Estimate::default());
    let mut class = |age| class_of_write(policy, &Write { age, ..write(0) }, &mut estimate);
    assert_eq!(class(None), 3, "a chunk that was never overwritten");
    // The averages: 800, 400, 200, 600, 800.
    assert_eq!(class(Some(800)), 2);
    assert_eq!(class(Some(0)), 1);
    assert_eq!(class(None), 1, "a first write changes no average");
    assert_eq!(class(Some(0)), 0);
    assert_eq!(class(Some(1000)), 2);
    assert_eq!(class(Some(1000)), 2);
    assert_eq!(estimate.lifetime, 800);
}

#[test]
fn counts_of_writes_halve_in_each_writing_of_the_drive() {
    let (policy, mut estimate) = (policy("sfr:4"), Estimate::default());
    // Each page of the range is written this often, at this clock.
    let mut class_after = |times: u32, clock: u32| {
        let write = Write { clock, ..write(0) };
        let classes =
            (0..times * CHUNK_PAGES).map(|_| class_of_write(policy, &write, &mut estimate));
        classes.last().unwrap()
    };
    assert_eq!(class_after(1, 5000), 3);
    assert_eq!(class_after(1, 5000), 2, "twice");
    assert_eq!(class_after(2, 5000), 1, "four times");
    assert_eq!(class_after(2, 6000), 1, "four of a period ago are two");
    assert_eq!(class_after(12, 6000), 0);
    // 16 times, three periods ago, are two; with half of a period more, one and a half.
    assert_eq!(class_after(1, 9500), 2);
    assert_eq!(class_after(1, 200_000), 3, "long ago");
}

#[test]
fn a_write_that_continues_another_one_has_its_class() {
    let (policy, mut estimate) = (policy("sfr:4"), Estimate::default());
    let write = Write { continues: Some(1), ..write(0) };
    assert_eq!(class_of_write(policy, &write, &mut estimate), 1);
    assert_eq!(estimate.last, 5000, "it is counted nevertheless");
}

#[test]
fn the_oracle_takes_the_lifetime_that_the_host_foretells() {
    let policy = policy("oracle:3");
    assert!(policy.is_foretold() && !LifetimePolicy::default().is_foretold());
    let class = |foretold| {
        class_of_write(policy, &Write { foretold, ..write(7) }, &mut Estimate::default())
    };
    assert_eq!([0, 499, 500, 999, 1000, u32::MAX].map(|age| class(Some(age))), [0, 0, 1, 1, 2, 2]);
    assert_eq!(class(None), 2);
    let left = |left| Moved { foretold: Some(left), ..moved(0, 5000) };
    assert_eq!([3, 600, 5000].map(|age| class_of_moved(policy, &left(age))), [0, 1, 2]);
}

#[test]
fn sepbit_compares_lifetimes_and_ages_with_that_of_short_lived_blocks() {
    let policy = policy("sepbit");
    let class = |write: Write| class_of_write(policy, &write, &mut Estimate::default());
    assert_eq!([39, 40].map(|age| class(write(age))), [0, 1]);
    assert_eq!(class(Write { age: None, ..write(0) }), 1);
    assert_eq!(class(Write { short: u32::MAX, ..write(5000) }), 0, "before any is known");
    assert_eq!(class_of_moved(policy, &moved(0, 5000)), 2);
    let ages = [159, 160, 639, 640].map(|age| class_of_moved(policy, &moved(1, age)));
    assert_eq!(ages, [3, 4, 4, 5]);
}
