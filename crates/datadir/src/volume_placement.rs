//! The choice of a domain for a new volume.

use softflash_base::cast;
use softflash_policy::PlacementPolicy;
use softflash_policy::placement::{self, Candidates};
use softflash_volume::{DomainSpace, VolumeInfo};

/// Loads are compared in mapping units, in bytes.
const MAPPING_UNIT: u64 = 4096;

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
    let loads: Vec<DomainLoad> = loads.into_iter().collect();
    let units = |bytes: u64| u32::try_from(bytes / MAPPING_UNIT).unwrap_or(u32::MAX);
    let most = loads.iter().map(|load| units(load.unused_bytes)).max()?;
    let column = |of: &dyn Fn(&DomainLoad) -> u32| loads.iter().map(of).collect::<Vec<u32>>();
    let candidates = Candidates {
        // A domain without space is chosen, too, if no other has some.
        occupied: &column(&|load| most - units(load.unused_bytes)),
        most: most.saturating_add(1),
        erases: &vec![0; loads.len()],
        die: &(0..loads.len() as u32).collect::<Vec<u32>>(),
        waiting: &column(&|load| units(load.promised_bytes)),
        cursor: 0,
    };
    placement::choose(PlacementPolicy::MOST_FREE, &candidates).map(cast::index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_volume_goes_where_most_is_unused_and_then_where_least_is_promised() {
        let chosen = |loads: &[(u64, u64)]| {
            let load = |&(unused, promised): &(u64, u64)| DomainLoad {
                unused_bytes: unused * MAPPING_UNIT,
                promised_bytes: promised * MAPPING_UNIT,
            };
            most_free(loads.iter().map(load))
        };
        assert_eq!(chosen(&[(5, 0), (9, 8), (7, 0)]), Some(1));
        assert_eq!(chosen(&[(9, 3), (9, 2), (9, 2)]), Some(1));
        assert_eq!(chosen(&[]), None);
    }
}
