//! Choices computed by hand, and random ones compared with definitions written plainly.

use super::*;
use softflash_base::random::Rng;

/// Four candidates on two dies; candidate 2 is full, and candidate 3 is next.
fn four() -> Candidates<'static> {
    Candidates {
        occupied: &[5, 9, 10, 7],
        most: 10,
        erases: &[4, 2, 0, 4],
        die: &[0, 1, 0, 1],
        waiting: &[3, 1],
        cursor: 3,
    }
}

#[test]
fn choices_are_those_computed_by_hand() {
    assert_eq!(choose(PlacementPolicy::ROUND_ROBIN, &four()), Some(3));
    assert_eq!(choose(PlacementPolicy::ROUND_ROBIN, &Candidates { cursor: 2, ..four() }), Some(3));
    // Die 1 has the shorter queue, and candidate 3 of it is first in turn.
    assert_eq!(choose(PlacementPolicy::LEAST_QUEUE, &four()), Some(3));
    let other = Candidates { waiting: &[0, 1], ..four() };
    assert_eq!(choose(PlacementPolicy::LEAST_QUEUE, &other), Some(0));
    // The mean of candidates 0, 1 and 3 is 5/3, so candidate 0 is behind; 1 is less worn than 3.
    assert_eq!(choose(PlacementPolicy::LEAST_WORN, &four()), Some(1));
    // All wait for as much: the fewest erases, of equals the next in turn.
    let level = Candidates { waiting: &[2, 2], erases: &[4, 4, 0, 4], ..four() };
    assert_eq!(choose(PlacementPolicy::LEAST_WORN, &level), Some(3));
}

#[test]
fn nothing_is_chosen_where_no_candidate_has_room() {
    let full = Candidates { most: 5, ..four() };
    for entry in Placement::ENTRIES.iter().filter(|entry| entry.parameters.is_empty()) {
        assert_eq!(choose(Policy::of(entry), &full), None, "{}", entry.name);
    }
}

#[test]
fn random_choices_are_those_of_the_definitions() {
    for seed in 0..2000 {
        let mut rng = Rng::seeded(seed);
        let (candidates, dies) = (1 + rng.below(12) as usize, 1 + rng.below(4));
        let mut column =
            |below| (0..candidates).map(|_| rng.below(below) as u32).collect::<Vec<u32>>();
        let (occupied, erases, die, waiting) = (column(10), column(5), column(dies), column(6));
        let view = Candidates {
            occupied: &occupied,
            most: 7,
            erases: &erases,
            die: &die,
            waiting: &waiting[..(dies as usize).min(candidates)],
            cursor: rng.below(candidates as u64) as u32,
        };
        if die.iter().any(|&die| die as usize >= view.waiting.len()) {
            continue;
        }
        let mut order: Vec<usize> = (0..candidates).collect();
        order.rotate_left(view.cursor as usize);
        order.retain(|&it| occupied[it] < 7);
        let queue = |candidate: usize| waiting[die[candidate] as usize];
        let mean =
            order.iter().map(|&it| f64::from(queue(it))).sum::<f64>() / order.len().max(1) as f64;
        let mut by_queue = order.clone();
        by_queue.sort_by_key(|&it| queue(it));
        let mut by_wear = order.clone();
        by_wear.retain(|&it| f64::from(queue(it)) <= mean + 1e-9);
        by_wear.sort_by_key(|&it| erases[it]);
        let (mut by_load, mut by_room) = (order.clone(), order.clone());
        by_load.sort_by_key(|&it| (queue(it), occupied[it]));
        by_room.sort_by_key(|&it| (occupied[it], queue(it)));
        for (policy, wanted) in [
            (PlacementPolicy::LEAST_LOADED, by_load.first()),
            (PlacementPolicy::MOST_FREE, by_room.first()),
            (PlacementPolicy::ROUND_ROBIN, order.first()),
            (PlacementPolicy::LEAST_QUEUE, by_queue.first()),
            (PlacementPolicy::LEAST_WORN, by_wear.first()),
        ] {
            let wanted = wanted.map(|&it| it as u32);
            assert_eq!(choose(policy, &view), wanted, "seed {seed}, {policy}: {view:?}");
        }
    }
}

#[test]
fn the_static_stripe_goes_over_channels_then_dies_then_planes() {
    // Two channels of two dies of two planes.
    assert_eq!(static_stripe::positions(2, 2, 2), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(static_stripe::positions(3, 1, 1), [0, 1, 2]);
}

#[test]
fn hints_beyond_the_last_class_belong_to_it() {
    assert_eq!([0, 1, 2, 700].map(|hint| by_hint::class(hint, 3)), [0, 1, 2, 2]);
}

#[test]
fn the_text_of_a_policy_gives_the_policy() {
    for (policy, text) in [
        (PlacementPolicy::STATIC, "static"),
        (PlacementPolicy::ROUND_ROBIN, "round-robin"),
        (PlacementPolicy::LEAST_QUEUE, "least-queue"),
        (PlacementPolicy::LEAST_WORN, "least-worn"),
        (PlacementPolicy::by_hint(3), "by-hint:3"),
    ] {
        assert_eq!((policy.to_string().as_str(), text.parse()), (text, Ok(policy)));
    }
    for text in ["", "by-hint", "by-hint:1", "by-hint:9", "by-hint:+2", "random", "static:2"] {
        let error = text.parse::<PlacementPolicy>().unwrap_err().to_string();
        assert!(error.contains(&format!("unknown placement `{text}`")), "{error}");
        assert!(error.contains("`by-hint:CLASSES` (CLASSES from 2 to 8)"), "{error}");
    }
}
