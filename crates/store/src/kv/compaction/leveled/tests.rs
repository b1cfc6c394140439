use super::*;
use crate::kv::testing::{deletion, fragment, lost_patch, patch, patch_of, tree, value};
use softflash_blocks::{BlockId, BlockLayer, Redundancy};
use softflash_testing::on_blocks;

/// Without space for runs that gather.
const OPTIONS: Options = Options {
    level0_runs: 2,
    gathered_runs: 12,
    base_bytes: 10_000,
    fanout: 8,
    room_blocks: 100,
    merge_blocks: 0,
    spare_blocks: 0,
    part_blocks: 100,
    patch_bytes: 0,
};
const SPACIOUS: Options = Options { spare_blocks: 100, ..OPTIONS };

/// The keys between which the inputs of each run lie.
fn bounds(choice: &Choice) -> Vec<Vec<(String, String)>> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let of_patch = |patch: &Rc<Patch>| (text(patch.first_key()), text(patch.last_key()));
    choice.inputs.iter().map(|run| run.patches.iter().map(of_patch).collect()).collect()
}

fn pairs(keys: &[(&str, &str)]) -> Vec<(String, String)> {
    keys.iter().map(|(first, last)| ((*first).to_owned(), (*last).to_owned())).collect()
}

fn choose(tree: &Tree) -> Option<Choice> {
    Leveled::default().choose(tree, &OPTIONS, false)
}

fn under_pressure(tree: &Tree) -> Option<Choice> {
    Leveled::default().choose(tree, &OPTIONS, true)
}

fn with_blocks(test: impl AsyncFnOnce(&BlockLayer)) {
    on_blocks(Redundancy::None, async |blocks, _| test(blocks).await);
}

#[test]
fn level_0_merges_its_oldest_runs_once_there_are_enough() {
    with_blocks(async |blocks| {
        let runs = ["ac", "bd", "ce"].map(|keys| patch(blocks, &keys[..1], &keys[1..], 10));
        assert!(choose(&Tree::default()).is_none());
        assert!(choose(&tree(&[(0, 1, &runs[0])])).is_none());
        let choice = choose(&tree(&[(0, 1, &runs[0]), (0, 2, &runs[1])])).unwrap();
        assert_eq!((choice.from, choice.to, choice.bottom), (0, 1, true));
        assert_eq!(bounds(&choice), [pairs(&[("b", "d")]), pairs(&[("a", "c")])]);
        let three = tree(&[(0, 1, &runs[0]), (0, 2, &runs[1]), (0, 3, &runs[2])]);
        let choice = choose(&three).unwrap();
        assert_eq!(bounds(&choice), [pairs(&[("b", "d")]), pairs(&[("a", "c")])], "the oldest");
        let numbers: Vec<u64> = choice.inputs.iter().map(|run| run.number).collect();
        assert_eq!(numbers, [2, 1], "newest first");
    });
}

#[test]
fn runs_gather_in_level_0_until_their_merge_pays() {
    with_blocks(async |blocks| {
        let runs: [_; 12] = std::array::from_fn(|_| patch(blocks, "a", "z", 1000));
        let below = patch(blocks, "a", "z", 4000);
        let merged = |count: usize, options: &Options, below: &[&Rc<Patch>]| {
            let above = (1..).zip(&runs[..count]).map(|(run, patch)| (0, run, patch));
            let all: Vec<_> = above.chain(below.iter().map(|patch| (1, 0, *patch))).collect();
            let mut policy = Leveled { has_merged: true, ..Leveled::default() };
            let choice = policy.choose(&tree(&all), options, false);
            choice.map(|choice| choice.inputs.len() - below.len())
        };
        let share = below.bytes() as f64 * PAYING_SHARE / runs[0].bytes() as f64;
        assert_eq!(share.ceil(), 5.0);
        assert_eq!(merged(4, &SPACIOUS, &[&below]), None);
        assert_eq!(merged(5, &SPACIOUS, &[&below]), Some(5), "all of them");
        assert_eq!(merged(2, &SPACIOUS, &[]), Some(2), "nothing is rewritten below");
        let large = patch(blocks, "a", "z", 100_000);
        let roomy = Options { base_bytes: 1_000_000, ..SPACIOUS };
        assert_eq!(merged(11, &roomy, &[&large]), None);
        assert_eq!(merged(12, &roomy, &[&large]), Some(12), "lookups pass too many runs");
        let spare = |spare_blocks| Options { spare_blocks, ..SPACIOUS };
        assert_eq!(merged(3, &spare(1), &[&below]), None);
        assert_eq!(merged(3, &spare(0), &[&below]), Some(2), "writers need the space of level 0");
        let in_parts = Options { merge_blocks: 4, ..OPTIONS };
        assert_eq!(merged(3, &in_parts, &[&below]), Some(3), "there is room for all");
        let in_parts = Options { merge_blocks: 3, ..OPTIONS };
        assert_eq!(merged(3, &in_parts, &[&below]), Some(2), "there is not");
        let roomy = Options { merge_blocks: 100, ..OPTIONS };
        assert_eq!(merged(3, &roomy, &[]), Some(3));
        let three = tree(&[(0, 1, &runs[0]), (0, 2, &runs[1]), (0, 3, &runs[2])]);
        let first = Leveled::default().choose(&three, &roomy, false);
        let first = first.map(|choice| choice.inputs.len());
        assert_eq!(first, Some(2), "the first merge after a start is short");
        let room = |room_blocks| Options { room_blocks, ..OPTIONS };
        assert_eq!(merged(3, &room(3), &[&below]), Some(2));
        assert_eq!(merged(3, &room(2), &[&below]), Some(1), "two do not fit");
        assert_eq!(merged(3, &room(1), &[&below]), Some(1), "nothing fits");
    });
}

#[test]
fn a_patch_with_many_deletions_goes_first() {
    with_blocks(async |blocks| {
        let [first, last] = ["ab", "yz"].map(|k| patch(blocks, &k[..1], &k[1..], 6000));
        let of = |deletions: usize| {
            let records = ["d", "e", "f", "g", "h"].into_iter().enumerate();
            let records = records.map(|(number, key)| match number < deletions {
                true => deletion(key, 4),
                false => value(key, 4, 10),
            });
            patch_of(blocks, &records.collect::<Vec<_>>())
        };
        let chosen = |middle: &Rc<Patch>| {
            let level1 = tree(&[(1, 0, &first), (1, 0, middle), (1, 0, &last)]);
            bounds(&choose(&level1).unwrap())[0].clone()
        };
        assert_eq!(chosen(&of(1)), pairs(&[("a", "b")]), "one record in five");
        assert_eq!(chosen(&of(2)), pairs(&[("d", "h")]));
    });
}

#[test]
fn runs_of_level_0_are_merged_with_the_patches_that_they_overlap_below() {
    with_blocks(async |blocks| {
        let [early, late] = [("d", "g"), ("f", "i")].map(|(a, z)| patch(blocks, a, z, 10));
        let below = ["ab", "cd", "ef", "ij", "kl"].map(|k| patch(blocks, &k[..1], &k[1..], 10));
        let [first, .., last] = &below;
        let above = [(0, 1, &early), (0, 2, &late)];
        let full = [&above[..], &below.each_ref().map(|patch| (1, 0, patch))].concat();
        let choice = choose(&tree(&full)).unwrap();
        let overlapping = pairs(&[("c", "d"), ("e", "f"), ("i", "j")]);
        assert_eq!(bounds(&choice)[2], overlapping, "both bounds count");
        let disjoint = [&above[..], &[(1, 0, first), (1, 0, last)]].concat();
        let choice = choose(&tree(&disjoint)).unwrap();
        assert_eq!(choice.inputs.len(), 2, "nothing there overlaps");
    });
}

#[test]
fn under_pressure_the_deepest_level_that_is_due_goes_first() {
    with_blocks(async |blocks| {
        let above: [_; 4] = std::array::from_fn(|_| patch(blocks, "a", "z", 10));
        let below = patch(blocks, "c", "d", 20_000);
        let mut all: Vec<_> = (1..).zip(&above).map(|(run, patch)| (0, run, patch)).collect();
        all.push((1, 0, &below));
        let from = |choice: Option<Choice>| choice.unwrap().from;
        // Level 0 is at two times its target, level 1 a little above.
        assert_eq!(from(choose(&tree(&all[..3]))), 0);
        let tree = tree(&all);
        assert!(score(&tree, 1, &tree.levels[1], &OPTIONS) > 1.0);
        assert_eq!(from(under_pressure(&tree)), 1);
    });
}

#[test]
fn under_pressure_a_merge_with_room_precedes_one_without() {
    with_blocks(async |blocks| {
        let above: [_; 2] = std::array::from_fn(|_| patch(blocks, "x", "z", 10));
        let middle = patch(blocks, "a", "e", 20_000);
        let below = ["ab", "cd"].map(|keys| patch(blocks, &keys[..1], &keys[1..], 10));
        let tree = tree(&[
            (0, 1, &above[0]),
            (0, 2, &above[1]),
            (1, 0, &middle),
            (2, 0, &below[0]),
            (2, 0, &below[1]),
        ]);
        let from = |room_blocks| {
            let options = Options { room_blocks, ..OPTIONS };
            Leveled::default().choose(&tree, &options, true).unwrap().from
        };
        assert_eq!((from(3), from(2)), (1, 0));
        assert_eq!(from(0), 0, "the smallest, where none has room");
    });
}

#[test]
fn deletions_are_dropped_only_without_older_versions_below() {
    with_blocks(async |blocks| {
        let above = [patch(blocks, "d", "g", 10), patch(blocks, "f", "i", 10)];
        let is_bottom = |first: &str, last: &str, level: u8| {
            let below = patch(blocks, first, last, 10);
            choose(&tree(&[(0, 1, &above[0]), (0, 2, &above[1]), (level, 0, &below)]))
                .unwrap()
                .bottom
        };
        for (first, last) in [("a", "d"), ("i", "z"), ("e", "f"), ("a", "z")] {
            assert!(!is_bottom(first, last, 2), "{first} to {last}");
            assert!(!is_bottom(first, last, 4), "{first} to {last}, further down");
            assert!(is_bottom(first, last, 1), "the patches there are merged with it");
        }
        for (first, last) in [("a", "c"), ("j", "z")] {
            assert!(is_bottom(first, last, 2), "{first} to {last}");
        }
    });
}

#[test]
fn a_deletion_in_the_widened_part_of_a_range_is_kept_above_what_it_deletes() {
    with_blocks(async |blocks| {
        let above = [patch(blocks, "k", "k", 10), patch(blocks, "k", "l", 10)];
        // The patch that is merged with the runs has a wider range: deletions of "b" and "y".
        let wide = patch_of(blocks, &[deletion("b", 4), value("k", 4, 10), deletion("y", 4)]);
        for (first, last) in [("a", "b"), ("b", "c"), ("x", "y"), ("y", "z")] {
            let older = patch(blocks, first, last, 10);
            let choice = choose(&tree(&[
                (0, 1, &above[0]),
                (0, 2, &above[1]),
                (1, 0, &wide),
                (2, 0, &older),
            ]));
            assert!(!choice.unwrap().bottom, "{first} to {last} lies below");
        }
        let outside = [patch(blocks, "a", "a", 10), patch(blocks, "z", "z", 10)];
        let choice = choose(&tree(&[
            (0, 1, &above[0]),
            (0, 2, &above[1]),
            (1, 0, &wide),
            (2, 0, &outside[0]),
            (2, 0, &outside[1]),
        ]));
        assert!(choice.unwrap().bottom);
    });
}

/// Patches "a" to "c", three with parts of the value of "c", "c" to "e", and "f".
fn straddled(blocks: &BlockLayer) -> Vec<Rc<Patch>> {
    let part = |number| fragment("c", 5, number, 0);
    let middle = (1..4).map(|number| patch_of(blocks, &[part(number)]));
    let front = patch_of(blocks, &[value("a", 5, 10), part(0)]);
    let back = patch_of(blocks, &[part(4), value("e", 5, 10)]);
    [front].into_iter().chain(middle).chain([back, patch(blocks, "f", "f", 10)]).collect()
}

#[test]
fn a_cut_never_splits_the_fragments_of_a_value() {
    with_blocks(async |blocks| {
        let patches = straddled(blocks);
        let run = Run { number: 0, patches: patches.clone() };
        let ids = |patches: &[Rc<Patch>]| patches.iter().map(|p| p.id()).collect::<Vec<BlockId>>();
        for number in 0..5 {
            let cut = clean_cut(&run, number, number + 1);
            assert_eq!(ids(&cut), ids(&patches[..5]), "from patch {number} on");
        }
        assert_eq!(ids(&clean_cut(&run, 5, 6)), ids(&patches[5..]));
        assert_eq!(ids(&clean_cut(&run, 1, 6)), ids(&patches));
        // In the source level.
        let small = Options { base_bytes: 100, ..OPTIONS };
        let listed: Vec<_> = patches.iter().map(|patch| (1, 0, patch)).collect();
        let mut policy = Leveled::default();
        let first = policy.choose(&tree(&listed), &small, false).unwrap();
        assert_eq!(ids(&first.inputs[0].patches), ids(&patches[..5]));
        let second = policy.choose(&tree(&listed), &small, false).unwrap();
        assert_eq!(ids(&second.inputs[0].patches), ids(&patches[5..]), "the cursor is behind them");
        // In the target level: runs that overlap only the front, or only the back.
        for key in ["b", "d"] {
            let above = [patch(blocks, key, key, 10), patch(blocks, key, key, 10)];
            let mut listed = listed.clone();
            listed.extend([(0, 1, &above[0]), (0, 2, &above[1])]);
            let choice = choose(&tree(&listed)).unwrap();
            assert_eq!(ids(&choice.inputs[2].patches), ids(&patches[..5]), "{key}");
        }
    });
}

#[test]
fn a_level_over_its_target_merges_one_patch_at_a_time_in_cyclic_order() {
    with_blocks(async |blocks| {
        let patches = ["ab", "cd", "ef"].map(|k| patch(blocks, &k[..1], &k[1..], 2000));
        let level1 = patches.each_ref().map(|patch| (1, 0, patch));
        assert!(choose(&tree(&level1[..2])).is_none(), "8,000 bytes are within the target");
        let full = tree(&level1);
        let mut policy = Leveled::default();
        for expected in [("a", "b"), ("c", "d"), ("e", "f"), ("a", "b")] {
            let choice = policy.choose(&full, &OPTIONS, false).unwrap();
            assert_eq!((choice.from, choice.to, choice.bottom), (1, 2, true));
            assert_eq!(bounds(&choice), [pairs(&[expected])]);
        }
        // The next level is eight times as large, and each level has its own cursor.
        let level2 = patches.each_ref().map(|patch| (2, 0, patch));
        assert!(choose(&tree(&level2)).is_none());
        let large = Options { base_bytes: 1500, ..OPTIONS };
        let choice = policy.choose(&tree(&level2), &large, false).unwrap();
        assert_eq!((choice.from, bounds(&choice)), (2, vec![pairs(&[("a", "b")])]));
        let exact = Options { base_bytes: tree(&level2).levels[2].bytes() / 8, ..OPTIONS };
        assert!(Leveled::default().choose(&tree(&level2), &exact, false).is_some());
        let more = Options { base_bytes: exact.base_bytes + 1, ..OPTIONS };
        assert!(Leveled::default().choose(&tree(&level2), &more, false).is_none());
    });
}

#[test]
fn the_level_that_is_furthest_from_its_target_goes_first() {
    with_blocks(async |blocks| {
        let runs = [patch(blocks, "a", "b", 10), patch(blocks, "a", "b", 10)];
        let large = [patch(blocks, "c", "d", 9_000), patch(blocks, "e", "f", 9_000)];
        let mut listed =
            vec![(0, 1, &runs[0]), (0, 2, &runs[1]), (1, 0, &large[0]), (1, 0, &large[1])];
        assert_eq!(choose(&tree(&listed)).unwrap().from, 1, "3.6 of its target, level 0 has 1");
        listed.pop();
        let third = patch(blocks, "a", "b", 10);
        let fourth = patch(blocks, "a", "b", 10);
        listed.extend([(0, 3, &third), (0, 4, &fourth)]);
        assert_eq!(choose(&tree(&listed)).unwrap().from, 0, "2, level 1 has 1.8");
    });
}

#[test]
fn a_run_with_lost_patches_is_merged_whole() {
    with_blocks(async |blocks| {
        let (lost, other) = (lost_patch(blocks).await, patch(blocks, "a", "b", 6_000));
        let level1 = tree(&[(1, 0, &lost), (1, 0, &other)]);
        let choice = choose(&level1).unwrap();
        assert_eq!(
            choice.inputs[0].patches.len(),
            2,
            "versions of its keys may be in the lost one"
        );
        let above = [patch(blocks, "x", "y", 10), patch(blocks, "x", "y", 10)];
        let level0 = [(0, 1, &above[0]), (0, 2, &above[1]), (1, 0, &lost), (1, 0, &other)];
        // Level 0 is further from its target than level 1.
        let options = Options { base_bytes: 100_000, ..OPTIONS };
        let choice = Leveled::default().choose(&tree(&level0), &options, false).unwrap();
        assert_eq!(choice.inputs[2].patches.len(), 2, "it may hold any key");
    });
}

#[test]
fn under_pressure_levels_with_dead_data_are_merged_without_being_due() {
    with_blocks(async |blocks| {
        let [a, b, c] = [(); 3].map(|()| patch(blocks, "a", "b", 10));
        let dead = patch_of(blocks, &[deletion("a", 7)]);
        let from = |patches: &[(u8, u64, &Rc<Patch>)]| {
            assert!(choose(&tree(patches)).is_none(), "nothing is due");
            under_pressure(&tree(patches)).map(|choice| choice.from)
        };
        assert_eq!(from(&[]), None);
        assert_eq!(from(&[(0, 1, &a)]), None, "a single run overlaps nothing");
        assert_eq!(from(&[(0, 1, &dead)]), Some(0), "deletions are dropped");
        assert_eq!(from(&[(0, 1, &a), (1, 0, &b)]), Some(0), "it may hide older versions below");
        assert_eq!(from(&[(1, 0, &a)]), None, "the lowest level overlaps nothing");
        assert_eq!(from(&[(1, 0, &dead)]), None, "and has no level below");
        assert_eq!(from(&[(1, 0, &a), (2, 0, &b)]), Some(1), "level 0 is empty");
        assert_eq!(from(&[(1, 0, &a), (3, 0, &b)]), Some(1));
        assert_eq!(from(&[(0, 1, &a), (1, 0, &b), (2, 0, &c)]), Some(0), "the uppermost first");
        // Two runs of level 0 are not enough to be due.
        let options = Options { level0_runs: 3, ..OPTIONS };
        let two = tree(&[(0, 1, &a), (0, 2, &b)]);
        assert!(Leveled::default().choose(&two, &options, false).is_none());
        let choice = Leveled::default().choose(&two, &options, true).unwrap();
        assert_eq!((choice.from, choice.inputs.len()), (0, 2));
    });
}

#[test]
fn new_data_that_overlap_nothing_fill_the_small_patch_in_front_of_them() {
    with_blocks(async |blocks| {
        let new = patch(blocks, "k", "l", 1000);
        let inputs = |options: &Options, below: &[&Rc<Patch>]| {
            let below = below.iter().map(|patch| (1, 0, *patch));
            let all: Vec<_> = [(0, 1, &new)].into_iter().chain(below).collect();
            level0(&tree(&all), options, usize::MAX).unwrap().inputs.len()
        };
        let options = Options { patch_bytes: 4000, ..OPTIONS };
        let [small, large] = [500, 1500].map(|bytes| patch(blocks, "a", "b", bytes));
        let behind = patch(blocks, "x", "z", 10);
        assert_eq!(inputs(&options, &[&small]), 2);
        assert_eq!(inputs(&options, &[&small, &behind]), 2);
        assert_eq!(inputs(&options, &[&behind]), 1, "nothing is in front of it");
        assert_eq!(inputs(&options, &[]), 1);
        let full = Options { patch_bytes: small.bytes() + new.bytes() - 1, ..OPTIONS };
        assert_eq!(inputs(&full, &[&small]), 1, "both do not fit into one patch");
        let much = patch(blocks, "a", "b", 3000);
        let roomy = Options { patch_bytes: 100_000, ..OPTIONS };
        assert_eq!(
            (inputs(&roomy, &[&large]), inputs(&roomy, &[&much])),
            (2, 1),
            "a small one only"
        );
        let choice = level0(&tree(&[(0, 1, &new), (1, 0, &small)]), &options, usize::MAX).unwrap();
        assert_eq!(bounds(&choice)[1], pairs(&[("a", "b")]));
    });
}
