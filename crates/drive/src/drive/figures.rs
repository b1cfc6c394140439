//! Figures of a drive, and its preparation for a run.

use super::Drive;
use crate::buffer::Buffer;
use crate::counters::{DriveCounters, MapCounters};
use crate::error::DriveError;
use crate::interleaving;
use crate::precondition;
use crate::shape::Shape;
use crate::spec::{DeviceSpec, PageMapped};
use softflash_nand::timeline::Interval;

impl Drive {
    /// Bytes that the host can address on a drive, without building it.
    pub fn capacity_of(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<u64, DriveError> {
        let device = &*interleaving::as_commanded(device, layout)?;
        Ok(Shape::new(device, layout, op_percent)?.capacity_bytes())
    }

    /// Bytes that the host can address.
    pub fn capacity_bytes(&self) -> u64 {
        self.space.shape().capacity_bytes()
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.space.shape().page_bytes()
    }

    /// Pages of one block of every write frontier: the unit of the warm-up that collection needs in
    /// the steady state.
    pub fn frontier_pages(&self) -> u64 {
        self.space.shape().frontier_pages()
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.dies.channels()
    }

    /// Dies.
    pub fn dies(&self) -> u32 {
        self.space.shape().dies()
    }

    /// Flash pages, spare ones included.
    pub fn flash_pages(&self) -> u64 {
        self.space.shape().flash_pages()
    }

    /// The actual over-provisioning: spare / logical, in percent.
    pub fn op_percent(&self) -> f64 {
        self.space.shape().op_percent()
    }

    /// The counters.
    pub fn counters(&self) -> DriveCounters {
        let mut counters = self.counters;
        self.space.add_counters(&mut counters);
        counters
    }

    /// The counters of a map that lies on flash; `None` for a map in memory.
    pub fn map_counters(&self) -> Option<MapCounters> {
        self.space.map_counters()
    }

    /// Sets all counters to 0.
    pub fn clear_counters(&mut self) {
        self.counters = DriveCounters::default();
        self.space.clear_counters();
    }

    /// Requests that have not completed.
    pub fn in_flight(&self) -> usize {
        self.pages.requests() + self.host.waiting()
    }

    /// Time that a die's cell array has worked, in nanoseconds.
    pub fn die_busy_ns(&self, die: u32) -> u64 {
        self.dies.die_busy_ns(die)
    }

    /// Time that a channel's bus was taken, in nanoseconds.
    pub fn channel_busy_ns(&self, channel: u32) -> u64 {
        self.dies.channel_busy_ns(channel)
    }

    /// The greatest difference between the erases of two blocks that are collected together, since
    /// the drive was new.
    pub fn erase_spread(&self) -> u32 {
        self.space.erase_spread()
    }

    /// The greatest difference between the erases of two groups of blocks that are collected
    /// together, since the drive was new.
    pub fn group_erase_spread(&self) -> u64 {
        self.space.group_erase_spread()
    }

    /// Records the activity of dies and buses from now on, up to `most` intervals.
    pub fn record(&mut self, most: usize) {
        self.dies.record(most);
    }

    /// The recorded intervals.
    pub fn recorded(&self) -> &[Interval] {
        self.dies.recorded()
    }

    /// Memory of the simulated drive, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.space.memory_bytes()
            + self.dies.memory_bytes()
            + self.buffer.as_ref().map_or(0, Buffer::memory_bytes)
            + self.pages.memory_bytes()
            + self.completions.memory_bytes()
            + self.front.memory_bytes()
    }

    /// Writes every logical page once, in order, in no virtual time. Nothing may be under way.
    pub fn fill(&mut self) {
        for logical in 0..self.space.shape().logical_pages() {
            self.write_now(logical, 0);
        }
    }

    /// Writes the page at this offset, in no virtual time. Nothing may be under way.
    pub fn overwrite_now(&mut self, offset_bytes: u64) {
        self.overwrite_hinted_now(offset_bytes, 0);
    }

    /// As [`overwrite_now`](Drive::overwrite_now), with a [hint](crate::HostRequest::hint).
    pub fn overwrite_hinted_now(&mut self, offset_bytes: u64, hint: u32) {
        if offset_bytes < self.capacity_bytes() {
            self.write_now(self.space.shape().page_at(offset_bytes), hint);
        }
    }

    /// Unmaps the pages that this range covers as a whole, in no virtual time. Nothing may be under
    /// way.
    pub fn trim_now(&mut self, offset_bytes: u64, bytes: u64) {
        let page_bytes = u64::from(self.page_bytes());
        let end_bytes = offset_bytes.saturating_add(bytes).min(self.capacity_bytes());
        for page in offset_bytes.div_ceil(page_bytes)..end_bytes / page_bytes {
            precondition::forget(&mut self.space, page as u32);
        }
    }

    fn write_now(&mut self, logical: u32, hint: u32) {
        precondition::write(&mut self.space, logical, hint);
        self.counters.host_pages_written += 1;
    }

    /// Whether theory gives the state that [`make_steady`](Drive::make_steady) sets: for a map in
    /// memory, and for the victim policies `greedy` and `fifo`. For others it is a state to start
    /// from.
    pub fn steady_state_is_known(&self) -> bool {
        precondition::is_known(&self.space)
    }

    /// Sets the steady state of uniform random writes of single pages over the whole drive. The
    /// drive must be new.
    pub fn make_steady(&mut self, seed: u64) {
        precondition::make_steady(&mut self.space, seed);
    }

    /// Checks all state: both directions of the map agree, the valid counts of blocks are right,
    /// and every block is free, open, closed, or being collected or erased. Returns the first
    /// error.
    pub fn check(&self) -> Result<(), String> {
        self.space.check()
    }
}
