//! A shard's block layer: its parts, their assembly at a mount, and its blocks and space.

mod contents;
mod draining;
mod upkeep;

use crate::copy_reader::CopyReader;
use crate::damage::Damage;
use crate::directory::Directory;
use crate::discovery::{EarlierAttempt, Found, discover};
use crate::error::{BlockError, Result};
use crate::health::Health;
use crate::lifecycle::Lifecycle;
use crate::pool::{UnitMark, UnitPool};
use crate::pools::Pools;
use crate::reading::Reader;
use crate::redundancy::{Groups, Membership, Reconstruction, Redundancy, Rewrites};
use crate::search::Search;
use crate::space;
use crate::state::State;
use crate::tag::BlockId;
use crate::wear_levelling::WearLevelling;
use crate::writer::Writer;
use softflash_base::{ShardId, checksum};
use softflash_flash::Flash;
use softflash_ftl::{Inventory, Superblock};
use softflash_policy::PlacementPolicy;
use std::iter;
use std::rc::Rc;
use std::slice;

/// A shard's blocks. A clone is the same layer.
#[derive(Clone)]
pub struct BlockLayer {
    parts: Rc<Parts>,
}

/// The parts of a block layer: the state of the shard's blocks, and the mechanisms that use it.
struct Parts {
    device_uuid: u128,
    /// The units as the mount found them, before anything was erased.
    mounted: Vec<UnitMark>,
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    health: Rc<Health>,
    damage: Rc<Damage>,
    lifecycle: Rc<Lifecycle>,
    membership: Membership,
    copy_reader: Rc<CopyReader>,
    search: Search,
    reconstruction: Rc<Reconstruction>,
    reader: Reader,
    writer: Rc<Writer>,
    rewrites: Rewrites,
    wear_levelling: WearLevelling,
}

impl Parts {
    fn new(
        device_uuid: u128,
        pools: Pools,
        directory: Directory,
        earlier_attempts: Vec<EarlierAttempt>,
    ) -> Parts {
        let mounted = pools.main().marks();
        let state = &State::new(pools, directory);
        let State { pools, directory, groups, health } = state;
        let damage = &Rc::new(Damage::new(state));
        let lifecycle = &Rc::new(Lifecycle::new(state, damage));
        let copy_reader = &Rc::new(CopyReader::new(pools, directory, damage));
        let reconstruction =
            &Rc::new(Reconstruction::new(pools, directory, groups, damage, copy_reader));
        Parts {
            device_uuid,
            mounted,
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            health: Rc::clone(health),
            damage: Rc::clone(damage),
            lifecycle: Rc::clone(lifecycle),
            membership: Membership::new(state, damage),
            copy_reader: Rc::clone(copy_reader),
            search: Search::new(pools, directory, damage, copy_reader),
            reconstruction: Rc::clone(reconstruction),
            reader: Reader::new(pools, directory, groups, damage, copy_reader, reconstruction),
            writer: Rc::new(Writer::new(pools, directory, groups, damage, lifecycle)),
            rewrites: Rewrites::new(pools, directory, groups, lifecycle, earlier_attempts),
            wear_levelling: WearLevelling::new(pools, directory, damage),
        }
    }
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
        if !redundancy.is_parity() {
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
        let pool = |flash| UnitPool::new(flash, redundancy);
        let pools = Pools::new(pool(main.0), log.map(|(flash, _)| pool(flash)));
        let parts = Parts::new(device_uuid, pools, directory, earlier);
        let lacks_copy = |found: &&Found| {
            let copies = parts.directory.copies(found.id);
            copies.len() < usize::from(redundancy.copies_of(found.kind))
                || redundancy.is_some() && copies.iter().any(|copy| headless.contains(copy))
        };
        found.iter().filter(lacks_copy).for_each(|found| parts.damage.note_degraded(found.id));
        (BlockLayer { parts: Rc::new(parts) }, found)
    }

    /// Sets the policy that places new blocks: one that does not depend on pages' numbers.
    pub fn place_by(&self, policy: PlacementPolicy) {
        self.parts.pools.place_by(policy);
    }

    /// The seed of all checksums inside a block: the device and the block's id.
    pub fn identity(&self, id: BlockId) -> u64 {
        let uuid = self.parts.device_uuid;
        checksum::identity(&[uuid as u64, (uuid >> 64) as u64, id.0])
    }

    /// The units of `other` take blocks from now on, and none of the log where it has units of its
    /// own. Nothing of the layer's is there: they were erased.
    ///
    /// # Errors
    /// Flash of another device or geometry; it is stopped.
    ///
    /// # Panics
    /// If one of both is stopped.
    pub fn join(&self, other: Flash) -> Result<()> {
        self.parts.pools.join(other)?;
        // Blocks that lack a copy may find a unit for it.
        self.degraded_bell().notify_one();
        Ok(())
    }

    /// The flash of patches, and of the log unless it has its own.
    pub fn flash(&self) -> &Flash {
        self.parts.pools.flash()
    }

    /// The flash of the log's blocks.
    pub fn log_flash(&self) -> &Flash {
        self.parts.pools.of(true).flash()
    }

    /// Bytes that fit a block.
    pub fn capacity_bytes(&self) -> usize {
        self.flash().payload_bytes()
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> usize {
        self.parts.pools.page_bytes()
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

    /// Releases a block's space, unless other blocks of its group need it. Unknown ids are ignored:
    /// a delete is idempotent.
    pub fn delete(&self, id: BlockId) {
        self.parts.lifecycle.delete(id);
    }

    /// Blocks that can be written.
    pub fn free_blocks(&self) -> u32 {
        self.parts.pools.free_blocks()
    }

    /// As [`free_blocks`](BlockLayer::free_blocks), counted unit by unit, to verify the cached
    /// count.
    pub fn count_free_blocks(&self) -> u32 {
        self.parts.pools.main().free_blocks()
    }

    /// Blocks that empty flash can hold, without bad superblocks.
    pub fn total_blocks(&self) -> u32 {
        self.parts.pools.main().total_blocks()
    }

    /// The number of units, except those taken, that have room for a block.
    pub fn units_besides(&self, taken: &[u16]) -> usize {
        self.parts.pools.main().units_besides(taken)
    }

    /// Blocks that a compaction can write.
    pub fn room_of_compaction(&self) -> usize {
        space::room_of_compaction(&self.parts.pools)
    }

    /// The error of a write that finds no free superblock: the flash is full, or worn out.
    pub fn lack_of_space(&self) -> BlockError {
        self.parts.pools.main().lack_of_space()
    }

    /// The error of a log without a block for its next segment: only superblocks that have gone bad
    /// can have taken the room that is kept for it.
    pub fn lack_of_room_for_log(&self) -> BlockError {
        self.parts.pools.of(true).lack_of_kept_space()
    }

    /// Frees superblocks until a starting log has room: first `torn` superblocks, then these
    /// `orphans`. Where there is room, both stay until the log has begun, because a frame that is
    /// temporarily unreadable may name them. Without room the log cannot begin, and the store
    /// cannot start.
    pub fn make_room_for_log<'a>(
        &self,
        torn: impl Iterator<Item = &'a Superblock>,
        orphans: &[BlockId],
    ) {
        space::make_room_for_log(&self.parts.pools, &self.parts.lifecycle, torn, orphans);
    }

    /// Releases a superblock that holds no block.
    pub fn release_torn(&self, torn: &Superblock) {
        self.parts.pools.release(slice::from_ref(torn), false);
    }
}
