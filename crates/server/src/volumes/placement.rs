//! The choice of a domain for a new volume.

use super::requests::ShardVolumes;
use std::cmp::Reverse;

/// The load of a domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub unused_bytes: u64,
    /// The sizes of its volumes, which are thin: they may come to fill it.
    pub promised_bytes: u64,
}

impl Load {
    pub fn of(domain: &ShardVolumes) -> Load {
        let space = domain.space;
        Load {
            unused_bytes: space.usable_bytes.saturating_sub(space.used_bytes),
            promised_bytes: domain.volumes.iter().map(|volume| volume.size_bytes).sum(),
        }
    }
}

/// The domain with the most unused space; of equals, the one that promises the least.
pub(super) fn roomiest(loads: impl IntoIterator<Item = Load>) -> Option<usize> {
    let places = loads.into_iter().enumerate();
    let order = |(place, load): &(usize, Load)| {
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
            let load = |&(unused_bytes, promised_bytes)| Load { unused_bytes, promised_bytes };
            roomiest(loads.iter().map(load))
        };
        assert_eq!(chosen(&[(5, 0), (9, 8), (7, 0)]), Some(1));
        assert_eq!(chosen(&[(9, 3), (9, 2), (9, 2)]), Some(1));
        assert_eq!(chosen(&[]), None);
    }
}
