//! The block layer: 64-bit ids for blocks of one superblock each, on the unit that a policy chooses.
//!
//! A block is written whole ([`BlockLayer::put`]) or opened and appended to ([`BlockLayer::open`]), read
//! in pages, and deleted. Ids are never reused, so an id is also the identity under which everything
//! inside is checksummed. Which superblock holds a block is found again from the opening headers on
//! the flash.
//!
//! A store can keep two copies of each block, on different units, with the same bytes at the same pages. As ids are never
//! reused, a page of any superblock that claims the id is right if its checksum holds, whichever copy it is of. Or blocks
//! make up for each other in groups that have the XOR of all as one more block.

mod by_others;
mod condition;
mod groups;
mod old_units;
mod open_block;
pub mod placement;
mod reading;
mod redundancy;
mod shelf;
mod stock;
mod stripe;
pub mod tag;

pub(crate) use by_others::xor_into;
pub use groups::GroupState;
pub use old_units::OldUnit;
pub use open_block::{Apart, OpenBlock};
pub use redundancy::Redundancy;
pub use stock::Found;
pub use stripe::Stripe;
pub use tag::{BlockId, BlockKind};

use crate::driver::Flash;
use crate::error::{Result, StoreError};
use condition::Condition;
use groups::{GivenUp, Groups};
use hashbrown::HashMap;
use placement::PlacementKind;
use shelf::Shelf;
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, checksum};
use softflash_ftl::{FtlError, Hint, Inventory, Priority, Superblock};
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::iter;
use std::rc::Rc;
use stock::{Copies, Place, take_stock};
use tag::Tag;

/// A shard's blocks. A clone is the same layer.
#[derive(Clone)]
pub struct BlockLayer {
    inner: Rc<Inner>,
}

struct Inner {
    main: Shelf,
    /// Where the log's blocks go, if not to the same flash as all others.
    log: Option<Shelf>,
    redundancy: Redundancy,
    device_uuid: u128,
    blocks: RefCell<HashMap<BlockId, Place>>,
    next_id: Cell<u64>,
    /// Blocks that find room, until blocks come or go.
    free: Cell<Option<u32>>,
    condition: Condition,
    groups: RefCell<Groups>,
    /// The units as the mount found them.
    mounted: Vec<old_units::Mounted>,
}

/// Ids skipped after a crash: more than could have been handed out without a trace on the flash.
const ID_GAP: u64 = 1 << 16;

/// Blocks that patches leave to the log: the first segment of a start and the one that it announces.
const BLOCKS_OF_LOG: u32 = 2;
/// Free blocks that a start needs before its log begins: those of the log, and as many spare ones for program failures.
const BLOCKS_OF_START: u32 = 2 * BLOCKS_OF_LOG;
/// Blocks that compaction leaves to a flush beside.
const BLOCKS_OF_FLUSH: u32 = 2;

impl BlockLayer {
    /// A block layer over mounted flash with this redundancy, and the blocks that it holds, in order of their ids.
    ///
    /// Where several superblocks claim one id they are copies of it, or a crash came between the attempts to write it: the
    /// last one counts and the others are released.
    pub fn new(
        flash: Flash,
        shard: ShardId,
        device_uuid: u128,
        inventory: &Inventory,
        redundancy: Redundancy,
    ) -> (BlockLayer, Vec<Found>) {
        BlockLayer::assemble((flash, inventory), None, shard, device_uuid, redundancy)
    }

    /// As [`new`](BlockLayer::new), with the blocks of the log on flash of their own, whose superblocks and pages are
    /// as large.
    pub fn with_log(
        (flash, inventory): (Flash, &Inventory),
        log: (Flash, &Inventory),
        shard: ShardId,
        device_uuid: u128,
        redundancy: Redundancy,
    ) -> (BlockLayer, Vec<Found>) {
        BlockLayer::assemble((flash, inventory), Some(log), shard, device_uuid, redundancy)
    }

    fn assemble(
        main: (Flash, &Inventory),
        log: Option<(Flash, &Inventory)>,
        shard: ShardId,
        device_uuid: u128,
        redundancy: Redundancy,
    ) -> (BlockLayer, Vec<Found>) {
        let mut blocks: HashMap<BlockId, Place> = HashMap::new();
        let mut found = take_stock(&main.0, main.1, false, &mut blocks);
        if let Some((flash, inventory)) = &log {
            found.extend(take_stock(flash, inventory, true, &mut blocks));
        }
        found.sort_unstable_by_key(|found| found.id);
        let last = found.last().map_or(BlockId::first(shard).0, |found| found.id.0 + ID_GAP);
        let headless: Vec<Superblock> = iter::once(main.1)
            .chain(log.as_ref().map(|(_, inventory)| *inventory))
            .flat_map(|inventory| &inventory.erase_headers_lost)
            .map(|lost| lost.superblock)
            .collect();
        let main = Shelf::new(main.0, redundancy);
        let inner = Inner {
            mounted: old_units::survey(&main),
            main,
            log: log.map(|(flash, _)| Shelf::new(flash, redundancy)),
            redundancy,
            device_uuid,
            blocks: RefCell::new(blocks),
            next_id: Cell::new(last),
            free: Cell::new(None),
            condition: Condition::default(),
            groups: RefCell::default(),
        };
        let lacking = |found: &&Found| {
            let blocks = inner.blocks.borrow();
            blocks.get(&found.id).is_some_and(|Place { copies: there, .. }| {
                there.len() < usize::from(redundancy.copies_of(found.kind))
                    || redundancy.is_some() && there.iter().any(|copy| headless.contains(copy))
            })
        };
        for found in found.iter().filter(lacking) {
            inner.condition.note_degraded(found.id, inner.main.is_redundant());
        }
        (BlockLayer { inner: Rc::new(inner) }, found)
    }

    /// Places new blocks by another policy from now on.
    pub fn place_by(&self, placement: PlacementKind) {
        for shelf in [Some(&self.inner.main), self.inner.log.as_ref()].into_iter().flatten() {
            shelf.place_by(placement);
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

    /// Blocks that find room.
    pub fn free_blocks(&self) -> u32 {
        let free = self.inner.free.get().unwrap_or_else(|| self.inner.main.free_blocks());
        self.inner.free.set(Some(free));
        free
    }

    /// As [`free_blocks`](BlockLayer::free_blocks), counted anew: for those who check it.
    pub fn count_free_blocks(&self) -> u32 {
        self.inner.main.free_blocks()
    }

    /// Makes sure that a patch written now leaves room for what must come behind it: a log that finds none for its next segment
    /// has failed, and a start that finds none for its first one cannot give anything back; nor can a compaction's inputs go
    /// before a flush that the log waits for.
    ///
    /// # Errors
    /// [`StoreError::OutOfSpace`] or [`StoreError::WornOut`] where it does not.
    pub fn leave_room(&self, hint: Hint) -> Result<()> {
        let kept = match hint.priority {
            Priority::Background => BLOCKS_OF_LOG + BLOCKS_OF_FLUSH,
            _ => BLOCKS_OF_LOG,
        };
        match self.free_blocks() > kept {
            true => Ok(()),
            false => Err(self.lack_of_space()),
        }
    }

    /// Blocks that a compaction finds room for.
    pub fn room_of_compaction(&self) -> usize {
        self.free_blocks().saturating_sub(BLOCKS_OF_LOG + BLOCKS_OF_FLUSH) as usize
    }

    /// Frees superblocks until a starting log has room: first `torn` ones, then patches that are `unlisted`. Otherwise both stay
    /// until the log has begun, because a frame that cannot be read now may still name them; but without room the log never
    /// begins, and the store never starts.
    pub fn make_room_for_log<'a>(
        &self,
        torn: impl Iterator<Item = &'a Superblock>,
        unlisted: &[BlockId],
    ) {
        let lacks_room = || self.free_blocks() < BLOCKS_OF_START;
        torn.take_while(|_| lacks_room()).for_each(|torn| self.release_torn(torn));
        unlisted.iter().take_while(|_| lacks_room()).for_each(|patch| self.delete(*patch));
    }

    /// Gives a superblock back that holds no block.
    pub fn release_torn(&self, torn: &Superblock) {
        self.flash().release(torn);
        self.inner.free.set(None);
    }

    /// Why there are too few of them: the flash is full, or worn out.
    pub fn lack_of_space(&self) -> StoreError {
        self.inner.main.lack_of_space()
    }

    /// All blocks that the superblocks are enough for that are not out of service.
    pub fn total_blocks(&self) -> u32 {
        self.inner.main.total_blocks()
    }

    /// Patches that a new group may have; 0 where there is no parity.
    pub fn group_width(&self) -> usize {
        self.inner.main.group_width()
    }

    /// Whether what is written from now on survives a unit.
    pub fn is_redundant(&self) -> bool {
        self.inner.main.is_redundant()
    }

    fn in_group(&self, id: BlockId) -> bool {
        self.inner.groups.borrow().contains(id)
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

    /// The block should be written anew while it can be read.
    pub fn note_strained(&self, id: BlockId) {
        if self.contains(id) {
            self.inner.condition.note_strained(id);
        }
    }

    /// Whether the block should be written anew: it is hard to read, or lacks a copy.
    pub fn is_strained(&self, id: BlockId) -> bool {
        self.inner.condition.is_strained(id)
    }

    /// The block is being written anew, or cannot be.
    pub fn forget_strain(&self, id: BlockId) {
        self.inner.condition.forget_strain(id);
    }

    /// Whether there is any such block.
    pub fn any_strained(&self) -> bool {
        self.inner.condition.any_strained()
    }

    /// One of the blocks that the others of their group should make whole now.
    pub fn take_restorable(&self) -> Option<BlockId> {
        self.inner.condition.take_restorable()
    }

    /// A copy of the block is missing or damaged.
    pub fn note_degraded(&self, id: BlockId) {
        if self.in_group(id) {
            self.inner.condition.note_restorable(id);
        } else if self.contains(id) {
            self.inner.condition.note_degraded(id, self.inner.main.is_redundant());
        }
    }

    fn note_failed_copy(&self, id: BlockId) {
        if self.contains(id) {
            self.inner.condition.note_failed_copy(id);
        }
    }

    /// Whether a copy of the block is known to be missing or damaged.
    pub fn is_degraded(&self, id: BlockId) -> bool {
        self.inner.condition.is_degraded(id)
    }

    /// What is wrong with the copies of a block, for reports. `None` where nothing is, or where writing it anew would not
    /// help, as a single unit is left.
    pub fn copy_problem(&self, id: BlockId) -> Option<String> {
        if !self.is_degraded(id) || !self.inner.main.is_redundant() {
            return None;
        }
        let in_group = self.in_group(id);
        Some(match &self.superblocks(id)[..] {
            [] if in_group => "it is missing; the others of its group make up for it".to_owned(),
            [only] if in_group => {
                format!("it is not whole in {only}; the others of its group make up for it")
            }
            [only] if matches!(self.inner.redundancy, Redundancy::Parity { .. }) => {
                format!("nothing makes up for it if {only} is lost")
            }
            [] => "it is missing".to_owned(),
            [only] => format!("one of its copies is missing; the other is in {only}"),
            [one, other, ..] => format!("its copies in {one} and {other} are not both whole"),
        })
    }

    /// Nothing that the unit has is relied on: it is written anew.
    pub fn distrust_unit(&self, unit: u16) {
        self.distrust(unit, false);
    }

    /// Blocks of which a copy is known to be missing or damaged.
    pub fn degraded_blocks(&self) -> u64 {
        self.inner.condition.degraded()
    }

    /// Asks again for all degraded blocks to be written anew, if that can make them whole.
    pub fn retry_degraded(&self) {
        if self.inner.main.is_redundant() {
            self.inner.condition.try_again(|id| self.in_group(id));
        }
    }

    /// Rings when a block is degraded that can be made whole by writing it anew.
    pub fn degraded_bell(&self) -> &Notify {
        &self.inner.condition.bell
    }

    /// Rings when a block is given up that others of its group need: a patch may be given up long after it was replaced, by the
    /// last that read it.
    pub fn pinned_bell(&self) -> &Notify {
        &self.inner.condition.pinned
    }

    /// Units that were lost since the mount, where their blocks have other copies.
    pub fn lost_units(&self) -> u64 {
        self.inner.main.lost_units()
    }

    /// What came of a command to a unit. All blocks of one that is lost are degraded.
    fn note_outcome(&self, unit: u16, on_log: bool, error: Option<&FtlError>) {
        if !self.shelf(on_log).note_outcome(unit, error) {
            return;
        }
        self.inner.free.set(None);
        self.distrust(unit, on_log);
    }

    /// All that the unit has should be written anew.
    fn distrust(&self, unit: u16, on_log: bool) {
        let inner = &self.inner;
        let curable = inner.main.is_redundant();
        let mut there: Vec<BlockId> = inner
            .blocks
            .borrow()
            .iter()
            .filter(|(_, place)| place.on_log == on_log)
            .filter(|(_, place)| place.copies.iter().any(|copy| copy.unit.0 == unit))
            .map(|(id, _)| *id)
            .collect();
        there.sort_unstable();
        for id in there {
            match self.in_group(id) {
                true => inner.condition.note_restorable(id),
                false => inner.condition.note_degraded(id, curable),
            }
        }
    }

    fn enter(&self, tag: Tag, copies: Copies, on_log: bool) {
        let Tag { id, kind, attempt, .. } = tag;
        let lacks = copies.len() < usize::from(self.inner.redundancy.copies_of(kind));
        let place = Place { copies, on_log, attempt, is_half: false };
        self.inner.blocks.borrow_mut().insert(id, place);
        self.inner.free.set(None);
        if lacks {
            self.note_degraded(id);
        }
    }

    /// A block has been written once more: what was there before goes back.
    fn replace(&self, id: BlockId, copies: Copies, attempt: u8) {
        let place = Place { copies, on_log: false, attempt, is_half: false };
        let before = self.inner.blocks.borrow_mut().insert(id, place);
        let before = before.map(|place| place.copies).unwrap_or_default();
        before.iter().for_each(|copy| self.flash().release(copy));
        self.inner.condition.forget(id);
        self.inner.groups.borrow_mut().note_change();
        self.inner.free.set(None);
    }

    /// Gives the copies of a block back that are not among these.
    fn keep_copies(&self, id: BlockId, kept: &[Superblock]) {
        let mut blocks = self.inner.blocks.borrow_mut();
        let Some(place) = blocks.get_mut(&id) else { return };
        let (kept, given_up): (Copies, Copies) =
            place.copies.drain(..).partition(|copy| kept.contains(copy));
        place.copies = kept;
        let flash = &self.shelf(place.on_log).flash;
        given_up.iter().for_each(|copy| flash.release(copy));
        self.inner.free.set(None);
    }

    /// Gives a block's space back, unless others of its group need it. Unknown ids are ignored: deleting twice is deleting
    /// once.
    pub fn delete(&self, id: BlockId) {
        let is_suspect = self.is_degraded(id);
        self.inner.condition.forget(id);
        let given_up = self.inner.groups.borrow_mut().give_up(id, is_suspect);
        match given_up {
            GivenUp::Alone => self.erase(id),
            GivenUp::Pinned => self.inner.condition.pinned.notify_one(),
            GivenUp::WithGroup(blocks) => blocks.into_iter().for_each(|id| self.erase(id)),
        }
    }

    fn erase(&self, id: BlockId) {
        let place = self.inner.blocks.borrow_mut().remove(&id);
        self.inner.condition.forget(id);
        if let Some(Place { copies, on_log, .. }) = place {
            if !planted::bug(Bug::FreeCountStale) {
                self.inner.free.set(None);
            }
            let flash = &self.shelf(on_log).flash;
            copies.iter().for_each(|copy| flash.release(copy));
        }
    }

    /// Every block that exists.
    pub fn ids(&self) -> Vec<BlockId> {
        let mut ids: Vec<_> = self.inner.blocks.borrow().keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Whether the log has several copies.
    pub fn keeps_log_copies(&self) -> bool {
        self.inner.redundancy.is_some()
    }

    /// The superblocks of a block, one a copy, for reports.
    pub fn superblocks(&self, id: BlockId) -> Vec<Superblock> {
        self.inner.blocks.borrow().get(&id).map(|place| place.copies.to_vec()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
