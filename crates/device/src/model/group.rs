//! The array of one queue pair: some channels of the device, initialized from the medium and kept
//! consistent with it.

use super::channels::Channels;
use super::config::{Contents, ModelConfig};
use super::medium::{Medium, Part};
use crate::command::DeviceError;
use softflash_base::random::Rng;
use softflash_base::{Time, checksum::identity};
use softflash_nand::{
    Array, ArrayConfig, BlockAddress, BlockIndex, BlockRecord, ConfigError, DieCommand, DieIndex,
    Finished, PowerCutReport, Storage,
};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// An array over some channels, with power or without.
pub(super) struct Group {
    pub(super) array: Array,
    medium: Arc<dyn Medium>,
    channels: Arc<Channels>,
    /// Blocks whose records may differ from the medium's.
    touched: Vec<bool>,
    /// For each die, whether its unit was given up: another array may have its blocks.
    given_up: Vec<bool>,
    powered: bool,
    /// The initial state of the blocks, until the clock is known.
    initial: Option<Vec<BlockRecord>>,
}

impl Group {
    /// Builds the array over `channels` and restores the last state of its blocks.
    pub(super) fn new(
        config: &ModelConfig,
        channels: Channels,
        medium: &Arc<dyn Medium>,
        contents: Contents,
    ) -> io::Result<Group> {
        let channels = Arc::new(channels);
        let geometry = channels.geometry(&config.array.geometry);
        let part = Part {
            medium: Arc::clone(medium),
            channels: Arc::clone(&channels),
            pages_per_block: u64::from(geometry.pages_per_block),
        };
        let records = channels.blocks().map(|block| medium.load_record(block));
        let records: Vec<_> = records.collect::<io::Result<_>>()?;
        let seed = seed_for(config.seed, channels.first_block(), &records);
        let array_config = ArrayConfig { geometry, ..config.array.clone() };
        let store = match contents {
            Contents::Nothing => Storage::TimingOnly,
            _ => Storage::Store(Box::new(part)),
        };
        let array = Array::new(&array_config, store, &config.faults, seed).map_err(config_error)?;
        let mut group = Group {
            touched: vec![false; geometry.blocks() as usize],
            given_up: vec![false; geometry.dies() as usize],
            array,
            medium: Arc::clone(medium),
            channels,
            powered: true,
            initial: Some(records),
        };
        group.import()?;
        Ok(group)
    }

    /// Restores the initial state of every block.
    fn import(&mut self) -> io::Result<()> {
        for (index, record) in self.initial.iter().flatten().enumerate() {
            let address = self.array.geometry().block_address(BlockIndex(index as u32));
            self.array.import_block(address, record).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Advances the array to `now`, one event time after the other, but not beyond a planned power
    /// cut: `completed` gets the commands that ended at an event time while the array is at that
    /// time.
    pub(super) fn advance(
        &mut self,
        now: Time,
        scratch: &mut Vec<Finished>,
        mut completed: impl FnMut(&mut Group, &[Finished]),
    ) {
        self.start_clock(now);
        while let Some(at) = self.array.next_event_at().filter(|at| *at <= self.until(now)) {
            self.array.advance(at, scratch);
            if !scratch.is_empty() {
                completed(self, scratch);
                scratch.clear();
            }
        }
        if self.until(now) > self.array.now() {
            self.array.advance(self.until(now), scratch);
            assert!(scratch.is_empty(), "no event is left before now");
        }
    }

    /// The time to which the array may advance: `now`, or an earlier planned power cut.
    fn until(&self, now: Time) -> Time {
        self.array.planned_cut().map_or(now, |cut| cut.min(now))
    }

    /// The time of the planned power cut, if it is due by `now`.
    pub(super) fn cut_due(&self, now: Time) -> Option<Time> {
        self.array.planned_cut().filter(|cut| *cut <= now)
    }

    /// The time of the next event or planned power cut.
    pub(super) fn next_event_at(&self) -> Option<Time> {
        self.array.next_event_at().into_iter().chain(self.array.planned_cut()).min()
    }

    /// Starts the array's clock at the caller's time, which may be any; this jump does not age the
    /// blocks.
    fn start_clock(&mut self, now: Time) {
        if self.initial.is_none() {
            return;
        }
        if now > Time::ZERO {
            self.array.advance(now, &mut Vec::new());
            let imported = self.import();
            assert!(imported.is_ok(), "records that fitted once fit again: {imported:?}");
        }
        self.initial = None;
    }

    /// Marks a command's blocks as changed. Reads change blocks too, by read disturb.
    pub(super) fn touch(&mut self, command: &DieCommand) {
        for index in self.blocks_of(command) {
            self.touched[index.index()] = true;
        }
    }

    /// Writes the records of a completed command's blocks.
    pub(super) fn save_blocks_of(&self, command: &DieCommand) -> Result<(), DeviceError> {
        self.blocks_of(command).try_for_each(|index| self.save(index)).map_err(device_error)
    }

    /// Marks a command's blocks bad, durably.
    pub(super) fn mark_bad(&mut self, command: &DieCommand) -> Result<(), DeviceError> {
        for index in self.blocks_of(command) {
            self.array.mark_bad(self.array.geometry().block_address(index));
        }
        self.save_blocks_of(command)?;
        self.sync()
    }

    /// Makes all completed operations survive a power cut of the host.
    pub(super) fn sync(&self) -> Result<(), DeviceError> {
        self.medium.sync().map_err(device_error)
    }

    /// The channels of the array.
    pub(super) fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Whether the group has power.
    pub(super) fn is_powered(&self) -> bool {
        self.powered
    }

    /// Cuts the power at `at`, or at the array's time if that is later. Operations in progress are
    /// interrupted, and the group stays without power.
    pub(super) fn power_cut(&mut self, at: Time, seed: u64) -> io::Result<PowerCutReport> {
        if !self.powered {
            return Ok(PowerCutReport::default());
        }
        self.powered = false;
        self.start_clock(at);
        let at = at.max(self.array.now());
        let mut rng = Rng::seeded(identity(&[seed, u64::from(self.channels.first_block())]));
        let report = self.array.power_cut(at, &mut rng);
        self.save_touched(|_| true)?;
        Ok(report)
    }

    /// Writes the records of all blocks of these dies. They are not written again: another array
    /// may have the blocks from now on.
    pub(super) fn give_up(&mut self, dies: Range<u32>) -> io::Result<()> {
        let saved = self.save_touched(|die| dies.contains(&die.0));
        for die in dies {
            self.given_up[die as usize] = true;
        }
        saved
    }

    /// Writes the records of the blocks of some dies that may differ from the medium's.
    fn save_touched(&self, of: impl Fn(DieIndex) -> bool) -> io::Result<()> {
        // Misdirected programs changed blocks that no command named.
        let all = self.array.injected().misdirected_programs > 0;
        let touched = self.touched.iter().enumerate().filter(|(_, touched)| all || **touched);
        let indices = touched.map(|(index, _)| BlockIndex(index as u32));
        let mut indices =
            indices.filter(|index| of(self.array.geometry().block_address(*index).die));
        indices.try_for_each(|index| self.save(index))
    }

    /// See [`Array::safe_after`].
    pub(super) fn safe_after(&self) -> Vec<u32> {
        self.array.safe_after()
    }

    /// Bad blocks of the array, each with the array's index of its die.
    pub(super) fn bad_blocks(&self) -> Vec<BlockAddress> {
        self.array.bad_blocks().map(|(address, _)| address).collect()
    }

    fn save(&self, index: BlockIndex) -> io::Result<()> {
        let address = self.array.geometry().block_address(index);
        if self.given_up[address.die.index()] {
            return Ok(());
        }
        match self.array.export_block(address) {
            Some(record) => self.medium.save_record(self.channels.block(index), &record),
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn blocks_of(&self, command: &DieCommand) -> impl Iterator<Item = BlockIndex> + use<> {
        let DieCommand { die, plane, planes, blocks, .. } = *command;
        let geometry = *self.array.geometry();
        (0..planes).zip(blocks).filter_map(move |(offset, block)| {
            geometry.block_index(BlockAddress { die, plane: plane + offset, block })
        })
    }
}

/// The seed of an array. After a restart it differs from before, but it is still determined by the
/// configured seed: it depends on the history of the blocks.
fn seed_for(seed: u64, first_block: u32, records: &[BlockRecord]) -> u64 {
    let sum = |value: fn(&BlockRecord) -> u32| -> u64 {
        records.iter().map(|record| u64::from(value(record))).sum()
    };
    let erases = sum(|record| record.erase_count);
    let pages = sum(|record| record.write_pointer.unwrap_or(0));
    let reads = sum(|record| record.reads);
    identity(&[seed, u64::from(first_block), erases, pages, reads])
}

/// The records of a new device: the blocks that are bad from the factory.
pub(super) fn factory_bad(
    config: &ModelConfig,
) -> Result<Vec<(BlockIndex, BlockRecord)>, ConfigError> {
    let array = Array::new(&config.array, Storage::TimingOnly, &config.faults, config.seed)?;
    let geometry = array.geometry();
    let bad = array.bad_blocks().filter_map(|(address, _)| {
        Some((geometry.block_index(address)?, array.export_block(address)?))
    });
    Ok(bad.collect())
}

fn config_error(error: ConfigError) -> io::Error {
    io::Error::other(error)
}

fn device_error(error: io::Error) -> DeviceError {
    DeviceError::Io { errno: error.raw_os_error().unwrap_or(libc::EIO) }
}
