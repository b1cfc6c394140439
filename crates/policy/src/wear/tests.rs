//! Choices computed by hand, and random ones compared with definitions written plainly.

use super::*;
use crate::victim::NOT_CLOSED;
use softflash_base::random::Rng;

#[test]
fn the_free_block_is_the_first_or_the_least_worn() {
    let view = FreeView { free: (&[3, 0], &[2, 4]), erases: &[5, 1, 5, 9, 6] };
    assert_eq!(choose_free(WearPolicy::FIFO, &view), Some(0));
    // Blocks 0 and 2 have 5 erases, and 0 was erased first.
    assert_eq!(choose_free(WearPolicy::DYNAMIC, &view), Some(1));
    assert_eq!(choose_free(WearPolicy::level_by(1), &view), Some(1));
    let none = FreeView { free: (&[], &[]), erases: &[] };
    for policy in [WearPolicy::FIFO, WearPolicy::DYNAMIC, WearPolicy::level_by(1)] {
        assert_eq!(choose_free(policy, &none), None, "{policy}");
    }
}

#[test]
fn the_coldest_block_is_levelled_above_the_threshold_only() {
    // Block 1 has the fewest erases, but is open; block 3 the most, and is free.
    let view = WearView { valid: &[7, 2 | NOT_CLOSED, 8, NOT_CLOSED], erases: &[6, 1, 4, 9] };
    assert_eq!(level(WearPolicy::level_by(4), &view), Some(2));
    assert_eq!(level(WearPolicy::level_by(5), &view), None);
    assert_eq!(level(WearPolicy::DYNAMIC, &view), None);
    let open = WearView { valid: &[NOT_CLOSED; 2], erases: &[0, 100] };
    assert_eq!(level(WearPolicy::level_by(1), &open), None);
}

#[test]
fn random_choices_are_those_of_the_definitions() {
    for seed in 0..2000 {
        let mut rng = Rng::seeded(seed);
        let blocks = 1 + rng.below(40);
        let erases: Vec<u32> = (0..blocks).map(|_| rng.below(12) as u32).collect();
        let open = rng.unit_f64();
        let valid: Vec<u16> = (0..blocks)
            .map(|_| rng.below(9) as u16 | if rng.chance(open) { NOT_CLOSED } else { 0 })
            .collect();
        let threshold = 1 + rng.below(12) as u32;
        let mut wanted = None;
        for block in 0..erases.len() {
            let behind = erases.iter().any(|&other| other > erases[block] + threshold);
            let fewer = wanted.is_none_or(|least: usize| erases[block] < erases[least]);
            if valid[block] < NOT_CLOSED && behind && fewer {
                wanted = Some(block);
            }
        }
        let view = WearView { valid: &valid, erases: &erases };
        let found = level(WearPolicy::level_by(threshold), &view).map(|block| block as usize);
        assert_eq!(found, wanted, "seed {seed}");

        let mut free: Vec<u32> = (0..blocks as u32).collect();
        rng.shuffle(&mut free);
        free.truncate(rng.below(blocks + 1) as usize);
        let mut wanted: Option<usize> = None;
        for (place, &block) in free.iter().enumerate() {
            if wanted.is_none_or(|at| erases[block as usize] < erases[free[at] as usize]) {
                wanted = Some(place);
            }
        }
        let parts = free.split_at(free.len() / 2);
        let view = FreeView { free: parts, erases: &erases };
        assert_eq!(choose_free(WearPolicy::DYNAMIC, &view), wanted, "seed {seed}");
    }
}

#[test]
fn the_text_of_a_policy_gives_the_policy() {
    for (policy, text) in [
        (WearPolicy::FIFO, "fifo"),
        (WearPolicy::DYNAMIC, "dynamic"),
        (WearPolicy::level_by(20), "static:20"),
    ] {
        assert_eq!((policy.to_string().as_str(), text.parse()), (text, Ok(policy)));
    }
    for text in ["", "static", "static:0", "static:-1", "dynamic:3", "round-robin"] {
        let error = text.parse::<WearPolicy>().unwrap_err().to_string();
        assert!(error.contains(&format!("unknown wear policy `{text}`")), "{error}");
        assert!(error.contains("`static:N` (N from 1)"), "{error}");
    }
}
