//! Flash in memory that panics at every violation of its rules, and whose power can be cut at any
//! time.

use super::Choices;
use softflash_base::{BufferPool, Time, UnitId, UnitSet};
use softflash_device::backend::Accepted;
use softflash_device::{
    Command, Completion, Described, DeviceError, Hint, Operation, QueuePair, Submit, Target,
    UnitGeometry, Wake,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The kind of medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// NAND: pages are programmed in order, once per erase; all programmed pages survive.
    Nand,
    /// A file without discard: an erase changes nothing, pages can be overwritten, and a page that
    /// was neither durable nor flushed may or may not survive a power cut.
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Program,
    Erase,
    Flush,
    MarkBad,
}

pub fn kind(operation: &Operation) -> Kind {
    match operation {
        Operation::Read(_) => Kind::Read,
        Operation::Program { .. } => Kind::Program,
        Operation::Erase => Kind::Erase,
        Operation::Flush => Kind::Flush,
        Operation::MarkBad => Kind::MarkBad,
    }
}

#[derive(Clone, Default)]
struct Page {
    now: Option<Vec<u8>>,
    stable: Option<Vec<u8>>,
}

struct Block {
    pages: Vec<Page>,
    next_page: u32,
    bad: bool,
    erases: u32,
}

type Fault = Box<dyn FnMut(&Command) -> Option<DeviceError>>;
type BlankRead = Box<dyn FnMut(&Target) -> bool>;

/// The state that outlives the queue pairs.
pub struct Flash {
    pub geometry: UnitGeometry,
    pub media: Media,
    units: u16,
    blocks: Vec<Block>,
    /// Decides which commands fail.
    pub fault: Option<Fault>,
    /// Decides which reads return zeros without an error.
    pub blank_read: Option<BlankRead>,
    /// Commands in the order in which they were submitted.
    pub log: Vec<(Time, Kind, Target)>,
    /// The hints of the same commands.
    pub hints: Vec<(Kind, Hint)>,
    /// Commands in the device, oldest first.
    in_device: VecDeque<(Time, Accepted, Command)>,
    pub uuid: u128,
}

pub type FlashRef = Rc<RefCell<Flash>>;

impl Flash {
    pub fn new(geometry: UnitGeometry, units: u16, media: Media) -> FlashRef {
        let count = u32::from(units) * geometry.row_pages() * geometry.blocks_per_plane;
        let block = || Block {
            pages: vec![Page::default(); geometry.pages_per_block as usize],
            next_page: 0,
            bad: false,
            erases: 0,
        };
        Rc::new(RefCell::new(Flash {
            geometry,
            media,
            units,
            blocks: (0..count).map(|_| block()).collect(),
            fault: None,
            blank_read: None,
            log: Vec::new(),
            hints: Vec::new(),
            in_device: VecDeque::new(),
            uuid: 77,
        }))
    }

    fn at(&self, unit: UnitId, die: u8, plane: u8, block: u32) -> usize {
        let g = &self.geometry;
        let column = (u32::from(unit.0) * u32::from(g.dies) + u32::from(die)) * u32::from(g.planes)
            + u32::from(plane);
        (column * g.blocks_per_plane + block) as usize
    }

    fn blocks_of(&self, target: &Target) -> Vec<usize> {
        (0..target.planes)
            .map(|plane| {
                let block = target.blocks[usize::from(plane)];
                self.at(target.unit, target.die, target.plane + plane, block)
            })
            .collect()
    }

    pub fn make_bad(&mut self, unit: u16, die: u8, plane: u8, block: u32) {
        let at = self.at(UnitId(unit), die, plane, block);
        self.blocks[at].bad = true;
    }

    pub fn is_bad(&self, unit: u16, die: u8, plane: u8, block: u32) -> bool {
        self.blocks[self.at(UnitId(unit), die, plane, block)].bad
    }

    /// Erases of every good block of a unit.
    pub fn erase_counts(&self, unit: u16) -> Vec<u32> {
        let per_unit = self.blocks.len() / usize::from(self.units);
        let blocks = &self.blocks[per_unit * usize::from(unit)..][..per_unit];
        blocks.iter().filter(|block| !block.bad).map(|block| block.erases).collect()
    }

    /// Changes a byte of a page.
    pub fn corrupt(&mut self, unit: u16, die: u8, plane: u8, block: u32, page: u32, byte: usize) {
        let at = self.at(UnitId(unit), die, plane, block);
        let page = &mut self.blocks[at].pages[page as usize];
        page.now.as_mut().expect("a written page")[byte] ^= 0x40;
    }

    /// Lets two pages of a block change places.
    pub fn exchange(&mut self, unit: u16, block: u32, one: u32, other: u32) {
        let at = self.at(UnitId(unit), 0, 0, block);
        let pages = &mut self.blocks[at].pages;
        let (one, other) = (one as usize, other as usize);
        let first = pages[one].now.take();
        pages[one].now = pages[other].now.take();
        pages[other].now = first;
    }

    /// Commands of a kind submitted so far.
    pub fn count(&self, of: Kind) -> usize {
        self.log.iter().filter(|(_, kind, _)| *kind == of).count()
    }

    /// Cuts the power: each command in the device is lost, completes, or leaves a torn page.
    pub fn cut(&mut self, choices: &mut Choices) {
        for (.., command) in std::mem::take(&mut self.in_device) {
            match (choices.below(3), &command.operation) {
                (0, _) => {}
                (1, Operation::Program { data, .. }) => {
                    let torn = vec![0x5a; data.len()];
                    self.program(&command.target, &torn);
                }
                _ => {
                    let mut command = command;
                    let _ = self.execute(&mut command);
                }
            }
        }
        for block in &mut self.blocks {
            for page in &mut block.pages {
                let survives = self.media == Media::Nand || choices.one_in(2);
                let (from, to) = match survives {
                    true => (&page.now, &mut page.stable),
                    false => (&page.stable, &mut page.now),
                };
                to.clone_from(from);
            }
        }
    }

    fn program(&mut self, target: &Target, data: &[u8]) {
        let page_bytes = self.geometry.page_bytes as usize;
        let blocks = self.blocks_of(target);
        let mut pieces = data.chunks(page_bytes);
        for row in 0..target.rows {
            for block in &blocks {
                let block = &mut self.blocks[*block];
                let page = target.page + row;
                assert!(!block.bad, "program of a bad block: {target:?}");
                if self.media == Media::Nand {
                    assert_eq!(block.next_page, page, "pages out of order: {target:?}");
                    block.next_page += 1;
                }
                block.pages[page as usize].now = pieces.next().map(<[u8]>::to_vec);
            }
        }
    }

    fn execute(&mut self, command: &mut Command) -> Result<(), DeviceError> {
        let target = command.target;
        let blocks = self.blocks_of(&target);
        let page_bytes = self.geometry.page_bytes as usize;
        match &mut command.operation {
            Operation::Read(buffer) => {
                for (number, piece) in buffer.chunks_mut(page_bytes).enumerate() {
                    let block = &self.blocks[blocks[number % blocks.len()]];
                    let page = target.page + (number / blocks.len()) as u32;
                    match (&block.pages[page as usize].now, self.media) {
                        (Some(bytes), _) => piece.copy_from_slice(&bytes[..piece.len()]),
                        (None, Media::File) => piece.fill(0),
                        (None, Media::Nand) => return Err(DeviceError::Erased { page }),
                    }
                }
            }
            Operation::Program { data, durable } => {
                let durable = *durable;
                let data = data.to_vec();
                self.program(&target, &data);
                if durable {
                    for block in blocks {
                        for row in 0..target.rows {
                            let page = &mut self.blocks[block].pages[(target.page + row) as usize];
                            page.stable.clone_from(&page.now);
                        }
                    }
                }
            }
            Operation::Erase => {
                for block in blocks {
                    let block = &mut self.blocks[block];
                    assert!(!block.bad, "erase of a bad block: {target:?}");
                    block.erases += 1;
                    block.next_page = 0;
                    if self.media == Media::Nand {
                        block.pages.fill(Page::default());
                    }
                }
            }
            Operation::Flush => {
                for page in self.blocks.iter_mut().flat_map(|block| &mut block.pages) {
                    page.stable.clone_from(&page.now);
                }
            }
            Operation::MarkBad => self.blocks[blocks[0]].bad = true,
        }
        Ok(())
    }
}

/// The duration of a command.
fn latency_ns(operation: &Operation) -> u64 {
    match operation {
        Operation::Read(_) => 100_000,
        Operation::Program { .. } => 1_000_000,
        Operation::Erase => 5_000_000,
        Operation::Flush | Operation::MarkBad => 10_000,
    }
}

/// A queue pair over all units of a flash.
pub struct FlashQueue {
    flash: FlashRef,
    units: UnitSet,
    geometry: UnitGeometry,
    pool: BufferPool,
    die_free_at: Vec<Time>,
    /// Maximum number of commands in the queue.
    capacity: usize,
    given_up: Vec<UnitId>,
}

impl FlashQueue {
    pub fn open(flash: &FlashRef, capacity: usize) -> Box<dyn QueuePair> {
        let shared = flash.borrow();
        let dies = usize::from(shared.units) * usize::from(shared.geometry.dies);
        Box::new(FlashQueue {
            flash: Rc::clone(flash),
            units: UnitSet::from(0..shared.units),
            geometry: shared.geometry,
            pool: BufferPool::new(1 << 20),
            die_free_at: vec![Time::ZERO; dies],
            capacity,
            given_up: Vec::new(),
        })
    }
}

/// An orderly close executes all commands in the device.
impl Drop for FlashQueue {
    fn drop(&mut self) {
        let mut flash = self.flash.borrow_mut();
        while let Some((.., mut command)) = flash.in_device.pop_front() {
            let _ = flash.execute(&mut command);
        }
    }
}

impl Described for FlashQueue {
    fn geometry(&self) -> &UnitGeometry {
        &self.geometry
    }

    fn sector_bytes(&self) -> u32 {
        match self.flash.borrow().media {
            Media::Nand => 1024,
            Media::File => self.geometry.page_bytes,
        }
    }

    fn device_uuid(&self) -> u128 {
        self.flash.borrow().uuid
    }

    fn units(&self) -> &UnitSet {
        &self.units
    }

    fn bad_blocks(&self, unit: UnitId) -> Vec<(u8, u8, u32)> {
        let flash = self.flash.borrow();
        let g = &flash.geometry;
        let all = (0..g.dies).flat_map(|die| (0..g.planes).map(move |plane| (die, plane)));
        all.flat_map(|(die, plane)| (0..g.blocks_per_plane).map(move |b| (die, plane, b)))
            .filter(|(die, plane, block)| flash.is_bad(unit.0, *die, *plane, *block))
            .collect()
    }

    fn buffers(&self) -> &BufferPool {
        &self.pool
    }
}

impl QueuePair for FlashQueue {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let mut flash = self.flash.borrow_mut();
        if flash.in_device.len() >= self.capacity {
            return Submit::Full(command);
        }
        let (target, kind) = (command.target, kind(&command.operation));
        let uses_die = !matches!(kind, Kind::Flush | Kind::MarkBad);
        let is_ours = kind == Kind::Flush || !self.given_up.contains(&target.unit);
        assert!(is_ours, "the unit was given up: {command:?}");
        let same_die = |other: &Target| (other.unit, other.die) == (target.unit, target.die);
        let waiting = flash.in_device.iter().filter(|(.., other)| {
            let die = !matches!(other.operation, Operation::Flush | Operation::MarkBad);
            die && same_die(&other.target)
        });
        let waiting = if uses_die { waiting.count() as u16 } else { 0 };
        if uses_die && waiting >= self.geometry.die_queue_depth {
            assert_eq!(kind, Kind::Read, "the die has its full depth: {command:?}");
            return Submit::Full(command);
        }
        flash.log.push((now, kind, target));
        flash.hints.push((kind, command.hint));
        let die =
            usize::from(target.unit.0) * usize::from(self.geometry.dies) + usize::from(target.die);
        let start = if uses_die { self.die_free_at[die].max(now) } else { now };
        let end = start + latency_ns(&command.operation);
        if uses_die {
            self.die_free_at[die] = end;
        }
        let accepted = Accepted::new(command.tag, now, waiting);
        flash.in_device.push_back((end, accepted, command));
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        let mut flash = self.flash.borrow_mut();
        while let Some(first) = flash.in_device.iter().map(|(end, ..)| *end).min() {
            if first > now {
                break;
            }
            let place = flash.in_device.iter().position(|(end, ..)| *end == first).unwrap();
            let (finished_at, accepted, mut command) = flash.in_device.remove(place).unwrap();
            let mut fault = flash.fault.take();
            let failure = fault.as_mut().and_then(|fault| fault(&command));
            flash.fault = fault;
            let result = match failure {
                Some(error) => Err(error),
                None => flash.execute(&mut command),
            };
            let buffer = match command.operation {
                Operation::Read(mut buffer) => {
                    if flash.blank_read.as_mut().is_some_and(|blank| blank(&command.target)) {
                        buffer.fill(0);
                    }
                    Some(buffer)
                }
                Operation::Program { data: buffer, .. } => Some(buffer),
                _ => None,
            };
            completions.push(accepted.ended(finished_at, buffer, result));
        }
    }

    fn wake(&self) -> Wake {
        let flash = self.flash.borrow();
        flash.in_device.iter().map(|(end, ..)| *end).min().map_or(Wake::Idle, Wake::At)
    }

    fn give_up(&mut self, unit: UnitId) {
        for (.., command) in &self.flash.borrow().in_device {
            let is_of_unit = command.target.unit == unit;
            let is_flush = matches!(command.operation, Operation::Flush);
            assert!(is_flush || !is_of_unit, "under way in {unit}, which is given up: {command:?}");
        }
        self.given_up.push(unit);
    }
}
