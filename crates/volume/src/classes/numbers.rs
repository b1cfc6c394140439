//! The class of data: data with different hints get classes of their own, as far as there are some,
//! and each class has its write frontiers in every unit. So data that are overwritten soon do not
//! share superblocks with data that stay, which collection would move again and again.

use crate::settings::{Lifetime, Temperature};
use std::collections::{BTreeMap, BTreeSet};

/// The most classes of a domain.
const MOST_CLASSES: u32 = 8;

/// Superblocks of a unit for each class: its open ones are few beside them.
const SUPERBLOCKS_PER_CLASS: u32 = 64;

/// The classes of data without hints.
pub(crate) const NO_HINT: u8 = 0;

/// Classes that units of so many superblocks have at most.
pub(crate) fn most_classes(unit_blocks: u32) -> u8 {
    let most = (unit_blocks / SUPERBLOCKS_PER_CLASS).clamp(1, MOST_CLASSES);
    u8::try_from(most).unwrap_or(1)
}

/// The class of each lifetime, of which there are at most `most`. Those of low streams come first;
/// the others share the class of their temperature, or that of data without hints.
pub(crate) fn classes(lifetimes: &BTreeSet<Lifetime>, most: u8) -> BTreeMap<Lifetime, u8> {
    let mut classes = BTreeMap::from([(Lifetime::default(), NO_HINT)]);
    let mut of_temperature = BTreeMap::from([(Temperature::default(), NO_HINT)]);
    let mut by_stream: Vec<Lifetime> = lifetimes.iter().copied().collect();
    by_stream.sort_by_key(|lifetime| (lifetime.stream, lifetime.temperature));
    let mut next = NO_HINT + 1;
    for lifetime in by_stream {
        if classes.contains_key(&lifetime) {
            continue;
        }
        let class = if next < most {
            next += 1;
            next - 1
        } else {
            of_temperature.get(&lifetime.temperature).copied().unwrap_or(NO_HINT)
        };
        classes.insert(lifetime, class);
        of_temperature.entry(lifetime.temperature).or_insert(class);
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime(temperature: Temperature, stream: u8) -> Lifetime {
        Lifetime { temperature, stream }
    }

    #[test]
    fn each_hint_has_a_class_while_there_are_some() {
        use Temperature::{Cold, Hot, Warm};
        let hints = BTreeSet::from([lifetime(Hot, 0), lifetime(Cold, 0), lifetime(Hot, 5)]);
        let classes_of = |most| classes(&hints, most);
        let four = classes_of(4);
        assert_eq!(four[&lifetime(Warm, 0)], NO_HINT);
        let distinct: BTreeSet<u8> = four.values().copied().collect();
        assert_eq!(distinct, BTreeSet::from([0, 1, 2, 3]));
        // The last stream shares with its temperature.
        let three = classes_of(3);
        assert_eq!(three[&lifetime(Hot, 5)], three[&lifetime(Hot, 0)]);
        assert_ne!(three[&lifetime(Hot, 0)], three[&lifetime(Cold, 0)]);
        assert!(classes_of(1).values().all(|&class| class == NO_HINT));
    }

    #[test]
    fn small_units_have_one_class_and_large_ones_eight() {
        let most = [16, 64, 127, 128, 256, 512, 100_000].map(most_classes);
        assert_eq!(most, [1, 1, 1, 2, 4, 8, 8]);
    }
}
