//! The public interface of the FTL.

use crate::blocks::BlockUse;
use crate::config::FtlConfig;
use crate::header::uuid_halves;
use crate::hint::Hint;
use crate::layout::{HEADER_PAGES, Layout};
use crate::mount::Mounting;
use crate::policy::wear;
use crate::request::{Done, Op, Request, RequestId};
use crate::slab::Slab;
use crate::superblock::{FtlError, Superblock};
use crate::telemetry::{SpaceAccount, UnitState, UnitTelemetry};
use crate::unit::{State, Unit};
use softflash_base::checksum;
use softflash_base::{BufferPool, Time, UnitId};
use softflash_device::{Completion, QueuePair, Wake};
use std::collections::VecDeque;
use std::ops::Range;

/// The host FTL over the units of one queue pair.
///
/// Requests are submitted at any time and finish in [`poll`](Ftl::poll), which must be called when
/// [`wake`](Ftl::wake) says so, and after submissions. A request that is refused at submission
/// returns its buffer with the error.
pub struct Ftl {
    pub(crate) queue: Box<dyn QueuePair>,
    pub(crate) pool: BufferPool,
    pub(crate) config: FtlConfig,
    pub(crate) layout: Layout,
    pub(crate) device_uuid: u128,
    pub(crate) die_depth: u16,
    pub(crate) range: Range<u16>,
    pub(crate) units: Vec<Unit>,
    pub(crate) ops: Slab<Op>,
    pub(crate) requests: Slab<Request>,
    pub(crate) serial: u32,
    /// Commands that need no die: flushes, and records of bad blocks.
    pub(crate) urgent: VecDeque<u32>,
    /// Dies whose queue may have a command to submit, as `(unit, die)`.
    pub(crate) ready_dies: Vec<(usize, u8)>,
    /// Dies whose command the device refused because it was full.
    pub(crate) stalled_dies: Vec<(usize, u8)>,
    pub(crate) finished: Vec<Done>,
    completions: Vec<Completion>,
}

impl Ftl {
    /// Begins a mount: [`Mounting::poll`] reads the headers on the flash and returns the FTL.
    pub fn mount(queue: Box<dyn QueuePair>, config: FtlConfig) -> Mounting {
        Mounting::new(queue, config)
    }

    /// An FTL over recovered units.
    pub(crate) fn new(
        queue: Box<dyn QueuePair>,
        config: FtlConfig,
        layout: Layout,
        units: Vec<Unit>,
    ) -> Ftl {
        Ftl {
            pool: queue.buffers().clone(),
            layout,
            device_uuid: queue.device_uuid(),
            die_depth: queue.geometry().die_queue_depth.min(config.max_die_depth).max(1),
            range: queue.units(),
            units,
            ops: Slab::new(),
            requests: Slab::new(),
            serial: 0,
            urgent: VecDeque::new(),
            ready_dies: Vec::new(),
            stalled_dies: Vec::new(),
            finished: Vec::new(),
            completions: Vec::new(),
            queue,
            config,
        }
    }

    /// The units of the queue pair.
    pub fn units(&self) -> Range<u16> {
        self.range.clone()
    }

    /// Pages of a superblock that its owner can write.
    pub fn payload_pages(&self) -> u32 {
        self.layout.payload_pages()
    }

    /// Number of payload pages of a superblock that must be appended so that a power cut in a later
    /// append cannot destroy any of the first `pages`. This is at least `pages`, more if pages
    /// share cells, and at most all pages.
    pub fn safe_after(&self, pages: u32) -> u32 {
        self.layout.safe_after(pages, |page| self.queue.safe_after(page))
    }

    /// The payload pages that are programmed next into the die of payload page `page` once that
    /// page is whole and safe from power cuts: if one of them has data, page `page` was programmed
    /// completely. Empty at the end of the superblock, and if the block is bad, as it is after a
    /// failed program.
    pub fn successors(&self, superblock: &Superblock, page: u32) -> Range<u32> {
        let column = self.layout.column(page + HEADER_PAGES);
        let Ok(unit) = self.locate(superblock) else { return 0..0 };
        let blocks = &self.units[unit].blocks;
        match blocks.block(superblock.index, column) {
            Some(block) if blocks.state(column, block) != BlockUse::Bad => {
                self.layout.successors(page, |page| self.queue.safe_after(page))
            }
            _ => 0..0,
        }
    }

    /// For each block of a superblock: the first payload page from `page` on, and the last payload
    /// page. The pages of a block are programmed in order.
    pub fn rest_of_blocks(&self, page: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let layout = self.layout;
        let end = (page + layout.columns()).min(layout.payload_pages());
        (page..end).map(move |first| (first, layout.last_of_block(first)))
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> u32 {
        self.layout.page_bytes
    }

    /// The pool for the buffers of requests. Other buffers work too but may be slower.
    pub fn buffers(&self) -> &BufferPool {
        &self.pool
    }

    /// The seed for the checksums of the data in this life of a superblock: device, unit, index and
    /// generation.
    pub fn identity(&self, superblock: &Superblock) -> u64 {
        let [low, high] = uuid_halves(self.device_uuid);
        checksum::identity(&[
            low,
            high,
            u64::from(superblock.unit.0),
            u64::from(superblock.index),
            superblock.generation,
        ])
    }

    /// Collects the completions up to `now`, submits commands that the device can take, and erases
    /// ahead of need.
    pub fn poll(&mut self, now: Time, done: &mut Vec<Done>) {
        loop {
            let mut completions = std::mem::take(&mut self.completions);
            self.queue.poll(now, &mut completions);
            for completion in completions.drain(..) {
                self.complete(now, completion);
            }
            self.completions = completions;
            self.ready_dies.append(&mut self.stalled_dies);
            self.erase_ahead(now);
            // A second poll may have to start the commands submitted here.
            if !self.run_queues(now) {
                break;
            }
        }
        done.append(&mut self.finished);
    }

    /// The event to wait for before the next [`poll`](Ftl::poll) can make progress.
    pub fn wake(&self) -> Wake {
        if !self.finished.is_empty() {
            return Wake::Now;
        }
        let erase_ahead = (0..self.units.len()).filter_map(|unit| self.erase_ahead_due(unit)).min();
        match (self.queue.wake(), erase_ahead) {
            (Wake::At(device), Some(due)) => Wake::At(device.min(due)),
            (Wake::Idle, _) if !self.stalled_dies.is_empty() || !self.urgent.is_empty() => {
                Wake::Now
            }
            (Wake::Idle, Some(due)) => Wake::At(due),
            // When the descriptor becomes readable, `poll` also starts the erases that are due.
            (device, _) => device,
        }
    }

    /// Whether no request or command is under way and all finished requests are collected.
    pub fn idle(&self) -> bool {
        self.ops.len() == 0 && self.requests.len() == 0 && self.finished.is_empty()
    }

    /// Requests a flush. When it is done, all appends that were done when it was requested survive
    /// a power cut.
    pub fn flush(&mut self, now: Time, _hint: Hint) -> RequestId {
        let (place, id) = self.new_request(None);
        self.requests.get_mut(place).remaining = 1;
        self.queue_flush(now, place);
        self.run_queues(now);
        id
    }

    /// Commands of a unit that wait or are in the device. Cheap, for placement.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn load(&self, unit: UnitId) -> u32 {
        self.unit(unit).load
    }

    /// Number of superblocks of a unit in each state.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn space(&self, unit: UnitId) -> SpaceAccount {
        self.unit(unit).space()
    }

    /// The greatest generation in the headers on the flash of the unit; 0 if there is none. It does
    /// not decrease unless the flash loses data.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn newest_generation(&self, unit: UnitId) -> u64 {
        self.unit(unit).newest.map_or(0, |(generation, _)| generation)
    }

    /// The state and the counters of a unit. Scans all blocks, so it is too slow to call for every
    /// request.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn telemetry(&self, unit: UnitId) -> UnitTelemetry {
        let unit = self.unit(unit);
        let space = unit.space();
        let (erase_count_min, erase_count_mean, erase_count_max, bad_blocks) = unit.blocks.survey();
        let busy_ns: u64 = unit.dies.iter().map(|die| die.busy_ns).sum();
        let state = if space.is_worn_out() {
            UnitState::ReadOnly
        } else if space.free() == 0 {
            UnitState::Full
        } else {
            UnitState::Online
        };
        UnitTelemetry {
            unit: unit.id,
            state,
            queue: unit.load,
            busy_ns: busy_ns / unit.dies.len() as u64,
            space,
            superblock_payload_bytes: u64::from(self.layout.payload_pages())
                * u64::from(self.layout.page_bytes),
            erase_count_min,
            erase_count_mean,
            erase_count_max,
            bad_blocks,
            damaged_headers: unit.damaged_headers,
            reads: unit.counters.reads,
            programs: unit.counters.programs,
            erases: unit.counters.erases,
            bytes_read: unit.counters.bytes_read,
            bytes_programmed: unit.counters.bytes_programmed,
            errors: unit.counters.errors,
        }
    }

    /// The superblock of a unit that its owner should rewrite elsewhere to level wear: its data is
    /// so cold that its blocks have far fewer erases than the most worn block. None if wear is
    /// level enough.
    ///
    /// # Panics
    /// If the unit is not in [`units`](Ftl::units).
    pub fn worth_moving(&self, unit: UnitId) -> Option<Superblock> {
        let unit = self.unit(unit);
        let live = (0_u32..)
            .zip(&unit.slots)
            .filter(|(_, slot)| slot.state == State::Live)
            .map(|(index, slot)| (index, slot.wear));
        let highest = unit.blocks.highest_erase_count();
        let index = wear::lagging(live, highest, self.config.wear_spread)?;
        Some(Superblock { unit: unit.id, index, generation: unit.slot(index).generation })
    }

    /// Recounts all superblocks, blocks and commands, for tests and checks.
    ///
    /// # Panics
    /// If one is lost or counted twice, which is a defect.
    pub fn check(&self) {
        self.units.iter().for_each(Unit::check);
    }

    /// The place of a unit in the table of units.
    pub(crate) fn place(&self, unit: UnitId) -> Result<usize, FtlError> {
        if self.range.contains(&unit.0) {
            Ok(usize::from(unit.0 - self.range.start))
        } else {
            Err(FtlError::NotOurs { unit })
        }
    }

    fn unit(&self, unit: UnitId) -> &Unit {
        match self.place(unit) {
            Ok(place) => &self.units[place],
            Err(error) => unreachable!("{error}; its units are {:?}", self.range),
        }
    }

    /// The place of the unit of a superblock; an error if the handle is stale.
    pub(crate) fn locate(&self, superblock: &Superblock) -> Result<usize, FtlError> {
        let place = self.place(superblock.unit)?;
        let slot = self.units[place].slots.get(superblock.index as usize);
        match slot {
            Some(slot)
                if slot.generation == superblock.generation
                    && matches!(slot.state, State::Open | State::Live) =>
            {
                Ok(place)
            }
            _ => Err(FtlError::Stale { superblock: *superblock }),
        }
    }

    pub(crate) fn new_request(&mut self, superblock: Option<Superblock>) -> (u32, RequestId) {
        self.serial = self.serial.wrapping_add(1);
        let place = self.requests.insert(Request::new(self.serial, superblock));
        (place, RequestId::new(self.serial, place))
    }
}
