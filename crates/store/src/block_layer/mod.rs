//! The block layer: 64-bit ids for blocks of one superblock each, on the unit that a policy chooses.
//!
//! A block is written whole ([`BlockLayer::put`]) or opened and appended to ([`BlockLayer::open`]), read
//! in pages, and deleted. Ids are never reused, so an id is also the identity under which everything
//! inside is checksummed. Which superblock holds a block is found again from the opening headers on
//! the flash.

pub mod placement;
pub mod tag;

pub use tag::{BlockId, BlockKind};

use crate::driver::{Flash, Outcome, ReadPages};
use crate::error::{Result, StoreError};
use hashbrown::HashMap;
use placement::{Candidate, Placement, PlacementKind};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, ShardId, checksum};
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Inventory, SpaceAccount, Superblock};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;

/// A shard's blocks. A clone is the same layer.
#[derive(Clone)]
pub struct BlockLayer {
    inner: Rc<Inner>,
}

struct Inner {
    main: Shelf,
    /// Where the log's blocks go, if not to the same flash as all others.
    log: Option<Shelf>,
    device_uuid: u128,
    blocks: RefCell<HashMap<BlockId, Place>>,
    next_id: Cell<u64>,
    /// Superblocks that can be allocated, until blocks come or go.
    free: Cell<Option<u32>>,
    /// Blocks whose pages need retries to be read.
    strained: RefCell<BTreeSet<BlockId>>,
}

/// Where a block is.
#[derive(Debug, Clone, Copy)]
struct Place {
    superblock: Superblock,
    on_log: bool,
}

/// Flash that blocks are placed on.
struct Shelf {
    flash: Flash,
    /// Blocks being written to each unit: load that the units' queues do not show yet.
    writers: RefCell<Vec<u32>>,
    placement: RefCell<Box<dyn Placement>>,
}

impl Shelf {
    fn new(flash: Flash) -> Shelf {
        let writers = RefCell::new(vec![0; flash.units().len()]);
        Shelf { flash, writers, placement: RefCell::new(PlacementKind::default().policy()) }
    }

    fn choose_unit(&self) -> Option<u16> {
        let Shelf { flash, writers, placement } = self;
        let candidates: Vec<Candidate> = flash
            .units()
            .zip(writers.borrow().iter())
            .map(|(unit, writers)| Candidate {
                unit,
                load: flash.load(unit) + writers,
                free: flash.space(unit).allocatable(),
            })
            .collect();
        placement.borrow_mut().choose(&candidates)
    }

    /// Why no unit is to be had.
    fn lack_of_space(&self) -> StoreError {
        let spaces: Vec<_> = self.flash.units().map(|unit| self.flash.space(unit)).collect();
        if !spaces.iter().all(SpaceAccount::is_worn_out) {
            return StoreError::OutOfSpace;
        }
        let bad = spaces.iter().map(|space| space.bad).sum();
        StoreError::WornOut { bad, total: spaces.iter().map(SpaceAccount::total).sum() }
    }
}

/// A block that was found on the flash when it was mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: BlockId,
    /// What it holds.
    pub kind: BlockKind,
}

/// Read retries from which on a block is written anew: one alone may be chance, the last ones of the ladder come late.
const STRAINED_RETRIES: u8 = 2;
/// Ids skipped after a crash: more than could have been handed out without a trace on the flash.
const ID_GAP: u64 = 1 << 16;

impl BlockLayer {
    /// A block layer over mounted flash, and the blocks that it holds, in order of their ids.
    ///
    /// Where two superblocks claim one id, a crash came between the attempts to write it: the last one
    /// counts and the others are released.
    pub fn new(
        flash: Flash,
        shard: ShardId,
        device_uuid: u128,
        inventory: &Inventory,
    ) -> (BlockLayer, Vec<Found>) {
        BlockLayer::assemble((flash, inventory), None, shard, device_uuid)
    }

    /// As [`new`](BlockLayer::new), with the blocks of the log on flash of their own, whose superblocks and pages are
    /// as large.
    pub fn with_log(
        (flash, inventory): (Flash, &Inventory),
        log: (Flash, &Inventory),
        shard: ShardId,
        device_uuid: u128,
    ) -> (BlockLayer, Vec<Found>) {
        BlockLayer::assemble((flash, inventory), Some(log), shard, device_uuid)
    }

    fn assemble(
        main: (Flash, &Inventory),
        log: Option<(Flash, &Inventory)>,
        shard: ShardId,
        device_uuid: u128,
    ) -> (BlockLayer, Vec<Found>) {
        let mut blocks: HashMap<BlockId, Place> = HashMap::new();
        let mut found = take_stock(&main.0, main.1, false, &mut blocks);
        if let Some((flash, inventory)) = &log {
            found.extend(take_stock(flash, inventory, true, &mut blocks));
        }
        found.sort_unstable_by_key(|found| found.id);
        let last = found.last().map_or(BlockId::first(shard).0, |found| found.id.0 + ID_GAP);
        let inner = Inner {
            main: Shelf::new(main.0),
            log: log.map(|(flash, _)| Shelf::new(flash)),
            device_uuid,
            blocks: RefCell::new(blocks),
            next_id: Cell::new(last),
            free: Cell::new(None),
            strained: RefCell::default(),
        };
        (BlockLayer { inner: Rc::new(inner) }, found)
    }

    /// Places new blocks by another policy from now on.
    pub fn place_by(&self, placement: PlacementKind) {
        for shelf in [Some(&self.inner.main), self.inner.log.as_ref()].into_iter().flatten() {
            *shelf.placement.borrow_mut() = placement.policy();
        }
    }

    /// Ids from now on are at least `next`.
    pub fn reserve_ids(&self, next: u64) {
        self.inner.next_id.set(self.inner.next_id.get().max(next));
    }

    /// The id that the next block gets, or a later one.
    pub fn next_id(&self) -> u64 {
        self.inner.next_id.get()
    }

    /// The seed of all checksums inside a block: the device and the block's id.
    pub fn identity(&self, id: BlockId) -> u64 {
        let uuid = self.inner.device_uuid;
        checksum::identity(&[uuid as u64, (uuid >> 64) as u64, id.0])
    }

    /// The flash below.
    pub fn flash(&self) -> &Flash {
        &self.inner.main.flash
    }

    /// The flash below the log's blocks; the same, unless they have their own.
    pub fn log_flash(&self) -> &Flash {
        &self.shelf(self.inner.log.is_some()).flash
    }

    fn shelf(&self, on_log: bool) -> &Shelf {
        match &self.inner.log {
            Some(log) if on_log => log,
            _ => &self.inner.main,
        }
    }

    /// Bytes that fit a block.
    pub fn capacity_bytes(&self) -> usize {
        self.inner.main.flash.payload_bytes()
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.inner.main.flash.page_bytes()
    }

    /// Superblocks that can be allocated, over all units.
    pub fn free_blocks(&self) -> u32 {
        let count = || {
            let flash = &self.inner.main.flash;
            flash.units().map(|unit| flash.space(unit).allocatable()).sum()
        };
        let free = self.inner.free.get().unwrap_or_else(count);
        self.inner.free.set(Some(free));
        free
    }

    /// Why there are too few of them: the flash is full, or worn out.
    pub fn lack_of_space(&self) -> StoreError {
        self.inner.main.lack_of_space()
    }

    /// All superblocks that are not out of service.
    pub fn total_blocks(&self) -> u32 {
        let flash = &self.inner.main.flash;
        flash.units().map(|unit| flash.space(unit)).map(|space| space.total() - space.bad).sum()
    }

    /// Whether the block is known.
    pub fn contains(&self, id: BlockId) -> bool {
        self.inner.blocks.borrow().contains_key(&id)
    }

    /// A fresh id for a block that is to be [`put`](BlockLayer::put).
    pub fn new_id(&self) -> BlockId {
        let id = self.inner.next_id.get();
        self.inner.next_id.set(id + 1);
        BlockId(id)
    }

    /// Writes a whole block from pieces of whole pages. A unit that fails is replaced by another; the block
    /// is there when this returns, and durable after the next flush.
    pub async fn put(
        &self,
        id: BlockId,
        kind: BlockKind,
        mut pieces: Vec<IoBuf>,
        hint: Hint,
    ) -> Result<()> {
        let mut unfinished = Unfinished { layer: self, id: Some(id) };
        for attempt in 0..MAX_ATTEMPTS {
            let block = self.attempt(id, kind, attempt, hint)?;
            match block.write_all(pieces, hint).await {
                Ok(()) => {
                    block.seal();
                    unfinished.id = None;
                    return Ok(());
                }
                Err((error, returned)) => {
                    self.delete(id);
                    pieces = returned.ok_or(error)?;
                }
            }
        }
        Err(StoreError::DataLoss(format!("{id} could not be written to {MAX_ATTEMPTS} units")))
    }

    /// Opens a new block for appends, on the unit that the placement policy chooses.
    pub fn open(&self, id: BlockId, kind: BlockKind, hint: Hint) -> Result<OpenBlock> {
        self.attempt(id, kind, 0, hint)
    }

    fn attempt(&self, id: BlockId, kind: BlockKind, attempt: u8, hint: Hint) -> Result<OpenBlock> {
        let inner = &self.inner;
        let on_log = inner.log.is_some() && matches!(kind, BlockKind::Log { .. });
        let shelf = self.shelf(on_log);
        let Shelf { flash, writers, .. } = shelf;
        let unit = shelf.choose_unit().ok_or_else(|| shelf.lack_of_space())?;
        let superblock = match flash.allocate(unit, tag::encode(id, kind, attempt), hint) {
            Err(FtlError::NoSpace { .. }) => return Err(shelf.lack_of_space()),
            allocated => allocated?,
        };
        inner.blocks.borrow_mut().insert(id, Place { superblock, on_log });
        inner.free.set(None);
        let writer = usize::from(unit - flash.units().start);
        if let Some(count) = writers.borrow_mut().get_mut(writer) {
            *count += 1;
        }
        Ok(OpenBlock { layer: self.clone(), id, superblock, on_log, writer })
    }

    /// Reads whole pages of a block.
    pub async fn read(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        let place = self.inner.blocks.borrow().get(&id).copied();
        let Some(Place { superblock, on_log }) = place else {
            return Err(StoreError::DataLoss(format!("{id} is missing")));
        };
        match self.shelf(on_log).flash.read(&superblock, first_page, pages, hint).await {
            Err(error @ FtlError::Device { .. }) => {
                Err(StoreError::DataLoss(format!("{id}, pages {first_page}+{pages}: {error}")))
            }
            Err(error) => Err(error.into()),
            Ok(read) => Ok(self.bytes_of(id, read)),
        }
    }

    /// What was read of a block, with a note where that was hard.
    fn bytes_of(&self, id: BlockId, read: ReadPages) -> IoBuf {
        if read.retries >= STRAINED_RETRIES {
            self.note_strained(id);
        }
        read.bytes
    }

    /// The block should be written anew while it can be read.
    pub fn note_strained(&self, id: BlockId) {
        if self.contains(id) {
            self.inner.strained.borrow_mut().insert(id);
        }
    }

    /// Whether the block should be written anew: a read of it has needed many retries.
    pub fn is_strained(&self, id: BlockId) -> bool {
        self.inner.strained.borrow().contains(&id)
    }

    /// The block is being written anew, or cannot be.
    pub fn forget_strain(&self, id: BlockId) {
        self.inner.strained.borrow_mut().remove(&id);
    }

    /// Whether there is any such block.
    pub fn any_strained(&self) -> bool {
        !self.inner.strained.borrow().is_empty()
    }

    /// As [`read`](BlockLayer::read), for a search of what is there: `None` where the flash does not give all of the pages,
    /// whyever.
    pub async fn search(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>> {
        let place = self.inner.blocks.borrow().get(&id).copied();
        let Some(Place { superblock, on_log }) = place else { return Ok(None) };
        match self.shelf(on_log).flash.read(&superblock, first_page, pages, hint).await {
            Ok(read) => Ok(Some(self.bytes_of(id, read))),
            // Not the flash says that they are lost: to take them for lost would give up what is there.
            Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                Err(error.into())
            }
            // What a cut leaves behind is damaged; this was whole.
            Err(error @ FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                Err(StoreError::DataLoss(format!("{id}, pages {first_page}+{pages}: {error}")))
            }
            Err(FtlError::Device { .. } | FtlError::Unwritten { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a page of a block was whole once and has been lost since, as far as the flash shows.
    pub async fn has_lost(&self, id: BlockId, page: u32, hint: Hint) -> Result<bool> {
        let place = self.inner.blocks.borrow().get(&id).copied();
        let Some(Place { superblock, on_log }) = place else { return Ok(false) };
        Ok(self.shelf(on_log).flash.has_lost(&superblock, page, hint).await?)
    }

    /// Gives a block's space back. Unknown ids are ignored: deleting twice is deleting once.
    pub fn delete(&self, id: BlockId) {
        let place = self.inner.blocks.borrow_mut().remove(&id);
        self.inner.strained.borrow_mut().remove(&id);
        if let Some(Place { superblock, on_log }) = place {
            self.inner.free.set(None);
            self.shelf(on_log).flash.release(&superblock);
        }
    }

    /// Every block that exists.
    pub fn ids(&self) -> Vec<BlockId> {
        let mut ids: Vec<_> = self.inner.blocks.borrow().keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The superblock of a block, for reports.
    pub fn superblock(&self, id: BlockId) -> Option<Superblock> {
        self.inner.blocks.borrow().get(&id).map(|place| place.superblock)
    }
}

/// A block that is being written whole: it is given back should whoever wanted it not wait for its end.
struct Unfinished<'a> {
    layer: &'a BlockLayer,
    id: Option<BlockId>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.layer.delete(id);
        }
    }
}

/// Enters the blocks of mounted flash into the table. Where two superblocks claim one id, the last attempt counts and the
/// other is released.
fn take_stock(
    flash: &Flash,
    inventory: &Inventory,
    on_log: bool,
    blocks: &mut HashMap<BlockId, Place>,
) -> Vec<Found> {
    let mut attempts: HashMap<BlockId, u8> = HashMap::new();
    let mut found = Vec::new();
    for entry in &inventory.superblocks {
        let Some((id, kind, attempt)) = tag::decode(&entry.tag) else {
            // Not ours, or of a layer that no longer exists: nobody can ask for it.
            flash.release(&entry.superblock);
            continue;
        };
        match blocks.get_mut(&id) {
            Some(known) => {
                let later = attempts.insert(id, attempt) < Some(attempt);
                let older = if later != planted::bug(Bug::FailedAttemptKept) {
                    std::mem::replace(&mut known.superblock, entry.superblock)
                } else {
                    entry.superblock
                };
                flash.release(&older);
            }
            None => {
                blocks.insert(id, Place { superblock: entry.superblock, on_log });
                attempts.insert(id, attempt);
                found.push(Found { id, kind });
            }
        }
    }
    found
}

/// Units that are tried before a block is given up.
const MAX_ATTEMPTS: u8 = 4;

/// A block that takes appends. Dropping it ends the appends; the block stays.
pub struct OpenBlock {
    layer: BlockLayer,
    id: BlockId,
    superblock: Superblock,
    on_log: bool,
    writer: usize,
}

impl OpenBlock {
    /// The block's id.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// Appends whole pages: the page number at once, the outcome when they are programmed.
    pub fn append(
        &self,
        data: IoBuf,
        durable: bool,
        hint: Hint,
    ) -> Result<(u32, impl Future<Output = Outcome> + use<>), (FtlError, IoBuf)> {
        self.layer.shelf(self.on_log).flash.append(&self.superblock, data, durable, hint)
    }

    /// Ends the appends.
    pub fn seal(&self) {
        self.layer.shelf(self.on_log).flash.seal(&self.superblock);
    }

    /// Appends all pieces; on failure returns them, where all came back, for another attempt.
    async fn write_all(
        &self,
        pieces: Vec<IoBuf>,
        hint: Hint,
    ) -> Result<(), (StoreError, Option<Vec<IoBuf>>)> {
        let total = pieces.len();
        let mut under_way = Vec::with_capacity(total);
        let mut returned = Vec::with_capacity(total);
        let mut failure: Option<StoreError> = None;
        for piece in pieces {
            if failure.is_some() {
                returned.push(piece);
                continue;
            }
            match self.append(piece, false, hint) {
                Ok((_, outcome)) => under_way.push(outcome),
                Err((error, piece)) => {
                    failure = Some(error.into());
                    returned.push(piece);
                }
            }
        }
        let mut written = Vec::with_capacity(total);
        for outcome in under_way {
            let (result, piece) = outcome.await;
            written.extend(piece);
            if let Err(error) = result {
                failure.get_or_insert(error.into());
            }
        }
        match failure {
            None => Ok(()),
            Some(error) => {
                written.append(&mut returned);
                let whole = (written.len() == total).then_some(written);
                Err((error, whole))
            }
        }
    }
}

impl Drop for OpenBlock {
    fn drop(&mut self) {
        if let Some(count) = self.layer.shelf(self.on_log).writers.borrow_mut().get_mut(self.writer)
        {
            *count -= 1;
        }
    }
}
