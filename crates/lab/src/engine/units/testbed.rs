//! The blocks of a run and their superblocks, over the FTL that serves stores.

use crate::error::LabError;
use softflash_base::random::Rng;
use softflash_base::{IoBuf, Time};
use softflash_flash::Flash;
use softflash_ftl::{FtlError, Hint, OwnerTag, Superblock};
use softflash_policy::PlacementPolicy;
use softflash_policy::placement::{self, Candidates};
use softflash_runtime::RuntimeHandle;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The units of a device with the blocks that clients have written to them.
pub struct Testbed {
    /// The FTL.
    pub flash: Flash,
    /// Clock and executor.
    pub runtime: RuntimeHandle,
    units: Vec<UnitBlocks>,
    /// The unit of the last write of a client without its own unit.
    last: Cell<usize>,
    /// Writes under way to each unit.
    writers: RefCell<Vec<u32>>,
}

/// The blocks of one unit: a place for each, whose superblock changes with every write.
#[derive(Default)]
struct UnitBlocks {
    places: RefCell<Vec<Option<Superblock>>>,
    /// Places in the order in which they were written.
    written: RefCell<VecDeque<usize>>,
}

impl Testbed {
    /// A testbed without blocks.
    pub fn new(flash: Flash, runtime: RuntimeHandle) -> Testbed {
        let units: Vec<UnitBlocks> = flash.units().iter().map(|_| UnitBlocks::default()).collect();
        let writers = RefCell::new(vec![0; units.len()]);
        Testbed { last: Cell::new(units.len().saturating_sub(1)), flash, runtime, units, writers }
    }

    /// Units of the device.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.runtime.now()
    }

    /// Bytes of payload in the blocks of a unit.
    pub fn stored_bytes(&self, unit: usize) -> u64 {
        let blocks = self.units[unit].places.borrow().len();
        blocks as u64 * self.flash.payload_bytes() as u64
    }

    /// Writes new blocks to a unit until it has `blocks`, all with the same buffer. `told` is
    /// called after each, and its error ends the fill.
    pub async fn fill(
        &self,
        unit: usize,
        blocks: usize,
        told: &dyn Fn() -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut data = self.buffer();
        let stored = self.units[unit].places.borrow().len();
        for place in stored..blocks {
            let superblock = self.allocate(unit)?;
            data = self.append(&superblock, data).await?;
            self.units[unit].places.borrow_mut().push(Some(superblock));
            self.units[unit].written.borrow_mut().push_back(place);
            told()?;
        }
        Ok(())
    }

    /// A buffer for a write.
    pub fn buffer(&self) -> IoBuf {
        self.flash.buffer(self.flash.payload_bytes())
    }

    /// Overwrites the oldest block of a unit: erases a superblock and writes all of its payload.
    /// The old superblock is released after the write, or before it if there is no other space.
    pub async fn overwrite(&self, unit: usize, data: IoBuf) -> Result<IoBuf, LabError> {
        let blocks = &self.units[unit];
        let oldest = blocks.written.borrow_mut().pop_front();
        let place = oldest.unwrap_or_else(|| {
            blocks.places.borrow_mut().push(None);
            blocks.places.borrow().len() - 1
        });
        self.writers.borrow_mut()[unit] += 1;
        if self.flash.space(unit as u16).free() == 0 {
            self.give_back(unit, place, None);
        }
        let superblock = self.allocate(unit)?;
        let data = self.append(&superblock, data).await?;
        self.give_back(unit, place, Some(superblock));
        blocks.written.borrow_mut().push_back(place);
        self.writers.borrow_mut()[unit] -= 1;
        Ok(data)
    }

    /// Replaces the superblock of a place, and releases the old one.
    fn give_back(&self, unit: usize, place: usize, with: Option<Superblock>) {
        let old = std::mem::replace(&mut self.units[unit].places.borrow_mut()[place], with);
        if let Some(old) = old {
            self.flash.release(&old);
        }
    }

    fn allocate(&self, unit: usize) -> Result<Superblock, LabError> {
        let tag = OwnerTag([0; 64]);
        self.flash.allocate(unit as u16, tag, Hint::FOREGROUND).map_err(failed)
    }

    async fn append(&self, superblock: &Superblock, data: IoBuf) -> Result<IoBuf, LabError> {
        let appended = self.flash.append(superblock, data, false, Hint::FOREGROUND);
        let (_, outcome) = appended.map_err(|(error, _)| failed(error))?;
        let (result, data) = outcome.await;
        result.map_err(failed)?;
        data.ok_or_else(|| LabError::Simulation("a write lost its buffer".to_owned()))
    }

    /// Reads `bytes` from `offset` of a unit's blocks, laid end to end. A request may reach into
    /// the next block.
    pub async fn read(&self, unit: usize, offset: u64, bytes: u64) -> Result<(), LabError> {
        let (page, payload) = (self.flash.page_bytes() as u64, self.flash.payload_bytes() as u64);
        let end = (offset + bytes).next_multiple_of(page);
        let mut at = offset / page * page;
        let mut parts = Vec::new();
        while at < end {
            let (place, within) = ((at / payload) as usize, at % payload);
            let part = (payload - within).min(end - at);
            parts.push(self.read_part(unit, place, (within / page) as u32, (part / page) as u32));
            at += part;
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => only.await,
            last => {
                parts.extend(last);
                futures_util::future::try_join_all(parts).await.map(drop)
            }
        }
    }

    async fn read_part(
        &self,
        unit: usize,
        place: usize,
        first: u32,
        pages: u32,
    ) -> Result<(), LabError> {
        let mut place = place;
        let superblock = loop {
            let places = self.units[unit].places.borrow();
            match places.get(place) {
                Some(Some(superblock)) => break *superblock,
                // Being rewritten without a spare superblock; the read goes to its neighbour.
                Some(None) => place = (place + 1) % places.len(),
                None => {
                    return Err(LabError::Simulation(format!("unit {unit} has no block {place}")));
                }
            }
        };
        self.flash.read(&superblock, first, pages, Hint::FOREGROUND).await.map(drop).map_err(failed)
    }

    /// The unit that takes the next write by a placement policy. All have room.
    pub fn place(&self, policy: PlacementPolicy) -> usize {
        let (units, writers) = (self.units(), self.writers.borrow());
        let column = |of: &dyn Fn(u16) -> u32| (0..units as u16).map(of).collect::<Vec<u32>>();
        let candidates = Candidates {
            occupied: &vec![0; units],
            most: 1,
            erases: &column(&|unit| self.flash.most_erases(unit)),
            die: &column(&u32::from),
            waiting: &column(&|unit| self.flash.load(unit) + writers[usize::from(unit)]),
            cursor: ((self.last.get() + 1) % units) as u32,
        };
        let chosen = placement::choose(policy, &candidates).unwrap_or(candidates.cursor) as usize;
        self.last.set(chosen);
        chosen
    }

    /// A random unit.
    pub fn any(&self, rng: &mut Rng) -> usize {
        rng.below(self.units() as u64) as usize
    }
}

/// A testbed that its clients share.
pub type TestbedHandle = Rc<Testbed>;

fn failed(error: FtlError) -> LabError {
    LabError::Simulation(error.to_string())
}
