//! Opening a shard: mounts its units, recovers their contents, and continues the log. After each
//! step the next opening can recover the flash, so a failure stops the tasks and undoes nothing
//! else.

use super::decisions::{COORDINATOR, Decisions};
use super::run::{OnFlash, OnLogLoss, Recovered, Recovery};
use crate::error::{Result, StoreError};
use crate::layout::{StoreLayout, split};
use crate::options::StoreOptions;
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::event;
use crate::shard::log::event::{Checkpoint, Event, SliceState};
use crate::shard::maintenance::manifest::Manifest;
use crate::shard::resources::budget::Budget;
use crate::shard::transactions::coordinator::Coordinator;
use crate::shard::transactions::participant::Participant;
use futures_util::future::LocalBoxFuture;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::space::{BLOCKS_OF_FLUSH, BLOCKS_OF_START};
use softflash_blocks::{BlockId, BlockLayer, Found, ParityGroup};
use softflash_device::Device;
use softflash_flash::{Flash, FlashSource, MountedFlash};
use softflash_ftl::Hint;
use softflash_ftl::{DamagedSuperblock, FtlConfig, Inventory};
use softflash_runtime::RuntimeHandle;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A fragment is at most this fraction of a block, so that a patch can hold it.
const FRAGMENTS_OF_A_BLOCK: usize = 4;

/// A shard to open.
pub(crate) struct OpenShard {
    pub(crate) id: ShardId,
    pub(crate) layout: StoreLayout,
    pub(crate) options: StoreOptions,
    /// The device of the log, if it is a separate one.
    pub(crate) log_device: Option<Arc<dyn Device>>,
    pub(crate) runtime: RuntimeHandle,
    pub(crate) decisions: Arc<Decisions>,
    pub(crate) on_log_loss: OnLogLoss,
}

/// An open shard.
pub(crate) struct Opened {
    pub(crate) shard: Rc<Shard>,
    /// Its log records the outcome of all its transactions, so the coordinator need not keep them.
    /// False on worn-out flash, which is opened for reads only.
    pub(crate) has_caught_up: bool,
}

/// The mounted units of a shard.
struct Mounted {
    blocks: BlockLayer,
    found: Vec<Found>,
    /// Superblocks whose block is unknown.
    damaged: Vec<DamagedSuperblock>,
}

/// Blocks to release once the log has a new segment.
struct Leftovers {
    damaged: Vec<DamagedSuperblock>,
    orphans: Vec<BlockId>,
    /// No patch is missing.
    is_whole: bool,
    /// Transactions whose commit only the coordinator's log records.
    decided_elsewhere: Vec<u64>,
    /// The log was cut at a transaction without a commit.
    cut: bool,
    /// The log has frames in one copy only that no frame may declare durable yet.
    has_undeclared: bool,
}

/// Opens a shard.
///
/// | step | writes | when it fails |
/// |---|---|---|
/// | `mount` | releases the superblocks of superseded attempts to write a block | the flash stops |
/// | `recover` | with parity, releases superseded attempts | the flash stops |
/// | `prepare_flash` | deletes dead blocks, and makes room for the log | the flash stops; dead blocks stay deleted |
/// | `begin_log` | a segment with a checkpoint; patches, where the old log has frames in one copy only | the log, the value log and the flash stop; the next opening recovers with or without the segment |
/// | `release_leftovers` | deletes orphans; flushes memtables after a cut of the log | as above; the log writes its pending events first; the next opening finds the orphans again |
///
/// Nothing stops where the caller drops the future: it has to run to its end.
///
/// Free superblocks are erased in advance from the mount on.
pub(crate) fn open(
    opening: OpenShard,
    flash: FlashSource,
) -> LocalBoxFuture<'static, Result<Opened>> {
    // Boxed here, recovery is compiled once, and not again in each crate that opens a store.
    Box::pin(opening.open(flash))
}

impl OpenShard {
    async fn open(self, flash: FlashSource) -> Result<Opened> {
        if let Some(problem) = self.layout.problem() {
            flash.stop();
            return Err(StoreError::Unusable(problem));
        }
        let mounted = self.mount(flash).await?;
        let flash = [mounted.blocks.flash().clone(), mounted.blocks.log_flash().clone()];
        let opened = self.open_mounted(mounted).await;
        if opened.is_err() {
            flash.iter().for_each(Flash::stop);
        }
        opened
    }

    async fn mount(&self, flash: FlashSource) -> Result<Mounted> {
        let OpenShard { id, layout, options, runtime, .. } = self;
        let MountedFlash { flash, inventory } = self.mount_units(flash).await?;
        let (uuid, redundancy) = (flash.device_uuid(), layout.redundancy());
        let (blocks, found) = match &self.log_device {
            None => BlockLayer::new(flash, *id, uuid, &inventory, redundancy),
            Some(log_device) => {
                let log = mount_log(log_device, &flash, layout, *id, runtime).await;
                let log = log.inspect_err(|_| flash.stop())?;
                BlockLayer::with_log((flash, &inventory), (log.0, &log.1), *id, uuid, redundancy)
            }
        };
        blocks.place_by(options.placement);
        Ok(Mounted { blocks, found, damaged: inventory.damaged })
    }

    async fn mount_units(&self, flash: FlashSource) -> Result<MountedFlash> {
        let device = match flash {
            FlashSource::Mounted(mounted) => return Ok(mounted),
            FlashSource::Device(device) => device,
        };
        let owners = self.layout.owners(self.id);
        let queue = device
            .open_queue_pair(&owners.units())
            .map_err(|error| StoreError::Unusable(error.to_string()))?;
        let (flash, inventory) =
            Flash::mount_one(queue, self.options.ftl, owners, self.runtime.clone()).await?;
        Ok(MountedFlash { flash, inventory })
    }

    async fn open_mounted(self, mounted: Mounted) -> Result<Opened> {
        let Mounted { blocks, found, damaged } = mounted;
        let clock = Rc::new(ExpiryClock::new(self.runtime.clone(), self.options.clock));
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
        let (recovered, leftovers) = self.prepare_flash(&blocks, recovered, damaged).await?;
        let shard = Shard::new(
            self.id,
            (self.layout.clone(), options, budget),
            (self.runtime.clone(), clock),
            blocks,
            recovered,
        );
        let shard = Rc::new(shard);
        let started = async {
            let has_caught_up = self.begin_log(&shard, &leftovers).await?;
            if has_caught_up {
                shard.release_leftovers(leftovers).await?;
            }
            Ok(has_caught_up)
        };
        match started.await {
            Ok(has_caught_up) => Ok(Opened { shard, has_caught_up }),
            Err(error) => {
                // Ends the writer of the log, if it has not failed. The first error counts.
                let _ = shard.log.close().await;
                shard.values.close();
                Err(error)
            }
        }
    }

    /// The options, with the fragment size limited by the block size.
    fn options_on(&self, blocks: &BlockLayer) -> StoreOptions {
        let longest = blocks.capacity_bytes() / FRAGMENTS_OF_A_BLOCK;
        let fragment_bytes = self.options.fragment_bytes.min(longest);
        StoreOptions { fragment_bytes, ..self.options.clone() }
    }

    /// Makes the recovered state durable, and frees space for the log.
    async fn prepare_flash(
        &self,
        blocks: &BlockLayer,
        mut recovered: Recovered,
        damaged: Vec<DamagedSuperblock>,
    ) -> Result<(Recovered, Leftovers)> {
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
        if recovered.resume.undeclared.is_some() {
            if blocks.free_blocks() < BLOCKS_OF_START + BLOCKS_OF_FLUSH {
                recovered.resume.undeclared = None;
            } else {
                // Frames that a later start may not find say that these blocks are dead.
                recovered.orphans.append(&mut recovered.dead);
            }
        }
        // On a full device only this gives the log space to continue.
        let dead = recovered.dead.iter().filter(|_| !leaks);
        dead.for_each(|block| blocks.delete(*block));
        let slices = &recovered.slices;
        let is_whole =
            slices.iter().all(|slice| slice.tree().patches().all(|(.., p)| p.damage().is_none()));
        if is_whole && self.on_log_loss == OnLogLoss::Refuse {
            let torn = damaged.iter().map(|torn| &torn.superblock);
            blocks.make_room_for_log(torn, &recovered.to_make_room);
        }
        let orphans = std::mem::take(&mut recovered.orphans).into_iter().chain(recovered.announcer);
        let leftovers = Leftovers {
            damaged,
            orphans: orphans.filter(|_| !leaks).collect(),
            is_whole,
            decided_elsewhere: std::mem::take(&mut recovered.decided_elsewhere),
            cut: recovered.cut,
            has_undeclared: recovered.resume.undeclared.is_some(),
        };
        Ok((recovered, leftovers))
    }

    /// Starts the log with a durable checkpoint, after which no recovery can refer to the orphans.
    /// Returns false on worn-out flash.
    async fn begin_log(&self, shard: &Rc<Shard>, leftovers: &Leftovers) -> Result<bool> {
        // Taken before new commits, which decide no transaction of an earlier session.
        let decided_here = Coordinator::of(shard).recovered_commits();
        let maker: Weak<Shard> = Rc::downgrade(shard);
        shard.values.start();
        shard.log.start(Box::new(move || {
            maker.upgrade().map(|shard| shard.checkpoint()).unwrap_or_default()
        }));
        let noted = Participant::of(shard).note_recovered(&leftovers.decided_elsewhere).await;
        if noted.is_ok() && leftovers.has_undeclared {
            shard.declare_recovered().await;
        }
        if self.id == COORDINATOR && matches!(noted, Ok(()) | Err(StoreError::WornOut { .. })) {
            // The commits are durable now: another shard may act on them, and every later recovery
            // finds them.
            self.decisions.publish(decided_here);
        }
        match noted {
            Err(error @ StoreError::WornOut { .. }) => {
                tracing::error!(shard = self.id.0, %error, "the flash is worn out; the shard is read-only");
                Ok(false)
            }
            noted => noted.map(|()| true),
        }
    }
}

impl Shard {
    /// Makes the frames unnecessary that are in one copy only, and declares them durable. Without
    /// space for that they are declared at once: their loss is then reported as a loss.
    async fn declare_recovered(&self) {
        if let Err(error) = Manifest::of(self).release_old_log().await {
            tracing::warn!(shard = self.id.0, %error, "the log has frames in one copy only and could not be rewritten");
        }
        self.log.declare_recovered();
    }

    async fn release_leftovers(&self, leftovers: Leftovers) -> Result<()> {
        self.note_units();
        leftovers.orphans.iter().for_each(|block| self.blocks.delete(*block));
        if leftovers.is_whole {
            // Torn by a crash. Where a patch is damaged, one of them may hold parts of it: kept for
            // salvage.
            let torn = leftovers.damaged.iter();
            torn.for_each(|torn| self.blocks.release_torn(&torn.superblock));
        }
        if leftovers.cut && !planted::bug(Bug::CutTailKept) {
            // No later recovery may replay the events after the cut: once the other events are in
            // patches, the old segments can be deleted.
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
            seq: self.history.seq(),
            next_block: self.blocks.next_id(),
            next_transaction: self.transactions.next(),
            log_start: self.first_segment_needed(),
            unlisted_from: self.pending_outputs.unlisted_from(&self.blocks),
            commits: self.transactions.retained_commits(),
            states: states.collect(),
            groups: self.blocks.groups().iter().map(|group| ParityGroup::clone(group)).collect(),
        };
        let mut stream = Vec::new();
        event::encode(&Event::Checkpoint(&checkpoint), &mut stream);
        stream
    }
}

/// Mounts the units of a shard's log on its separate device.
async fn mount_log(
    device: &Arc<dyn Device>,
    main: &Flash,
    layout: &StoreLayout,
    id: ShardId,
    runtime: &RuntimeHandle,
) -> Result<(Flash, Inventory)> {
    let units = split(device.info().units, layout.shards);
    let units = StoreLayout { units, ..layout.clone() };
    if let Some(problem) = units.problem() {
        return Err(StoreError::Unusable(format!("the log's device: {problem}")));
    }
    let queue = device
        .open_queue_pair(&units.units_of(id))
        .map_err(|error| StoreError::Unusable(error.to_string()))?;
    let (flash, inventory) = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await?;
    let shape = |flash: &Flash| (flash.payload_bytes(), flash.page_bytes());
    let problem = if shape(&flash) != shape(main) {
        "the log's device must have pages and superblocks as large as those of the data's device"
    } else if !inventory.damaged.is_empty() {
        "the log's device was interrupted by a power cut; simulations start with a new device"
    } else {
        return Ok((flash, inventory));
    };
    flash.stop();
    Err(StoreError::Unusable(problem.into()))
}
