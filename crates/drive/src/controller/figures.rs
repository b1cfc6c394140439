//! Figures of a drive, and its preparation for a run. [`Drive`](crate::Drive) describes them.

use super::Controller;
use crate::buffer::Buffer;
use crate::counters::{DriveCounters, MapCounters};
use crate::mapping::Mapping;
use crate::precondition;
use crate::space::{Arrangement, Space};
use softflash_base::Time;
use softflash_nand::timeline::Interval;

impl<M: Mapping> Controller<M> {
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.space.shape().capacity_bytes()
    }

    pub(crate) fn placement_ids(&self) -> u16 {
        u16::try_from(self.space.hint_classes()).unwrap_or(u16::MAX)
    }

    pub(crate) fn page_bytes(&self) -> u32 {
        self.space.shape().page_bytes()
    }

    pub(crate) fn frontier_pages(&self) -> u64 {
        self.space.shape().frontier_pages()
    }

    pub(crate) fn channels(&self) -> u32 {
        self.dies.channels()
    }

    pub(crate) fn dies(&self) -> u32 {
        self.space.shape().dies()
    }

    pub(crate) fn flash_pages(&self) -> u64 {
        self.space.shape().flash_pages()
    }

    pub(crate) fn op_percent(&self) -> f64 {
        self.space.shape().op_percent()
    }

    pub(crate) fn has_slc_cache(&self) -> bool {
        self.space.shape().has_slc_cache()
    }

    pub(crate) fn counters(&self) -> DriveCounters {
        let mut counters = self.counters;
        self.space.add_counters(&mut counters);
        counters
    }

    pub(crate) fn map_counters(&self) -> Option<MapCounters> {
        self.space.map_counters()
    }

    pub(crate) fn clear_counters(&mut self) {
        self.counters = DriveCounters::default();
        self.space.clear_counters();
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.pages.requests() + self.host.waiting()
    }

    pub(crate) fn read_waits_until(&self, offset_bytes: u64) -> Option<Time> {
        let die = self.space.die_of(self.space.shape().page_at(offset_bytes))?;
        self.dies.busy_until(die).map(Time)
    }

    pub(crate) fn hold_collection(&mut self, held: bool) {
        self.space.hold_collection(held);
    }

    pub(crate) fn die_busy_ns(&self, die: u32) -> u64 {
        self.dies.die_busy_ns(die)
    }

    pub(crate) fn channel_busy_ns(&self, channel: u32) -> u64 {
        self.dies.channel_busy_ns(channel)
    }

    pub(crate) fn erase_spread(&self) -> u32 {
        self.space.erase_spread()
    }

    pub(crate) fn group_erase_spread(&self) -> u64 {
        self.space.group_erase_spread()
    }

    pub(crate) fn record(&mut self, most: usize) {
        self.dies.record(most);
    }

    pub(crate) fn recorded(&self) -> &[Interval] {
        self.dies.recorded()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.space.memory_bytes()
            + self.dies.memory_bytes()
            + self.buffer.as_ref().map_or(0, Buffer::memory_bytes)
            + self.pages.memory_bytes()
            + self.completions.memory_bytes()
            + self.host_interface.memory_bytes()
    }

    pub(crate) fn fill(&mut self) {
        for logical in 0..self.space.shape().logical_pages() {
            self.write_now(logical, 0);
        }
    }

    pub(crate) fn overwrite_now(&mut self, offset_bytes: u64) {
        self.overwrite_hinted_now(offset_bytes, 0);
    }

    pub(crate) fn overwrite_hinted_now(&mut self, offset_bytes: u64, hint: u32) {
        if offset_bytes < self.capacity_bytes() {
            self.write_now(self.space.shape().page_at(offset_bytes), hint);
        }
    }

    pub(crate) fn trim_now(&mut self, offset_bytes: u64, bytes: u64) {
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

    pub(crate) fn steady_state_is_known(&self) -> bool {
        precondition::is_known(&self.space)
    }

    pub(crate) fn make_steady(&mut self, seed: u64) {
        precondition::make_steady(&mut self.space, seed);
    }

    pub(crate) fn begin_steady_run(&mut self) {
        self.space.begin_run();
    }

    pub(crate) fn arrangement(&self) -> Arrangement {
        self.space.arrangement()
    }

    pub(crate) fn space_mut(&mut self) -> &mut Space<M> {
        &mut self.space
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if M::BANDED { self.space.check_bands() } else { self.space.check() }
    }
}
