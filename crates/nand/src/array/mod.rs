//! The array: dies and buses driven by events, blocks with their rules.
//!
//! [`Array::submit`] checks a command against the rules and puts it on its die; [`Array::advance`]
//! plays events up to a time and reports what ended. In between nothing happens, so the caller owns
//! the clock. How commands move on is in `events`, how reads interrupt others in `suspend`, what a
//! power cut does in `power_cut`; which commands silent and planned faults strike is decided in
//! `injector`, and done in `injection`.

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
use crate::die::{Die, SLOTS};
use crate::faults::FaultConfig;
use crate::geometry::Geometry;
use crate::storage::{PackedStore, PageStore, RamStore, Storage};
use crate::timing::Timing;
use crate::tournament::Tournament;
use softflash_base::Time;
use softflash_base::random::Rng;
use thiserror::Error;

/// A flash array.
///
/// A new one is erased, with its factory-bad blocks drawn from the seed. Equal configuration, seed
/// and calls give equal results, event by event; what chance does to one die does not depend on the
/// others.
pub struct Array {
    dies: Vec<Die>,
    channels: Vec<Channel>,
    core: Core,
}

/// Everything of an array but its dies and channels, so that an event can hold those it is about
/// and change the rest.
struct Core {
    geometry: Geometry,
    timing: Timing,
    pages: PageTable,
    faults: FaultConfig,
    blocks: BlockTable,
    events: Tournament,
    store: Option<Box<dyn PageStore>>,
    /// Data of commands under way, one buffer for each slot of each die, empty until it is used.
    registers: Vec<Vec<u8>>,
    /// The data shown of reads that found none.
    zeros: Vec<u8>,
    /// Chance, for each die of its own.
    rngs: Vec<Rng>,
    now: u64,
    counters: ArrayCounters,
    recorder: Option<Box<recorder::Recorder>>,
    /// Silent, planned and slow faults, if there can be any.
    injector: Option<Box<injector::Injector>>,
}

/// Counters of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrayCounters {
    /// Commands taken.
    pub submitted: u64,
    /// Commands ended. The difference is under way, or was lost in power cuts.
    pub finished: u64,
    /// Commands that power cuts took.
    pub lost: u64,
    /// Events played.
    pub events: u64,
    /// Pages read, readable or not.
    pub pages_read: u64,
    /// Pages programmed, well or not.
    pub pages_programmed: u64,
    /// Blocks erased, well or not.
    pub blocks_erased: u64,
    /// Programs and erases interrupted for a read.
    pub suspensions: u64,
}

/// Why a block's record cannot be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The block is outside the array.
    #[error("block {} of plane {} of die {} does not exist", .0.block, .0.plane, .0.die)]
    NoSuchBlock(BlockAddress),
    /// The record names a page that cannot be.
    #[error("page {page} is beyond the {limit} that the record and the block have")]
    NoSuchPage {
        /// The page.
        page: u32,
        /// Pages there are.
        limit: u32,
    },
    /// A command is under way on the die.
    #[error("die {die} is at work; import when it is idle")]
    DieAtWork {
        /// The die.
        die: DieIndex,
    },
}

impl Array {
    /// An erased array. `seed` decides factory-bad blocks and all later chance.
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

    /// The shape.
    pub fn geometry(&self) -> &Geometry {
        &self.core.geometry
    }

    /// The time that the array has reached.
    pub fn now(&self) -> Time {
        Time(self.core.now)
    }

    /// When something happens next, if nothing is submitted before; `None` when all dies are idle.
    #[inline]
    pub fn next_event_at(&self) -> Option<Time> {
        self.core.events.first_at().map(Time)
    }

    /// Commands on a die.
    pub fn die_load(&self, die: DieIndex) -> u8 {
        self.dies.get(die.index()).map_or(0, Die::load)
    }

    /// Time that a die's cell array has worked, in nanoseconds, what it has begun included.
    pub fn die_busy_ns(&self, die: DieIndex) -> u64 {
        self.dies.get(die.index()).map_or(0, |die| die.busy_ns)
    }

    /// Time that a channel's bus was taken, in nanoseconds, the transfer it has begun included.
    pub fn channel_busy_ns(&self, channel: ChannelIndex) -> u64 {
        self.channels.get(channel.index()).map_or(0, |channel| channel.busy_ns)
    }

    /// The counters.
    pub fn counters(&self) -> ArrayCounters {
        self.core.counters
    }

    /// The data of a finished read, its planes' pages one after the other; empty for other
    /// commands, and if the array keeps no data. Bytes of a plane whose status is not good mean
    /// nothing, nor do those of a [`head`](crate::DieCommand::head) behind the first sector. Valid
    /// until the next command is submitted to the same die.
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

    /// Every block that is bad, in ascending order.
    pub fn bad_blocks(&self) -> impl Iterator<Item = (BlockAddress, Health)> + '_ {
        (0..self.core.geometry.blocks()).filter_map(|index| {
            let health = self.core.blocks.get(BlockIndex(index)).health;
            let bad = health != Health::Good;
            bad.then(|| (self.core.geometry.block_address(BlockIndex(index)), health))
        })
    }

    /// For each page of a block how many of its pages must be programmed until no power cut in a
    /// later program can take it, or one before it, along.
    pub fn safe_after(&self) -> Vec<u32> {
        if self.core.faults.paired_page_loss > 0.0 {
            self.core.pages.safe_after()
        } else {
            (1..=self.core.geometry.pages_per_block).collect()
        }
    }

    /// Takes a block out of service, at once. Returns false outside the array.
    pub fn mark_bad(&mut self, block: BlockAddress) -> bool {
        let Some(index) = self.core.geometry.block_index(block) else { return false };
        let block = self.core.blocks.get_mut(index);
        if block.health == Health::Good {
            block.health = Health::GrownBad;
        }
        true
    }

    /// The state of a block to keep across a power cycle, its data aside; `None` outside the array.
    pub fn export_block(&self, block: BlockAddress) -> Option<BlockRecord> {
        let index = self.core.geometry.block_index(block)?;
        Some(self.core.blocks.export(index, self.core.now))
    }

    /// Puts a block into a recorded state. The store must hold the data of its pages, if the array
    /// keeps data.
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

    /// Seconds of the array's clock, for ages.
    #[inline]
    fn now_s(&self) -> u64 {
        self.now / 1_000_000_000
    }
}
