//! Choices computed by hand, and random ones compared with definitions written plainly.

use super::*;
use crate::registry::Parameter;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Six blocks of ten pages: block 2 is open, block 1 is the oldest, block 5 the youngest.
const VALID: [u16; 6] = [4, 9, 1 | NOT_CLOSED, 6, 4, 2];
const CLOSED: [u32; 6] = [12, 1, 0, 3, 9, 19];

fn six() -> Candidates<'static> {
    Candidates { valid: &VALID, closed: &CLOSED, now: 20, pages: 10 }
}

fn chosen(policy: VictimPolicy, candidates: &Candidates<'_>) -> Option<u32> {
    choose(policy, candidates, &mut Rng::seeded(1))
}

#[test]
fn choices_are_those_computed_by_hand() {
    // Fewest valid pages: block 5 has 2.
    assert_eq!(chosen(VictimPolicy::GREEDY, &six()), Some(5));
    // Ages: 8, 19, -, 17, 11, 1.
    assert_eq!(chosen(VictimPolicy::FIFO, &six()), Some(1));
    // (1 - u) / 2u * age: 6.0, 1.06, -, 5.67, 8.25, 2.0.
    assert_eq!(chosen(VictimPolicy::COST_BENEFIT, &six()), Some(4));
    // The three oldest are 1, 3 and 4.
    assert_eq!(chosen(VictimPolicy::windowed_greedy(3), &six()), Some(4));
    assert_eq!(chosen(VictimPolicy::windowed_greedy(2), &six()), Some(3));
    assert_eq!(chosen(VictimPolicy::windowed_greedy(1), &six()), Some(1));
    assert_eq!(chosen(VictimPolicy::windowed_greedy(9), &six()), Some(5));
    // So many random ones are all blocks.
    assert_eq!(chosen(VictimPolicy::d_choices(1000), &six()), Some(5));
}

#[test]
fn of_equals_the_first_or_the_oldest_is_chosen() {
    let valid = [5, 3, 3, 3];
    let equal = Candidates { valid: &valid, closed: &[7, 9, 8, 8], now: 10, pages: 10 };
    assert_eq!(chosen(VictimPolicy::GREEDY, &equal), Some(1));
    assert_eq!(chosen(VictimPolicy::COST_BENEFIT, &equal), Some(2));
    assert_eq!(chosen(VictimPolicy::windowed_greedy(4), &equal), Some(2));
    assert_eq!(chosen(VictimPolicy::FIFO, &Candidates { closed: &[8; 4], ..equal }), Some(0));
}

#[test]
fn an_empty_block_is_collected_at_once_and_a_full_one_last() {
    let valid = [10, 0, 1, 0];
    let some = Candidates { valid: &valid, closed: &[0, 90, 1, 80], now: 100, pages: 10 };
    assert_eq!(chosen(VictimPolicy::COST_BENEFIT, &some), Some(3));
    let full = Candidates { valid: &[10, 9], closed: &[0, 99], now: 100, pages: 10 };
    assert_eq!(chosen(VictimPolicy::COST_BENEFIT, &full), Some(1));
}

#[test]
fn ages_are_right_when_the_counter_of_closed_blocks_wraps() {
    let wrapped = Candidates { valid: &[5, 5], closed: &[1, u32::MAX - 3], now: 3, pages: 10 };
    for policy in [VictimPolicy::FIFO, VictimPolicy::COST_BENEFIT, VictimPolicy::windowed_greedy(1)]
    {
        assert_eq!(chosen(policy, &wrapped), Some(1), "{policy}");
    }
}

#[test]
fn nothing_is_chosen_where_no_block_is_closed() {
    let open = [NOT_CLOSED, NOT_CLOSED | 3];
    for policy in all() {
        let none = Candidates { valid: &open, closed: &[0; 2], now: 1, pages: 4 };
        assert_eq!(chosen(policy, &none), None, "{policy}");
        let empty = Candidates { valid: &[], closed: &[], now: 1, pages: 4 };
        assert_eq!(chosen(policy, &empty), None, "{policy}");
    }
}

#[test]
fn two_choices_are_as_often_the_better_block_as_they_should_be() {
    let two = Candidates { valid: &[1, 2], closed: &[0; 2], now: 1, pages: 4 };
    let mut rng = Rng::seeded(3);
    let worse =
        (0..40_000).filter(|_| choose(VictimPolicy::d_choices(2), &two, &mut rng) == Some(1));
    // Both draws hit the worse one in a quarter of all cases; four standard deviations.
    assert!(worse.count().abs_diff(10_000) < 347);
}

#[test]
fn few_closed_blocks_among_many_are_found() {
    let mut valid = vec![NOT_CLOSED; 100_000];
    valid[70_000] = 3;
    let closed = vec![0; valid.len()];
    let few = Candidates { valid: &valid, closed: &closed, now: 1, pages: 4 };
    assert_eq!(chosen(VictimPolicy::d_choices(2), &few), Some(70_000));
}

/// Every policy of the registry, with parameters of 8 or as near as may be.
fn all() -> impl Iterator<Item = VictimPolicy> {
    Victim::ENTRIES.iter().map(|entry| {
        let near =
            |parameter: &Parameter| 8.clamp(*parameter.range.start(), *parameter.range.end());
        let numbers: Vec<u32> = entry.parameters.iter().map(near).collect();
        Policy::with(entry, &numbers)
    })
}

#[test]
fn every_policy_chooses_a_closed_block_if_there_is_one_and_the_same_from_equal_views() {
    for seed in 0..500 {
        let mut rng = Rng::seeded(seed);
        let blocks = 1 + rng.below(60) as usize;
        let open = rng.unit_f64();
        let valid: Vec<u16> = (0..blocks)
            .map(|_| rng.below(9) as u16 | if rng.chance(open) { NOT_CLOSED } else { 0 })
            .collect();
        let closed: Vec<u32> = (0..blocks).map(|_| rng.below(100) as u32).collect();
        let some = Candidates { valid: &valid, closed: &closed, now: 100, pages: 8 };
        let any = valid.iter().any(|&valid| valid < NOT_CLOSED);
        for policy in all() {
            let found = choose(policy, &some, &mut rng.clone());
            assert_eq!(choose(policy, &some, &mut rng.clone()), found, "seed {seed}, {policy}");
            let is_closed = found.map(|block| valid[block as usize] < NOT_CLOSED);
            assert_eq!(is_closed, any.then_some(true), "seed {seed}, {policy}");
        }
    }
}

/// The definition of a policy, by sorting all closed blocks; `None` for random choices.
fn plainly(policy: VictimPolicy, some: &Candidates<'_>) -> Option<usize> {
    let mut closed: Vec<usize> =
        (0..some.valid.len()).filter(|&block| some.valid[block] & NOT_CLOSED == 0).collect();
    let age = |block: usize| some.now.wrapping_sub(some.closed[block]);
    let score = |block: usize| {
        let u = f64::from(some.valid[block]) / f64::from(some.pages);
        if u == 0.0 { f64::INFINITY } else { (1.0 - u) / (2.0 * u) * f64::from(age(block)) }
    };
    let by_age = |a: usize, b: usize| age(b).cmp(&age(a)).then(a.cmp(&b));
    match policy.name() {
        "greedy" => closed.sort_by_key(|&block| (some.valid[block], block)),
        "fifo" => closed.sort_by(|&a, &b| by_age(a, b)),
        "cost-benefit" => closed.sort_by(|&a, &b| {
            let (of_a, of_b) = (score(a), score(b));
            // Quotients that should be equal may differ in their last bit.
            let near = of_a == of_b || (of_a - of_b).abs() < 1e-12 * of_a.max(of_b);
            if near { by_age(a, b) } else { of_b.partial_cmp(&of_a).unwrap_or(Ordering::Equal) }
        }),
        "windowed-greedy" => {
            closed.sort_by(|&a, &b| by_age(a, b));
            closed.truncate(policy.numbers()[0] as usize);
            closed.sort_by(|&a, &b| some.valid[a].cmp(&some.valid[b]).then(by_age(a, b)));
        }
        _ => {}
    }
    closed.first().copied()
}

#[test]
fn random_choices_are_those_of_the_definitions() {
    for seed in 0..2000 {
        let mut rng = Rng::seeded(seed);
        let blocks = 1 + rng.below(80) as usize;
        let pages = 1 + rng.below(40) as u32;
        let now = rng.next_u64() as u32;
        let open_rate = rng.unit_f64();
        let valid: Vec<u16> = (0..blocks)
            .map(|_| {
                let open = if rng.chance(open_rate) { NOT_CLOSED } else { 0 };
                rng.below(u64::from(pages) + 1) as u16 | open
            })
            .collect();
        // Few different ages, so that many are equal.
        let ages = 1 + rng.below(100);
        let closed: Vec<u32> =
            (0..blocks).map(|_| now.wrapping_sub(1 + rng.below(ages) as u32)).collect();
        let some = Candidates { valid: &valid, closed: &closed, now, pages };
        let window = VictimPolicy::windowed_greedy(1 + rng.below(90) as u32);
        for policy in [VictimPolicy::GREEDY, VictimPolicy::FIFO, VictimPolicy::COST_BENEFIT, window]
        {
            let wanted = plainly(policy, &some).map(|block| block as u32);
            assert_eq!(choose(policy, &some, &mut rng), wanted, "seed {seed}, {policy}: {some:?}");
        }
        // A random choice is closed, and the same again from an equal generator.
        let random = VictimPolicy::d_choices(1 + rng.below(9) as u32);
        let found = choose(random, &some, &mut rng.clone());
        assert_eq!(choose(random, &some, &mut rng.clone()), found, "seed {seed}");
        let any = plainly(VictimPolicy::GREEDY, &some).is_some();
        assert_eq!(found.map(|block| valid[block as usize] < NOT_CLOSED), any.then_some(true));
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Layout {
    victim: VictimPolicy,
}

#[test]
fn the_text_of_a_policy_gives_the_policy() {
    for (policy, text) in [
        (VictimPolicy::GREEDY, "greedy"),
        (VictimPolicy::FIFO, "fifo"),
        (VictimPolicy::COST_BENEFIT, "cost-benefit"),
        (VictimPolicy::d_choices(8), "d-choices:8"),
        (VictimPolicy::windowed_greedy(64), "windowed-greedy:64"),
        (VictimPolicy::aged_cost_benefit(75), "aged-cost-benefit:75"),
    ] {
        assert_eq!(policy.to_string(), text);
        let toml = format!("victim = \"{text}\"\n");
        assert_eq!(toml::from_str::<Layout>(&toml).unwrap(), Layout { victim: policy });
        assert_eq!(toml::to_string(&Layout { victim: policy }).unwrap(), toml);
    }
}

#[test]
fn the_text_of_no_policy_is_refused_with_those_that_there_are() {
    for text in ["", "gredy", "greedy:2", "d-choices", "d-choices:0", "d-choices:+3", "fifo:"] {
        let error = text.parse::<VictimPolicy>().unwrap_err().to_string();
        assert!(error.contains(&format!("unknown victim policy `{text}`")), "{error}");
        assert!(error.contains("`fifo`, `cost-benefit`, `d-choices:D` (D from 1)"), "{error}");
    }
    let error = "aged-cost-benefit:101".parse::<VictimPolicy>().unwrap_err().to_string();
    assert!(error.contains("PERCENT from 1 to 100"), "{error}");
    let error = toml::from_str::<Layout>("victim = \"worst\"").unwrap_err().to_string();
    assert!(error.contains("`worst`") && error.contains("`greedy`"), "{error}");
}
