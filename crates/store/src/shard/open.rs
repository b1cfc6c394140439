//! Opening a shard: mounts its units, recovers their contents, and goes on with the log. Each step
//! leaves the flash as the next opening can recover it, so a failure undoes nothing but the mount.

use super::Shard;
use super::budget::Budget;
use super::clock::ExpiryClock;
use super::decisions::{COORDINATOR, Decisions};
use super::log::event;
use super::log::event::{Checkpoint, Event, SliceState};
use super::recovery::{OnFlash, OnLogLoss, Recovered, Recovery};
use crate::error::{Result, StoreError};
use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockLayer, Found, ParityGroup};
use softflash_device::Device;
use softflash_flash::Flash;
use softflash_ftl::{DamagedSuperblock, FtlConfig, Hint, Inventory};
use softflash_runtime::RuntimeHandle;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A fragment is at most this part of a block, so that a patch can hold it.
const FRAGMENTS_OF_A_BLOCK: usize = 4;

/// A shard that is to be opened.
pub(crate) struct OpenShard {
    pub(crate) id: ShardId,
    pub(crate) layout: StoreLayout,
    pub(crate) options: StoreOptions,
    pub(crate) device: Arc<dyn Device>,
    /// For the blocks of the log, where they have a device of their own.
    pub(crate) log_device: Option<Arc<dyn Device>>,
    pub(crate) runtime: RuntimeHandle,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) on_log_loss: OnLogLoss,
}

/// A shard that was opened.
pub(crate) struct Opened {
    pub(crate) shard: Rc<Shard>,
    /// Its log records the outcome of all its transactions: the coordinator need not remember them. Not
    /// so on flash that is worn out, which is read as it was found.
    pub(crate) has_caught_up: bool,
}

/// The units of a shard, mounted.
struct Mounted {
    blocks: BlockLayer,
    found: Vec<Found>,
    /// Superblocks of which no block is known.
    damaged: Vec<DamagedSuperblock>,
}

/// Blocks that the shard releases once its log has begun.
struct Remains {
    damaged: Vec<DamagedSuperblock>,
    orphans: Vec<BlockId>,
    /// No patch is missing.
    is_whole: bool,
    /// Transactions that only the coordinator's log records as committed.
    decided_elsewhere: Vec<u64>,
    /// The log was cut at a transaction without a commit.
    cut: bool,
}

/// Opens a shard.
///
/// | step | writes | when it fails |
/// |---|---|---|
/// | `mount` | nothing | the flash stops |
/// | `recover` | nothing | the flash stops |
/// | `settle_flash` | deletes dead blocks, and makes room for the log | the flash stops; dead stays dead |
/// | `begin_log` | a segment with a checkpoint | the log and the flash stop; the next opening recovers from either log |
/// | `release_remains` | deletes orphans | as above; they are found again |
pub(crate) async fn open(opening: OpenShard) -> Result<Opened> {
    if let Some(problem) = opening.layout.problem() {
        return Err(StoreError::Unusable(problem));
    }
    let mounted = opening.mount().await?;
    let flash = [mounted.blocks.flash().clone(), mounted.blocks.log_flash().clone()];
    let opened = opening.open_mounted(mounted).await;
    if opened.is_err() {
        flash.iter().for_each(Flash::stop);
    }
    opened
}

impl OpenShard {
    async fn mount(&self) -> Result<Mounted> {
        let OpenShard { id, layout, options, device, runtime, .. } = self;
        let queue = device
            .open_queue_pair(layout.units_of(*id))
            .map_err(|error| StoreError::Unusable(error.to_string()))?;
        let (flash, inventory) = Flash::mount(queue, options.ftl, runtime.clone()).await?;
        let (uuid, redundancy) = (device.info().uuid, layout.redundancy());
        let (blocks, found) = match &self.log_device {
            None => BlockLayer::new(flash, *id, uuid, &inventory, redundancy),
            Some(log_device) => {
                let log = mount_log(log_device, &flash, layout, *id, runtime).await?;
                BlockLayer::with_log((flash, &inventory), (log.0, &log.1), *id, uuid, redundancy)
            }
        };
        blocks.place_by(options.placement);
        Ok(Mounted { blocks, found, damaged: inventory.damaged })
    }

    async fn open_mounted(self, mounted: Mounted) -> Result<Opened> {
        let Mounted { blocks, found, damaged } = mounted;
        let clock = Rc::new(ExpiryClock::new(self.runtime.clone()));
        let options = self.options_on(&blocks);
        let total = blocks.total_blocks();
        let budget = Budget::new(&options, &self.layout, total, blocks.capacity_bytes());
        let recovery = Recovery {
            shard: self.id,
            layout: &self.layout,
            blocks: &blocks,
            on_flash: OnFlash { found: &found, damaged: &damaged, on_log_loss: self.on_log_loss },
            clock: &clock,
            decisions: &self.decisions,
            budget: &budget,
        };
        let recovered = recovery.run().await?;
        let (recovered, remains) = self.settle_flash(&blocks, recovered, damaged).await?;
        let shard = Shard::new(
            self.id,
            (self.layout.clone(), options, budget),
            (self.runtime.clone(), clock),
            blocks,
            recovered,
        );
        let shard = Rc::new(shard);
        let has_caught_up = self.begin_log(&shard, &remains).await?;
        if has_caught_up {
            shard.release_remains(remains).await?;
        }
        Ok(Opened { shard, has_caught_up })
    }

    /// The options, with fragments that fit a block.
    fn options_on(&self, blocks: &BlockLayer) -> StoreOptions {
        let longest = blocks.capacity_bytes() / FRAGMENTS_OF_A_BLOCK;
        let fragment_bytes = self.options.fragment_bytes.min(longest);
        StoreOptions { fragment_bytes, ..self.options.clone() }
    }

    /// Makes the recovered state durable, and room for the log.
    async fn settle_flash(
        &self,
        blocks: &BlockLayer,
        mut recovered: Recovered,
        damaged: Vec<DamagedSuperblock>,
    ) -> Result<(Recovered, Remains)> {
        let id = self.id;
        if let Some(torn) = &recovered.torn {
            tracing::warn!(shard = id.0, "{torn}");
        }
        for stale in &recovered.stale_units {
            tracing::error!(shard = id.0, "{stale}");
            blocks.distrust_unit(stale.unit);
        }
        // Frames that recovery has read may not be durable yet.
        blocks.flash().flush(Hint::LOG).await?;
        blocks.log_flash().flush(Hint::LOG).await?;
        let leaks = planted::bug(Bug::BlocksLeak);
        // On a device that was full all along, this is where the log finds a place to go on.
        let dead = recovered.dead.iter().filter(|_| !leaks);
        dead.for_each(|block| blocks.delete(*block));
        let slices = &recovered.slices;
        let is_whole =
            slices.iter().all(|slice| slice.tree().patches().all(|(.., p)| p.damage().is_none()));
        if is_whole && self.on_log_loss == OnLogLoss::Refuse {
            let torn = damaged.iter().map(|torn| &torn.superblock);
            blocks.make_room_for_log(torn, &recovered.unlisted);
        }
        let orphans = std::mem::take(&mut recovered.orphans).into_iter().chain(recovered.announcer);
        let remains = Remains {
            damaged,
            orphans: orphans.filter(|_| !leaks).collect(),
            is_whole,
            decided_elsewhere: std::mem::take(&mut recovered.decided_elsewhere),
            cut: recovered.cut,
        };
        Ok((recovered, remains))
    }

    /// Begins the log with a durable checkpoint, which proves that nothing refers to the orphans. False on
    /// flash that is worn out.
    async fn begin_log(&self, shard: &Rc<Shard>, remains: &Remains) -> Result<bool> {
        // A later commit of this session is no decision on an earlier one's transactions.
        let decided_here = shard.recovered_commits();
        let maker: Weak<Shard> = Rc::downgrade(shard);
        shard.log.start(Box::new(move || {
            maker.upgrade().map(|shard| shard.checkpoint()).unwrap_or_default()
        }));
        let noted = shard.note_recovered(&remains.decided_elsewhere).await;
        if self.id == COORDINATOR && matches!(noted, Ok(()) | Err(StoreError::WornOut { .. })) {
            // Only now is every later recovery sure to find them, whatever a shard does on their word.
            self.decisions.publish(decided_here);
        }
        match noted {
            Err(error @ StoreError::WornOut { .. }) => {
                tracing::error!(shard = self.id.0, %error, "reads only");
                Ok(false)
            }
            noted => noted.map(|()| true),
        }
    }
}

impl Shard {
    async fn release_remains(&self, remains: Remains) -> Result<()> {
        self.note_units();
        remains.orphans.iter().for_each(|block| self.blocks.delete(*block));
        if remains.is_whole {
            // Torn by a crash. Where a patch is missing, one of these may hold its remains: kept for
            // salvage.
            let torn = remains.damaged.iter();
            torn.for_each(|torn| self.blocks.release_torn(&torn.superblock));
        }
        if remains.cut && !planted::bug(Bug::CutTailKept) {
            // The part behind the cut must never come back: once the rest is in patches, the old
            // segments can be deleted.
            self.flush_everything().await?;
        }
        Ok(())
    }

    fn checkpoint(&self) -> Vec<u8> {
        let states = self.slices.iter().map(|slice| SliceState {
            slice: slice.id.0,
            patches: slice.tree().entries(),
            flushed_seq: slice.flushed_seq.get(),
            live_keys: slice.live_keys.get(),
        });
        let checkpoint = Checkpoint {
            shards: self.layout.shards,
            slices: self.layout.slices,
            seq: self.history.seq.get(),
            next_block: self.blocks.next_id(),
            next_transaction: self.transactions.next(),
            log_start: self.first_segment_needed(),
            unlisted_from: self.pending_outputs.unlisted_from(&self.blocks),
            commits: self.transactions.unforgotten(),
            states: states.collect(),
            groups: self.blocks.groups().iter().map(|group| ParityGroup::clone(group)).collect(),
        };
        let mut stream = Vec::new();
        event::encode(&Event::Checkpoint(&checkpoint), &mut stream);
        stream
    }
}

/// Mounts the units of a shard's log where that has a device of its own.
async fn mount_log(
    device: &Arc<dyn Device>,
    main: &Flash,
    layout: &StoreLayout,
    id: ShardId,
    runtime: &RuntimeHandle,
) -> Result<(Flash, Inventory)> {
    let units = StoreLayout { units: device.info().units, ..layout.clone() };
    if let Some(problem) = units.problem() {
        return Err(StoreError::Unusable(format!("the log's device: {problem}")));
    }
    let queue = device
        .open_queue_pair(units.units_of(id))
        .map_err(|error| StoreError::Unusable(error.to_string()))?;
    let (flash, inventory) = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await?;
    let shape = |flash: &Flash| (flash.payload_bytes(), flash.page_bytes());
    if shape(&flash) != shape(main) {
        return Err(StoreError::Unusable(
            "the log's device must have pages and superblocks as large as those of the data's"
                .into(),
        ));
    }
    if !inventory.damaged.is_empty() {
        return Err(StoreError::Unusable(
            "the log's device was cut off in the middle of a write; simulations start with a new one".into(),
        ));
    }
    Ok((flash, inventory))
}
