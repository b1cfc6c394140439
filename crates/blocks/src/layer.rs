//! A shard's block layer: its parts, their assembly at a mount, and the deletion of blocks.

use crate::directory::{Copies, Directory, Place};
use crate::discovery::{EarlierAttempt, Found, discover};
use crate::health::Health;
use crate::placement::PlacementKind;
use crate::pool::{UnitMark, UnitPool};
use crate::pools::Pools;
use crate::redundancy::{Deferral, Groups, Redundancy};
use crate::tag::{BlockId, Tag};
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, checksum};
use softflash_flash::Flash;
use softflash_ftl::{Inventory, Superblock};
use std::cell::RefCell;
use std::iter;
use std::rc::Rc;

/// A shard's blocks. A clone is the same layer.
#[derive(Clone)]
pub struct BlockLayer {
    pub(crate) parts: Rc<Parts>,
}

/// The parts of a block layer.
pub(crate) struct Parts {
    pub(crate) pools: Pools,
    pub(crate) directory: Directory,
    pub(crate) health: Health,
    pub(crate) groups: RefCell<Groups>,
    /// Until [`settle_rewrites`](BlockLayer::settle_rewrites).
    pub(crate) earlier_attempts: RefCell<Vec<EarlierAttempt>>,
    pub(crate) redundancy: Redundancy,
    /// The units as the mount found them, before anything was erased.
    pub(crate) mounted: Vec<UnitMark>,
    device_uuid: u128,
}

/// Ids skipped after a crash: more than could have been assigned without a trace on the flash.
const ID_GAP: u64 = 1 << 16;

impl BlockLayer {
    /// A block layer over mounted flash with this redundancy, and the blocks found there, in order
    /// of their ids.
    ///
    /// Several superblocks that claim one id are copies of it, or a crash interrupted the attempts
    /// to write it: the last attempt counts and the others are released, with parity by
    /// [`settle_rewrites`](BlockLayer::settle_rewrites).
    pub fn new(
        flash: Flash,
        shard: ShardId,
        device_uuid: u128,
        inventory: &Inventory,
        redundancy: Redundancy,
    ) -> (BlockLayer, Vec<Found>) {
        BlockLayer::assemble((flash, inventory), None, shard, device_uuid, redundancy)
    }

    /// As [`new`](BlockLayer::new), with the blocks of the log on flash of their own, whose
    /// superblocks and pages have the same sizes.
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
        let directory = Directory::default();
        let mut earlier = Vec::new();
        let mut found = discover(&main.0, main.1, false, &directory, &mut earlier);
        if !matches!(redundancy, Redundancy::Parity { .. }) {
            earlier.drain(..).for_each(|earlier| main.0.release(&earlier.superblock));
        }
        if let Some((flash, inventory)) = &log {
            let mut earlier = Vec::new();
            found.extend(discover(flash, inventory, true, &directory, &mut earlier));
            earlier.iter().for_each(|earlier| flash.release(&earlier.superblock));
        }
        found.sort_unstable_by_key(|found| found.id);
        directory
            .reserve_ids(found.last().map_or(BlockId::first(shard).0, |found| found.id.0 + ID_GAP));
        let headless: Vec<Superblock> = iter::once(main.1)
            .chain(log.as_ref().map(|(_, inventory)| *inventory))
            .flat_map(|inventory| &inventory.erase_headers_lost)
            .map(|lost| lost.superblock)
            .collect();
        let main = UnitPool::new(main.0, redundancy);
        let parts = Parts {
            mounted: main.marks(),
            pools: Pools::new(main, log.map(|(flash, _)| UnitPool::new(flash, redundancy))),
            directory,
            health: Health::default(),
            groups: RefCell::default(),
            earlier_attempts: RefCell::new(earlier),
            redundancy,
            device_uuid,
        };
        let lacks_copy = |found: &&Found| {
            let copies = parts.directory.copies(found.id);
            copies.len() < usize::from(redundancy.copies_of(found.kind))
                || redundancy.is_some() && copies.iter().any(|copy| headless.contains(copy))
        };
        for found in found.iter().filter(lacks_copy) {
            parts.health.note_degraded(found.id, parts.pools.main.is_redundant());
        }
        (BlockLayer { parts: Rc::new(parts) }, found)
    }

    /// Sets the policy that places new blocks.
    pub fn place_by(&self, placement: PlacementKind) {
        self.parts.pools.iter().for_each(|pool| pool.place_by(placement));
    }

    /// The seed of all checksums inside a block: the device and the block's id.
    pub fn identity(&self, id: BlockId) -> u64 {
        let uuid = self.parts.device_uuid;
        checksum::identity(&[uuid as u64, (uuid >> 64) as u64, id.0])
    }

    /// The flash of patches, and of the log unless it has its own.
    pub fn flash(&self) -> &Flash {
        &self.parts.pools.main.flash
    }

    /// The flash of the log's blocks.
    pub fn log_flash(&self) -> &Flash {
        &self.parts.pools.of(true).flash
    }

    /// Bytes that fit a block.
    pub fn capacity_bytes(&self) -> usize {
        self.flash().payload_bytes()
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.flash().page_bytes()
    }

    /// Raises the next id to `next`, if it is lower.
    pub fn reserve_ids(&self, next: u64) {
        self.parts.directory.reserve_ids(next);
    }

    /// The id of the next block, or a lower bound of it.
    pub fn next_id(&self) -> u64 {
        self.parts.directory.next_id()
    }

    /// A new id for a block that is to be [`put`](BlockLayer::put).
    pub fn new_id(&self) -> BlockId {
        self.parts.directory.new_id()
    }

    /// Whether the block is known.
    pub fn contains(&self, id: BlockId) -> bool {
        self.parts.directory.contains(id)
    }

    /// Every block that exists.
    pub fn ids(&self) -> Vec<BlockId> {
        self.parts.directory.ids()
    }

    /// The superblocks of a block, one a copy, for reports.
    pub fn superblocks(&self, id: BlockId) -> Vec<Superblock> {
        self.parts.directory.copies(id).to_vec()
    }

    /// Adds a block that is being written to the directory, and notes it as degraded if it lacks a
    /// copy.
    pub(crate) fn enter(&self, tag: Tag, copies: Copies, on_log: bool) {
        let Tag { id, kind, attempt, .. } = tag;
        let lacks = copies.len() < usize::from(self.parts.redundancy.copies_of(kind));
        let place = Place { copies, on_log, attempt, is_half: false };
        self.parts.directory.insert(id, place);
        self.parts.pools.note_change();
        if lacks {
            self.note_degraded(id);
        }
    }

    /// Moves a block that was rewritten under its id to its new superblocks, and releases the old
    /// ones.
    pub(crate) fn replace(&self, id: BlockId, copies: Copies, attempt: u8) {
        let place = Place { copies, on_log: false, attempt, is_half: false };
        let before = self.parts.directory.replace(id, place);
        let before = before.map(|place| place.copies).unwrap_or_default();
        before.iter().for_each(|copy| self.flash().release(copy));
        self.parts.health.forget(id);
        self.parts.groups.borrow_mut().note_change();
        self.parts.pools.note_change();
    }

    /// Releases the copies of a block that are not among `kept`.
    pub(crate) fn keep_copies(&self, id: BlockId, kept: &[Superblock]) {
        let Some((dropped, on_log)) = self.parts.directory.keep_copies(id, kept) else { return };
        let flash = &self.parts.pools.of(on_log).flash;
        dropped.iter().for_each(|copy| flash.release(copy));
        self.parts.pools.note_change();
    }

    /// Releases a block's space, unless other blocks of its group need it. Unknown ids are ignored:
    /// a delete is idempotent.
    pub fn delete(&self, id: BlockId) {
        let is_suspect = self.is_degraded(id);
        self.parts.health.forget(id);
        let deferral = self.parts.groups.borrow_mut().defer_erase(id, is_suspect);
        match deferral {
            Deferral::No => self.erase(id),
            Deferral::Pinned => self.parts.health.pinned.notify_one(),
            Deferral::GroupIsFree(blocks) => blocks.into_iter().for_each(|id| self.erase(id)),
        }
    }

    fn erase(&self, id: BlockId) {
        let place = self.parts.directory.remove(id);
        self.parts.health.forget(id);
        if let Some(Place { copies, on_log, .. }) = place {
            if !planted::bug(Bug::FreeCountStale) {
                self.parts.pools.note_change();
            }
            let flash = &self.parts.pools.of(on_log).flash;
            copies.iter().for_each(|copy| flash.release(copy));
        }
    }
}
