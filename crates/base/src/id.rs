//! Newtypes for addresses, so that kinds of numbers cannot be mixed up.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u16);

        impl $name {
            /// The id as an index into a table with one entry per id.
            pub fn index(self) -> usize {
                usize::from(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// The unit of independent access: a channel in SDF, a chip in TSSD, an extent of a file in the
    /// `file` device. NVMe FDP calls it a reclaim group, Open-Channel a parallel unit.
    UnitId
);
id!(
    /// One core's share of the system: an executor, a disjoint set of units, one log.
    ShardId
);
id!(
    /// A shard of the key space: one memtable and one tree of patches.
    SliceId
);
