//! A device whose commands cost as little as possible, so that a benchmark of the software above it
//! measures that software: every command has ended at the next poll, and data are not kept.
//!
//! All data of the benchmark are the byte [`FILLER`], so of a page of data nothing is kept. All
//! other pages (headers, heads of frames, the map) are kept, so that a domain can be mounted again.

use softflash_base::{BufferPool, IoBuf, Time, UnitId, UnitSet, cast};
use softflash_device::backend::Accepted;
use softflash_device::{
    Command, Completion, Described, DeviceError, Operation, QueuePair, Submit, Target,
    UnitGeometry, Wake,
};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// The byte of all data.
pub const FILLER: u8 = 0xa5;
/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// A page is one of data if it begins and ends with so many bytes of [`FILLER`].
const RECOGNISED_BY: usize = 32;
/// Unused memory for buffers that is kept.
const RETAINED_BYTES: usize = 64 << 20;
/// Commands that a unit takes, as one of a file device.
const QUEUE_DEPTH: u16 = 64;
const UUID: u128 = 1;

/// The contents of a page.
#[derive(Clone)]
enum Page {
    Erased,
    Data,
    Kept(Box<[u8; PAGE_BYTES]>),
}

/// Commands and pages of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    pub commands: u64,
    pub pages: u64,
}

impl Traffic {
    fn count(&mut self, pages: usize) {
        self.commands += 1;
        self.pages += cast::wide(pages);
    }

    /// Pages of a command, as a mean.
    pub fn pages_of_one(self) -> usize {
        (self.pages.div_ceil(self.commands.max(1)) as usize).max(1)
    }

    fn since(self, before: Traffic) -> Traffic {
        Traffic { commands: self.commands - before.commands, pages: self.pages - before.pages }
    }
}

/// All commands so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Commands {
    pub reads: Traffic,
    pub programs: Traffic,
}

impl Commands {
    /// Those after an earlier count.
    pub fn since(self, before: Commands) -> Commands {
        Commands {
            reads: self.reads.since(before.reads),
            programs: self.programs.since(before.programs),
        }
    }
}

/// The pages, which outlive a queue pair.
pub struct Medium {
    geometry: UnitGeometry,
    units: u16,
    pages: Vec<Page>,
    /// Memory of kept pages that were erased.
    unused: Vec<Box<[u8; PAGE_BYTES]>>,
    commands: Commands,
}

/// A medium that queue pairs share.
pub type SharedMedium = Rc<RefCell<Medium>>;

impl Medium {
    /// Erased units of so many superblocks, with so many pages each.
    pub fn new(units: u16, superblocks: u32, superblock_pages: u32) -> Medium {
        let geometry = UnitGeometry {
            dies: 1,
            planes: 1,
            blocks_per_plane: superblocks,
            pages_per_block: superblock_pages,
            page_bytes: cast::saturating_u32(PAGE_BYTES),
            die_queue_depth: QUEUE_DEPTH,
        };
        let pages = usize::from(units) * cast::index(superblocks) * cast::index(superblock_pages);
        Medium {
            geometry,
            units,
            pages: vec![Page::Erased; pages],
            unused: Vec::new(),
            commands: Commands::default(),
        }
    }

    /// All commands so far.
    pub fn commands(&self) -> Commands {
        self.commands
    }

    fn pages_of(&self, target: &Target, rows: u32) -> Range<usize> {
        let UnitGeometry { blocks_per_plane, pages_per_block, .. } = self.geometry;
        let block = u32::from(target.unit.0) * blocks_per_plane + target.blocks[0];
        let first = cast::index(block) * cast::index(pages_per_block) + cast::index(target.page);
        first..first + cast::index(rows)
    }

    fn read(&mut self, target: &Target, into: &mut IoBuf) -> Result<(), DeviceError> {
        let range = self.pages_of(target, target.rows);
        self.commands.reads.count(range.len());
        for ((page, kept), into) in
            (target.page..).zip(&self.pages[range]).zip(into.chunks_exact_mut(PAGE_BYTES))
        {
            match kept {
                Page::Erased => return Err(DeviceError::Erased { page }),
                Page::Data => into.fill(FILLER),
                Page::Kept(bytes) => into.copy_from_slice(&bytes[..]),
            }
        }
        Ok(())
    }

    fn program(&mut self, target: &Target, data: &IoBuf) {
        let range = self.pages_of(target, target.rows);
        self.commands.programs.count(range.len());
        for (at, bytes) in range.zip(data.chunks_exact(PAGE_BYTES)) {
            self.pages[at] = if is_data(bytes) {
                Page::Data
            } else {
                let mut page = self.unused.pop().unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
                page.copy_from_slice(bytes);
                Page::Kept(page)
            };
        }
    }

    fn erase(&mut self, target: &Target) {
        let whole = self.pages_of(target, self.geometry.pages_per_block);
        for page in &mut self.pages[whole] {
            if let Page::Kept(memory) = std::mem::replace(page, Page::Erased) {
                self.unused.push(memory);
            }
        }
    }
}

fn is_data(page: &[u8]) -> bool {
    let (first, last) = (&page[..RECOGNISED_BY], &page[PAGE_BYTES - RECOGNISED_BY..]);
    first == [FILLER; RECOGNISED_BY] && last == [FILLER; RECOGNISED_BY]
}

/// A queue pair over all units of a medium.
pub struct NullQueue {
    units: UnitSet,
    geometry: UnitGeometry,
    medium: SharedMedium,
    pool: BufferPool,
    ended: Vec<Completion>,
}

impl NullQueue {
    pub fn new(medium: &SharedMedium) -> NullQueue {
        NullQueue {
            units: UnitSet::from(0..medium.borrow().units),
            geometry: medium.borrow().geometry,
            medium: Rc::clone(medium),
            pool: BufferPool::new(RETAINED_BYTES),
            ended: Vec::new(),
        }
    }
}

impl Described for NullQueue {
    fn geometry(&self) -> &UnitGeometry {
        &self.geometry
    }

    fn device_uuid(&self) -> u128 {
        UUID
    }

    fn units(&self) -> &UnitSet {
        &self.units
    }

    fn bad_blocks(&self, _unit: UnitId) -> Vec<(u8, u8, u32)> {
        Vec::new()
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for NullQueue {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let Command { tag, target, operation, .. } = command;
        let mut medium = self.medium.borrow_mut();
        let (result, buffer) = match operation {
            Operation::Read(mut buffer) => (medium.read(&target, &mut buffer), Some(buffer)),
            Operation::Program { data, .. } => {
                medium.program(&target, &data);
                (Ok(()), Some(data))
            }
            Operation::Erase => {
                medium.erase(&target);
                (Ok(()), None)
            }
            Operation::Flush | Operation::MarkBad => (Ok(()), None),
        };
        self.ended.push(Accepted::new(tag, now, 0).ended(now, buffer, result));
        Submit::Accepted
    }

    fn poll(&mut self, _now: Time, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
    }

    fn wake(&self) -> Wake {
        if self.ended.is_empty() { Wake::Idle } else { Wake::Now }
    }

    /// No other queue pair shares its medium.
    fn give_up(&mut self, _unit: UnitId) {}
}
