//! Figures of a drive.

use crate::buffer::Buffer;
use crate::drive::{DieQueue, Drive};
use crate::error::DriveError;
use crate::shape::Shape;
use crate::spec::{DeviceSpec, PageMapped};
use crate::write_frontier::WriteFrontier;
use softflash_nand::timeline::Interval;
use softflash_nand::{ChannelIndex, DieIndex};

impl Drive {
    /// Bytes that the host can address on a drive, without building it.
    pub fn capacity_of(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<u64, DriveError> {
        Ok(Shape::new(device, layout, op_percent)?.capacity_bytes())
    }

    /// Bytes that the host can address.
    pub fn capacity_bytes(&self) -> u64 {
        self.shape.capacity_bytes()
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.shape.page_bytes
    }

    /// Pages of one block of every write frontier: the unit of the warm-up that collection needs in
    /// the steady state.
    pub fn frontier_pages(&self) -> u64 {
        u64::from(self.shape.frontiers) * u64::from(self.shape.pages_per_block)
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.flash.channels()
    }

    /// Dies.
    pub fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// Flash pages, spare ones included.
    pub fn flash_pages(&self) -> u64 {
        self.shape.flash_pages()
    }

    /// The actual over-provisioning: spare / logical, in percent.
    pub fn op_percent(&self) -> f64 {
        self.shape.op_percent()
    }

    /// Time that a die's cell array has worked, in nanoseconds.
    pub fn die_busy_ns(&self, die: u32) -> u64 {
        self.flash.die_busy_ns(DieIndex(die))
    }

    /// Time that a channel's bus was taken, in nanoseconds.
    pub fn channel_busy_ns(&self, channel: u32) -> u64 {
        self.flash.channel_busy_ns(ChannelIndex(channel))
    }

    /// Records the activity of dies and buses from now on, up to `most` intervals.
    pub fn record(&mut self, most: usize) {
        self.flash.record(most);
    }

    /// The recorded intervals.
    pub fn recorded(&self) -> &[Interval] {
        self.flash.recorded()
    }

    /// Memory of the simulated drive, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let blocks = self.blocks.valid.capacity() * 2 + self.blocks.closed.capacity() * 4;
        let free = self.blocks.free.iter().map(|free| free.capacity() * 4 + size_of_val(free));
        let buffer = self.buffer.as_ref().map_or(0, Buffer::memory_bytes);
        let tables = self.blocks.frontiers.capacity() * size_of::<WriteFrontier>()
            + self.dies.capacity() * size_of::<DieQueue>()
            + self.shape.stripe.capacity() * 4;
        (blocks + tables + free.sum::<usize>()) as u64
            + buffer
            + self.map.memory_bytes()
            + self.flash.memory_bytes()
            + self.pages.memory_bytes()
            + self.completions.memory_bytes()
            + self.front.memory_bytes()
    }
}
