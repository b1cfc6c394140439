//! The array: dies and buses driven by events, blocks with their rules.
//!
//! [`Array::submit`] checks a command against the rules and queues it on its die;
//! [`Array::advance`] processes events up to a time and returns completions. Nothing happens
//! between these calls, so the caller owns the clock. The progress of commands is in `events`,
//! suspension of programs and erases for reads in `suspend`, the effects of power cuts in
//! `power_cut`. `injector` selects the commands that silent and planned faults strike, `injection`
//! has the effects of these faults.

mod die;
mod effects;
mod events;
mod injection;
mod injector;
mod power_cut;
mod recorder;
mod submit;
mod suspend;

pub use power_cut::PowerCutReport;
pub use recorder::Recorded;

use crate::address::{BlockAddress, BlockIndex, ChannelIndex, DieIndex};
use crate::block::{BlockRecord, BlockState, BlockTable, Health};
use crate::cell::PageTable;
use crate::channel::Channel;
use crate::command::{CommandKind, Finished};
use crate::config::{ArrayConfig, ConfigError};
use crate::damage::PageDamage;
use crate::faults::FaultConfig;
use crate::geometry::Geometry;
use crate::storage::{PackedStore, PageStore, RamStore, Storage};
use crate::timing::Timing;
use crate::tournament::Tournament;
use die::{Die, SLOTS};
use softflash_base::Time;
use softflash_base::random::Rng;
use thiserror::Error;

/// A flash array.
///
/// A new array is erased, with its factory-bad blocks drawn from the seed. Equal configuration,
/// seed and calls give equal results, event by event. The random draws of a die do not depend on
/// the other dies.
pub struct Array {
    dies: Vec<Die>,
    channels: Vec<Channel>,
    core: Core,
}

/// The array without its dies and channels, so that an event's handler can borrow its die and
/// channel and change the rest.
struct Core {
    geometry: Geometry,
    timing: Timing,
    pages: PageTable,
    faults: FaultConfig,
    blocks: BlockTable,
    events: Tournament,
    store: Option<Box<dyn PageStore>>,
    /// Data of commands in progress: one buffer for each slot of each die, empty until its first
    /// use.
    registers: Vec<Vec<u8>>,
    /// The data returned for reads without a readable page.
    zeros: Vec<u8>,
    /// One random generator per die.
    rngs: Vec<Rng>,
    now: u64,
    counters: ArrayCounters,
    recorder: Option<Box<recorder::Recorder>>,
    /// Silent, planned and slow faults, if any are possible.
    injector: Option<Box<injector::Injector>>,
}

/// Counters of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrayCounters {
    /// Commands accepted.
    pub submitted: u64,
    /// Commands completed. The rest are in progress, or were lost in power cuts.
    pub finished: u64,
    /// Commands lost in power cuts.
    pub lost: u64,
    /// Events processed.
    pub events: u64,
    /// Pages read, readable or not.
    pub pages_read: u64,
    /// Pages programmed, including failed programs.
    pub pages_programmed: u64,
    /// Blocks erased, including failed erases.
    pub blocks_erased: u64,
    /// Suspensions of programs and erases for a read.
    pub suspensions: u64,
}

/// Why a block's record cannot be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The block is outside the array.
    #[error("block {} of plane {} of die {} does not exist", .0.block, .0.plane, .0.die)]
    NoSuchBlock(BlockAddress),
    /// The record names a page that cannot exist.
    #[error("page {page} is beyond the {limit} that the record and the block have")]
    NoSuchPage {
        /// The page.
        page: u32,
        /// The limit of page numbers.
        limit: u32,
    },
    /// The die has a command in progress.
    #[error("die {die} is at work; import when it is idle")]
    DieAtWork {
        /// The die.
        die: DieIndex,
    },
}

impl Array {
    /// An erased array. `seed` determines factory-bad blocks and all later random draws.
    pub fn new(
        config: &ArrayConfig,
        storage: Storage,
        faults: &FaultConfig,
        seed: u64,
    ) -> Result<Array, ConfigError> {
        let (timing, pages) = config.compile()?;
        faults.validate()?;
        let geometry = config.geometry;
        let keeps_data = !matches!(storage, Storage::TimingOnly);
        let (dies, per_channel) = (geometry.dies(), geometry.dies_per_channel());
        let rng = Rng::seeded(seed).fork("nand");
        let new_die = |die: u32| {
            Die::new(DieIndex(die), (die / per_channel) as u16, (die % per_channel) as u8)
        };
        let mut core = Core {
            geometry,
            timing,
            pages,
            faults: *faults,
            blocks: BlockTable::new(geometry.blocks()),
            events: Tournament::new(geometry.channels.into(), per_channel as usize),
            store: match storage {
                Storage::TimingOnly => None,
                Storage::Ram => Some(Box::new(RamStore::new(&geometry))),
                Storage::Packed => Some(Box::new(PackedStore::new(&geometry))),
                Storage::Store(store) => Some(store),
            },
            registers: vec![Vec::new(); dies as usize * SLOTS],
            zeros: match keeps_data {
                true => {
                    vec![0; usize::from(geometry.planes_per_die) * geometry.page_bytes as usize]
                }
                false => Vec::new(),
            },
            rngs: (0..dies).map(|die| rng.fork(die.to_le_bytes())).collect(),
            now: 0,
            counters: ArrayCounters::default(),
            recorder: None,
            injector: None,
        };
        core.injector = injector::Injector::new(faults, &core.rngs, geometry.channels);
        core.draw_factory_bad_blocks();
        Ok(Array {
            dies: (0..dies).map(new_die).collect(),
            channels: (0..dies).step_by(per_channel as usize).map(Channel::new).collect(),
            core,
        })
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.core.geometry
    }

    /// The time that the array has reached.
    pub fn now(&self) -> Time {
        Time(self.core.now)
    }

    /// The time of the next event, if nothing is submitted before; `None` if all dies are idle.
    #[inline]
    pub fn next_event_at(&self) -> Option<Time> {
        self.core.events.first_at().map(Time)
    }

    /// The number of commands on a die.
    pub fn die_load(&self, die: DieIndex) -> u8 {
        self.dies.get(die.index()).map_or(0, Die::load)
    }

    /// Busy time of a die's cell array in nanoseconds, including all of the operation in progress.
    pub fn die_busy_ns(&self, die: DieIndex) -> u64 {
        self.dies.get(die.index()).map_or(0, |die| die.busy_ns)
    }

    /// Busy time of a channel's bus in nanoseconds, including all of the transfer in progress.
    pub fn channel_busy_ns(&self, channel: ChannelIndex) -> u64 {
        self.channels.get(channel.index()).map_or(0, |channel| channel.busy_ns)
    }

    /// The counters.
    pub fn counters(&self) -> ArrayCounters {
        self.core.counters
    }

    /// The data of a completed read: the pages of its planes in order; empty for other commands,
    /// and if the array stores no data. The bytes of a plane whose status is not good are
    /// undefined, as are those of a [`head`](crate::DieCommand::head) read after the first sector.
    /// Valid until the next command is submitted to the same die.
    ///
    /// # Panics
    /// If `finished` comes from another array.
    pub fn read_data(&self, finished: &Finished) -> &[u8] {
        if self.core.store.is_none() || finished.kind != CommandKind::Read {
            return &[];
        }
        let bytes = usize::from(finished.planes) * self.core.page_bytes();
        if !finished.statuses().iter().any(|status| status.is_good()) {
            return &self.core.zeros[..bytes];
        }
        let register = finished.die.index() * SLOTS + usize::from(finished.slot);
        &self.core.registers[register][..bytes]
    }

    /// A block's state now; `None` outside the array.
    pub fn block_state(&self, block: BlockAddress) -> Option<BlockState> {
        let index = self.core.geometry.block_index(block)?;
        Some(self.core.blocks.state(index, self.core.now_s()))
    }

    /// All bad blocks, in ascending order.
    pub fn bad_blocks(&self) -> impl Iterator<Item = (BlockAddress, Health)> + '_ {
        (0..self.core.geometry.blocks()).filter_map(|index| {
            let health = self.core.blocks.get(BlockIndex(index)).health;
            let bad = health != Health::Good;
            bad.then(|| (self.core.geometry.block_address(BlockIndex(index)), health))
        })
    }

    /// For each page of a block, the number of its pages that must be programmed until no power cut
    /// in a later program can destroy this page or one before it.
    pub fn safe_after(&self) -> Vec<u32> {
        if self.core.faults.paired_page_loss > 0.0 {
            self.core.pages.safe_after()
        } else {
            (1..=self.core.geometry.pages_per_block).collect()
        }
    }

    /// Marks a block bad, at once. Returns false for a block outside the array.
    pub fn mark_bad(&mut self, block: BlockAddress) -> bool {
        let Some(index) = self.core.geometry.block_index(block) else { return false };
        let block = self.core.blocks.get_mut(index);
        if block.health == Health::Good {
            block.health = Health::GrownBad;
        }
        true
    }

    /// The state of a block that survives a power cycle, without its data; `None` outside the
    /// array.
    pub fn export_block(&self, block: BlockAddress) -> Option<BlockRecord> {
        let index = self.core.geometry.block_index(block)?;
        Some(self.core.blocks.export(index, self.core.now))
    }

    /// Restores a block to a recorded state. If the array stores data, the page store must hold the
    /// data of the block's pages.
    pub fn import_block(
        &mut self,
        block: BlockAddress,
        record: &BlockRecord,
    ) -> Result<(), ImportError> {
        let index = self.core.geometry.block_index(block).ok_or(ImportError::NoSuchBlock(block))?;
        if self.die_load(block.die) > 0 {
            return Err(ImportError::DieAtWork { die: block.die });
        }
        let limit = self.core.geometry.pages_per_block;
        let pointer = record.write_pointer.unwrap_or(0);
        if pointer > limit {
            return Err(ImportError::NoSuchPage { page: pointer, limit });
        }
        let impossible = |&&(page, damage): &&(u32, PageDamage)| match damage {
            PageDamage::Stray => page > pointer || page >= limit,
            _ => page >= pointer,
        };
        if let Some(&(page, _)) = record.damaged.iter().find(impossible) {
            return Err(ImportError::NoSuchPage { page, limit: pointer });
        }
        self.core.blocks.import(index, record, self.core.now);
        Ok(())
    }

    /// Memory in use, data included, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let registers: usize = self.core.registers.iter().map(Vec::capacity).sum();
        let registers = registers + self.core.zeros.capacity();
        let tables = self.dies.capacity() * size_of::<Die>()
            + self.channels.capacity() * size_of::<Channel>()
            + self.core.registers.capacity() * size_of::<Vec<u8>>()
            + self.core.rngs.capacity() * size_of::<Rng>();
        let store = self.core.store.as_ref().map_or(0, |store| store.memory_bytes());
        let parts = [self.core.blocks.memory_bytes(), self.core.events.memory_bytes(), store];
        (size_of::<Array>() + registers + tables) as u64
            + self.core.pages.memory_bytes()
            + parts.iter().sum::<u64>()
    }
}

impl Core {
    fn draw_factory_bad_blocks(&mut self) {
        let per_die = self.geometry.blocks_per_die();
        for index in 0..self.geometry.blocks() {
            let rng = &mut self.rngs[(index / per_die) as usize];
            if rng.chance(self.faults.factory_bad_block) {
                self.blocks.make_factory_bad(BlockIndex(index));
            }
        }
    }

    #[inline]
    fn page_bytes(&self) -> usize {
        self.geometry.page_bytes as usize
    }

    /// The array's clock in seconds, for the ages of blocks.
    #[inline]
    fn now_s(&self) -> u64 {
        self.now / 1_000_000_000
    }
}
