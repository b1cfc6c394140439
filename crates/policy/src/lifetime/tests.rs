//! Classes computed by hand.

use super::*;

fn policy(text: &str) -> LifetimePolicy {
    text.parse().unwrap()
}

fn write(age: u32) -> Write {
    Write { age: Some(age), capacity: 1000, short: 40 }
}

fn moved(class: u32, age: u32) -> Moved {
    Moved { class, age, capacity: 1000, short: 40 }
}

#[test]
fn every_policy_keeps_to_its_classes_and_none_has_one() {
    assert_eq!(LifetimePolicy::default(), LifetimePolicy::NONE);
    assert_eq!(classes(LifetimePolicy::NONE), 1);
    for text in ["none", "interval:2", "interval:8", "decay:3", "sepbit"] {
        let (policy, mut estimate) = (policy(text), Estimate::default());
        let count = classes(policy);
        assert!((1..=MOST_CLASSES).contains(&count), "{text}");
        for age in [None, Some(0), Some(1), Some(999), Some(1000), Some(u32::MAX)] {
            for (capacity, short) in [(1, 0), (1000, 40), (u32::MAX, u32::MAX)] {
                let class = class_of_write(policy, &Write { age, capacity, short }, &mut estimate);
                assert!(class < count, "{text}: {class} of {age:?}");
                let age = age.unwrap_or(0);
                let moved = class_of_moved(policy, &Moved { class, age, capacity, short });
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
