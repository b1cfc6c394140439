//! The geometry of an array, and conversions between addresses and flat indexes.

use crate::address::{BlockAddress, BlockIndex, ChannelIndex, DieIndex, PageAddress, PageIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most planes that one operation covers.
pub const MAX_PLANES: usize = 4;

/// The most dies on one channel: the bus arbiter keeps one bit for each.
pub const MAX_DIES_PER_CHANNEL: u32 = 64;

/// The most pages in a block; two values of a 16-bit write pointer are reserved for other states.
pub const MAX_PAGES_PER_BLOCK: u32 = 65_534;

/// The most dies and channels together, so that an event's key holds a time and an id.
pub const MAX_ENTITIES: u32 = 1 << 16;

/// The geometry of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Channels: buses that carry one transfer at a time each.
    #[schemars(range(min = 1))]
    pub channels: u16,
    /// Chips (packages) on a channel; a channel has at most 64 dies.
    #[schemars(range(min = 1, max = 64))]
    pub chips_per_channel: u8,
    /// Dies in a chip; a die executes one command at a time.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub dies_per_chip: u8,
    /// Planes in a die; one command can work on the same page of each (multi-plane).
    #[schemars(range(min = 1, max = 4))]
    pub planes_per_die: u8,
    /// Erase blocks in a plane, bad ones included.
    #[schemars(range(min = 1))]
    pub blocks_per_plane: u32,
    /// Pages in a block, a multiple of the pages of a word line (bits per cell).
    #[schemars(range(min = 1, max = 65534))]
    pub pages_per_block: u32,
    /// Data bytes in a page.
    #[schemars(range(min = 1, max = 1048576))]
    pub page_bytes: u32,
    /// Spare bytes in a page. They cost transfer time if the bus configuration transfers them;
    /// their contents (ECC parity, in a real device) are not stored.
    #[serde(default)]
    #[schemars(range(max = 1048576))]
    pub spare_bytes: u32,
}

fn one() -> u8 {
    1
}

/// Why a geometry cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GeometryError {
    /// A dimension is 0.
    #[error("geometry: {field} is 0; it must be at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// A dimension is larger than the model's limit.
    #[error("geometry: {field} is {value}; the most is {limit}")]
    TooLarge {
        /// The field, or the product of fields.
        field: &'static str,
        /// The given value.
        value: u64,
        /// The largest valid value.
        limit: u64,
    },
    /// The pages of a block are not a whole number of word lines.
    #[error(
        "geometry: pages_per_block is {pages_per_block}, not a multiple of {bits_per_cell}, the \
         pages of a word line"
    )]
    HalfWordLine {
        /// The given value.
        pages_per_block: u32,
        /// Pages in a word line.
        bits_per_cell: u32,
    },
}

/// Bytes of an ECC codeword, as in data sheets of MLC flash (BCH, corrected bits per 1 KiB), and so
/// the smallest part of a page that can be read.
pub const SECTOR_BYTES: u32 = 1024;

impl Geometry {
    /// Bytes that a read of the beginning of a page transfers.
    pub fn sector_bytes(&self) -> u32 {
        self.page_bytes.min(SECTOR_BYTES)
    }

    /// Checks every limit.
    pub fn validate(&self) -> Result<(), GeometryError> {
        let fields = [
            ("channels", u32::from(self.channels), u32::from(u16::MAX)),
            ("chips_per_channel", u32::from(self.chips_per_channel), u32::from(u8::MAX)),
            ("dies_per_chip", u32::from(self.dies_per_chip), u32::from(u8::MAX)),
            ("planes_per_die", u32::from(self.planes_per_die), MAX_PLANES as u32),
            ("blocks_per_plane", self.blocks_per_plane, u32::MAX),
            ("pages_per_block", self.pages_per_block, MAX_PAGES_PER_BLOCK),
            ("page_bytes", self.page_bytes, 1 << 20),
        ];
        for (field, value, limit) in fields {
            if value == 0 {
                return Err(GeometryError::Zero { field });
            }
            at_most(field, u64::from(value), u64::from(limit))?;
        }
        at_most("spare_bytes", u64::from(self.spare_bytes), 1 << 20)?;
        at_most(
            "chips_per_channel * dies_per_chip",
            u64::from(self.dies_per_channel()),
            u64::from(MAX_DIES_PER_CHANNEL),
        )?;
        at_most(
            "dies and channels",
            u64::from(self.dies()) + u64::from(self.channels),
            u64::from(MAX_ENTITIES),
        )?;
        let planes = u64::from(self.dies()) * u64::from(self.planes_per_die);
        at_most("blocks", planes * u64::from(self.blocks_per_plane), u64::from(u32::MAX))?;
        // So that the sum of a few addresses fits into 64 bits.
        let page_bytes = u64::from(self.page_bytes) + u64::from(self.spare_bytes);
        at_most("bytes of the array", self.pages().saturating_mul(page_bytes), 1 << 60)
    }

    /// Dies on a channel.
    pub fn dies_per_channel(&self) -> u32 {
        u32::from(self.chips_per_channel) * u32::from(self.dies_per_chip)
    }

    /// Dies in the array.
    pub fn dies(&self) -> u32 {
        u32::from(self.channels) * self.dies_per_channel()
    }

    /// Blocks in a die.
    pub fn blocks_per_die(&self) -> u32 {
        u32::from(self.planes_per_die) * self.blocks_per_plane
    }

    /// Blocks in the array.
    pub fn blocks(&self) -> u32 {
        self.dies() * self.blocks_per_die()
    }

    /// Pages in the array.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks()) * u64::from(self.pages_per_block)
    }

    /// Data bytes in a block.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.page_bytes)
    }

    /// Data bytes in the array, bad blocks included.
    pub fn bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// The flat index of a die. Dies of a channel are numbered together, chip by chip.
    pub fn die_index(&self, channel: ChannelIndex, chip: u8, die: u8) -> DieIndex {
        let chips = channel.0 * u32::from(self.chips_per_channel) + u32::from(chip);
        DieIndex(chips * u32::from(self.dies_per_chip) + u32::from(die))
    }

    /// The channel that a die is on.
    pub fn channel_of(&self, die: DieIndex) -> ChannelIndex {
        ChannelIndex(die.0 / self.dies_per_channel())
    }

    /// The flat index of a block; `None` outside the array.
    pub fn block_index(&self, address: BlockAddress) -> Option<BlockIndex> {
        let inside = address.die.0 < self.dies()
            && address.plane < self.planes_per_die
            && address.block < self.blocks_per_plane;
        let plane = address.die.0 * u32::from(self.planes_per_die) + u32::from(address.plane);
        inside.then(|| BlockIndex(plane * self.blocks_per_plane + address.block))
    }

    /// The address of a block.
    pub fn block_address(&self, block: BlockIndex) -> BlockAddress {
        let plane = block.0 / self.blocks_per_plane;
        BlockAddress {
            die: DieIndex(plane / u32::from(self.planes_per_die)),
            plane: (plane % u32::from(self.planes_per_die)) as u8,
            block: block.0 % self.blocks_per_plane,
        }
    }

    /// The flat index of a page of a block.
    pub fn page_index(&self, block: BlockIndex, page: u32) -> PageIndex {
        PageIndex(u64::from(block.0) * u64::from(self.pages_per_block) + u64::from(page))
    }

    /// The address of a page.
    pub fn page_address(&self, page: PageIndex) -> PageAddress {
        let pages = u64::from(self.pages_per_block);
        PageAddress {
            block: self.block_address(BlockIndex((page.0 / pages) as u32)),
            page: (page.0 % pages) as u32,
        }
    }
}

fn at_most(field: &'static str, value: u64, limit: u64) -> Result<(), GeometryError> {
    if value > limit {
        return Err(GeometryError::TooLarge { field, value, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn sdf_has_the_capacity_of_the_paper() {
        let sdf = presets::sdf().geometry;
        sdf.validate().unwrap();
        assert_eq!((sdf.dies(), sdf.bytes()), (88, 704 << 30));
        assert_eq!(sdf.bytes() / u64::from(sdf.channels), 16 << 30);
        assert_eq!((sdf.block_bytes(), sdf.pages()), (2 << 20, 92_274_688));
    }

    #[test]
    fn addresses_and_indexes_agree() {
        let geometry = presets::small().geometry;
        for index in 0..geometry.blocks() {
            let address = geometry.block_address(BlockIndex(index));
            assert_eq!(geometry.block_index(address), Some(BlockIndex(index)));
            let page = geometry.page_index(BlockIndex(index), 3);
            assert_eq!(geometry.page_address(page), PageAddress { block: address, page: 3 });
        }
        let die = geometry.die_index(ChannelIndex(1), 1, 0);
        assert_eq!((die, geometry.channel_of(die)), (DieIndex(3), ChannelIndex(1)));
        let outside = BlockAddress { die: DieIndex(geometry.dies()), plane: 0, block: 0 };
        assert_eq!(geometry.block_index(outside), None);
    }

    #[test]
    fn limits_are_named() {
        let good = presets::small().geometry;
        let told = |geometry: Geometry| geometry.validate().unwrap_err().to_string();
        assert_eq!(
            told(Geometry { page_bytes: 0, ..good }),
            "geometry: page_bytes is 0; it must be at least 1"
        );
        assert_eq!(
            told(Geometry { planes_per_die: 5, ..good }),
            "geometry: planes_per_die is 5; the most is 4"
        );
        assert_eq!(
            told(Geometry { chips_per_channel: 65, ..good }),
            "geometry: chips_per_channel * dies_per_chip is 65; the most is 64"
        );
        assert!(told(Geometry { blocks_per_plane: u32::MAX, ..good }).contains("blocks"));
        assert!(told(Geometry { channels: 60_000, ..good }).contains("dies and channels"));
    }
}
