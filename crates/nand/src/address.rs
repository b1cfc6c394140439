//! Addresses in an array. Flat indexes count through the whole array: channel by channel, die by
//! die, plane by plane.

use std::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl $name {
            /// The index of an entry in a table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

index!(
    /// A channel of the array.
    ChannelIndex(u32)
);
index!(
    /// A die of the array, counted through all channels and chips.
    DieIndex(u32)
);
index!(
    /// A block of the array, counted through all dies and planes.
    BlockIndex(u32)
);
index!(
    /// A page of the array, counted through all blocks.
    PageIndex(u64)
);

/// The address of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// The die.
    pub die: DieIndex,
    /// The plane of the die.
    pub plane: u8,
    /// The block of the plane.
    pub block: u32,
}

/// The address of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddress {
    /// The block.
    pub block: BlockAddress,
    /// The page of the block.
    pub page: u32,
}
