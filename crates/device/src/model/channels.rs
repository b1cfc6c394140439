//! The channels of one queue pair, by their numbers in its array and in the device.

use softflash_nand::{BlockIndex, DieIndex, Geometry};

/// Some channels of a device. The array over them numbers them, their dies and their blocks from 0
/// on, in the same order.
pub(super) struct Channels {
    /// In ascending order.
    in_device: Vec<u32>,
    dies_per_channel: u32,
    blocks_per_channel: u32,
}

impl Channels {
    /// These channels, in ascending order, of a device with this geometry.
    pub(super) fn new(in_device: Vec<u32>, whole: &Geometry) -> Channels {
        let dies_per_channel = whole.dies_per_channel();
        let blocks_per_channel = dies_per_channel * whole.blocks_per_die();
        Channels { in_device, dies_per_channel, blocks_per_channel }
    }

    /// The geometry of the array, which has these channels alone.
    pub(super) fn geometry(&self, whole: &Geometry) -> Geometry {
        Geometry { channels: self.in_device.len() as u16, ..*whole }
    }

    /// Their numbers in the device, in the order of the array.
    pub(super) fn in_device(&self) -> &[u32] {
        &self.in_device
    }

    /// The device's number of the first block.
    pub(super) fn first_block(&self) -> u32 {
        self.block(BlockIndex(0)).0
    }

    /// The device's numbers of all blocks, in the order of the array.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockIndex> {
        let count = self.in_device.len() as u32 * self.blocks_per_channel;
        (0..count).map(|block| self.block(BlockIndex(block)))
    }

    /// The device's number of a block of the array.
    pub(super) fn block(&self, block: BlockIndex) -> BlockIndex {
        BlockIndex(self.on_device(block.0, self.blocks_per_channel))
    }

    /// The device's number of a die of the array.
    pub(super) fn die(&self, die: DieIndex) -> DieIndex {
        DieIndex(self.on_device(die.0, self.dies_per_channel))
    }

    /// The device's number of a part of the array, of which a channel has `per_channel`.
    fn on_device(&self, part: u32, per_channel: u32) -> u32 {
        let (channel, inside) = (part / per_channel, part % per_channel);
        self.in_device[channel as usize] * per_channel + inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelConfig;

    #[test]
    fn parts_of_the_array_are_those_of_its_channels() {
        let whole = Geometry { channels: 8, ..ModelConfig::small().array.geometry };
        let channels = Channels::new(vec![2, 3, 7], &whole);
        let (dies, blocks) = (channels.dies_per_channel, channels.blocks_per_channel);
        assert_eq!(channels.geometry(&whole).blocks(), 3 * blocks);
        assert_eq!(channels.first_block(), 2 * blocks);
        let last = BlockIndex(3 * blocks - 1);
        assert_eq!(channels.block(last), BlockIndex(8 * blocks - 1));
        assert_eq!(channels.die(DieIndex(2 * dies)), DieIndex(7 * dies));
        assert_eq!(channels.blocks().nth(blocks as usize), Some(BlockIndex(3 * blocks)));
    }
}
