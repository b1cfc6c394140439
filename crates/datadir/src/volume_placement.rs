//! The choice of a domain for a new volume.

use softflash_volume::{DomainSpace, VolumeInfo};
use std::cmp::Reverse;

/// The load of a domain.
#[derive(Debug, Clone, Copy)]
pub struct DomainLoad {
    unused_bytes: u64,
    /// The sizes of its volumes, which are thin: they may come to fill it.
    promised_bytes: u64,
}

impl DomainLoad {
    /// The load of a domain with this space and these volumes.
    pub fn of(space: DomainSpace, volumes: &[VolumeInfo]) -> DomainLoad {
        DomainLoad {
            unused_bytes: space.usable_bytes.saturating_sub(space.used_bytes),
            promised_bytes: volumes.iter().map(|volume| volume.size_bytes).sum(),
        }
    }
}

/// The domain with the most unused space; of equals, the one whose volumes have the smallest sum of
/// sizes.
pub fn most_free(loads: impl IntoIterator<Item = DomainLoad>) -> Option<usize> {
    let places = loads.into_iter().enumerate();
    let order = |(place, load): &(usize, DomainLoad)| {
        (load.unused_bytes, Reverse(load.promised_bytes), Reverse(*place))
    };
    places.max_by_key(order).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_volume_goes_where_most_is_unused_and_then_where_least_is_promised() {
        let chosen = |loads: &[(u64, u64)]| {
            let load =
                |&(unused_bytes, promised_bytes)| DomainLoad { unused_bytes, promised_bytes };
            most_free(loads.iter().map(load))
        };
        assert_eq!(chosen(&[(5, 0), (9, 8), (7, 0)]), Some(1));
        assert_eq!(chosen(&[(9, 3), (9, 2), (9, 2)]), Some(1));
        assert_eq!(chosen(&[]), None);
    }
}
