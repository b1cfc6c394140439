//! Opening a shard: mounts its units, finds out what they hold, and starts its tasks.

use super::budget::Budget;
use super::clock::ExpiryClock;
use super::gate::Gate;
use super::log::event::{Checkpoint, Event, SliceState};
use super::log::{Log, event};
use super::recovery::{self, OnFlash, OnLogLoss, Recovered};
use super::transactions::{COORDINATOR, Transactions};
use super::watch::Watches;
use super::{Counters, Shard};
use crate::error::{Result, StoreError};
use crate::kv::cache::ReadCache;
use crate::kv::windows::Windows;
use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use crate::store::{Inbox, Mesh, Store};
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockLayer, ParityGroup};
use softflash_device::Device;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint, Inventory};
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A fragment is at most this part of a block, so that a patch can hold it.
const FRAGMENTS_OF_A_BLOCK: usize = 4;

/// What a shard is opened with.
pub struct ShardSpec {
    /// Which shard.
    pub id: ShardId,
    /// How the key space is cut.
    pub layout: StoreLayout,
    /// Settings of this run.
    pub options: StoreOptions,
    /// The device, shared with the other shards.
    pub device: Arc<dyn Device>,
    /// The clock and executor of the thread.
    pub runtime: RuntimeHandle,
    /// The way to the other shards.
    pub mesh: Mesh,
    /// This shard's own end of it.
    pub inbox: Inbox,
}

impl Shard {
    /// Opens the shard, recovering what its units hold, and joins it to the others. All shards of a store must be
    /// opened at the same time: they ask each other what became of transactions.
    pub async fn open(spec: ShardSpec) -> Result<Store> {
        Shard::open_on(spec, None).await
    }

    async fn open_on(spec: ShardSpec, log_device: Option<Arc<dyn Device>>) -> Result<Store> {
        let store = Shard::open_idle(spec, log_device, OnLogLoss::Refuse).await?;
        store.local().start_background();
        Ok(store)
    }

    /// Opens the shard without its background tasks.
    async fn open_idle(
        spec: ShardSpec,
        log_device: Option<Arc<dyn Device>>,
        on_log_loss: OnLogLoss,
    ) -> Result<Store> {
        let (mesh, id) = (spec.mesh.clone(), spec.id);
        let opened = open(spec, log_device, on_log_loss).await;
        if let Err(error) = &opened {
            mesh.abandon(id, error);
        }
        opened
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
            seq: self.seq.get(),
            next_block: self.blocks.next_id(),
            next_transaction: self.transactions.next(),
            log_start: self.first_segment_needed(),
            unlisted_from: self.building.unlisted_from(&self.blocks),
            commits: self.transactions.unforgotten(),
            states: states.collect(),
            groups: self.blocks.groups().iter().map(|group| ParityGroup::clone(group)).collect(),
        };
        let mut stream = Vec::new();
        event::encode(&Event::Checkpoint(&checkpoint), &mut stream);
        stream
    }
}

async fn open(
    spec: ShardSpec,
    log_device: Option<Arc<dyn Device>>,
    on_log_loss: OnLogLoss,
) -> Result<Store> {
    let ShardSpec { id, layout, options, device, runtime, mesh, inbox } = spec;
    if let Some(problem) = layout.problem() {
        return Err(StoreError::Unusable(problem));
    }
    let queue = device
        .open_queue_pair(layout.units_of(id))
        .map_err(|error| StoreError::Unusable(error.to_string()))?;
    let (flash, inventory) = Flash::mount(queue, options.ftl, runtime.clone()).await?;
    let (uuid, redundancy) = (device.info().uuid, layout.redundancy());
    let (blocks, found) = match log_device {
        None => BlockLayer::new(flash, id, uuid, &inventory, redundancy),
        Some(log_device) => {
            let log = mount_log(&log_device, &flash, &layout, id, &runtime).await?;
            BlockLayer::with_log((flash, &inventory), (log.0, &log.1), id, uuid, redundancy)
        }
    };
    blocks.place_by(options.placement);
    let options = StoreOptions {
        fragment_bytes: options.fragment_bytes.min(blocks.capacity_bytes() / FRAGMENTS_OF_A_BLOCK),
        ..options
    };
    let clock = Rc::new(ExpiryClock::new(runtime.clone()));
    let total = blocks.total_blocks();
    let budget = Budget::new(&options, &layout, total, blocks.capacity_bytes());
    let damaged = &inventory.damaged;
    let Recovered {
        slices,
        resume,
        next_transaction,
        cut,
        dead,
        orphans,
        unlisted,
        announcer,
        commits,
        decided_elsewhere,
        torn,
        old_units,
        ..
    } = recovery::recover(
        id,
        &layout,
        &blocks,
        OnFlash { found: &found, damaged, on_log_loss },
        &clock,
        &mesh,
        &budget,
    )
    .await?;
    if let Some(torn) = torn {
        tracing::warn!(shard = id.0, "{torn}");
    }
    for old in &old_units {
        tracing::error!(shard = id.0, "{old}");
        blocks.distrust_unit(old.unit);
    }
    // What recovery has read may have been written without waiting for it.
    blocks.flash().flush(Hint::LOG).await?;
    blocks.log_flash().flush(Hint::LOG).await?;
    // On a device that was full all along, this is where the log finds a place to go on.
    let dead = dead.into_iter().filter(|_| !planted::bug(Bug::BlocksLeak));
    dead.for_each(|block| blocks.delete(block));
    let is_whole =
        slices.iter().all(|slice| slice.tree().patches().all(|(.., p)| p.damage().is_none()));
    if is_whole && on_log_loss == OnLogLoss::Refuse {
        blocks.make_room_for_log(damaged.iter().map(|torn| &torn.superblock), &unlisted);
    }
    let (seq, shards, watch_sweep) = (resume.seq, layout.shards, options.watch_sweep);
    let decided_here = commits.clone();
    let log = Log::new(
        id,
        blocks.clone(),
        runtime.clone(),
        Rc::clone(&clock),
        options.durability,
        resume,
    );
    let shard = Rc::new(Shard {
        id,
        cache: RefCell::new(ReadCache::new(budget.cache_bytes)),
        scan_windows: Rc::new(Windows::new(budget.scan_windows_bytes)),
        layout,
        options,
        budget,
        runtime,
        blocks,
        log,
        slices,
        gate: Gate::default(),
        watches: RefCell::new(Watches::new(watch_sweep)),
        snapshots: Default::default(),
        clock,
        building: Default::default(),
        transactions: Transactions::new(next_transaction, commits, shards),
        seq: Cell::new(seq),
        throttle: Default::default(),
        clears: Default::default(),
        work: Notify::new(),
        compact_work: Notify::new(),
        patrol_work: Notify::new(),
        compaction_idle: Cell::new(false),
        room: Notify::new(),
        counters: Counters::default(),
        closing: Cell::new(false),
        tasks: Cell::new(0),
        failure: RefCell::default(),
        old_units: old_units.len() as u64,
    });
    let maker: Weak<Shard> = Rc::downgrade(&shard);
    shard.log.start(Box::new(move || {
        maker.upgrade().map(|shard| shard.checkpoint()).unwrap_or_default()
    }));
    // Only a durable checkpoint proves that nothing refers to the orphans.
    let noted = shard.note_recovered(&decided_elsewhere).await;
    if id == COORDINATOR && matches!(noted, Ok(()) | Err(StoreError::WornOut { .. })) {
        // Only now are they sure to be found again, whoever has acted on them.
        mesh.publish_commits(decided_here);
    }
    match noted {
        Err(error @ StoreError::WornOut { .. }) => {
            // It is read as it was found. The coordinator goes on to remember what this shard could not note.
            tracing::error!(shard = id.0, %error, "reads only");
            return Ok(Store::join(shard, mesh, inbox));
        }
        noted => noted?,
    }
    shard.note_units();
    let orphans = orphans.into_iter().chain(announcer).filter(|_| !planted::bug(Bug::BlocksLeak));
    orphans.for_each(|block| shard.blocks.delete(block));
    if is_whole {
        // Torn by a crash. Where a patch is missing, one of these may be what is left of it: kept for salvage.
        damaged.iter().for_each(|torn| shard.blocks.release_torn(&torn.superblock));
    }
    if cut && !planted::bug(Bug::CutTailKept) {
        // What was cut off must never come back: once the rest is in patches, the old segments can go.
        shard.flush_everything().await?;
    }
    let store = Store::join(shard, mesh, inbox);
    Shard::report_caught_up(&store);
    Ok(store)
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

/// Opens all shards of a store on one thread: for embedding, tools and simulation. The first handle is that of
/// shard 0; close every one of them in the end.
pub async fn open_all(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
) -> Result<Vec<Store>> {
    open_each(&device, layout, options, runtime, |spec| Shard::open_on(spec, None)).await
}

/// As [`open_all`], without background tasks: the trees stay as they are but for what the caller changes.
pub(crate) async fn open_all_for_repair(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
    on_log_loss: OnLogLoss,
) -> Result<Vec<Store>> {
    let open = |spec| Shard::open_idle(spec, None, on_log_loss);
    open_each(&device, layout, options, runtime, open).await
}

/// As [`open_all`], with the log on a device of its own, whose pages and superblocks are as large: for simulations of
/// systems that have one. It is not for use after a power cut.
pub async fn open_all_with_log(
    device: Arc<dyn Device>,
    log_device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
) -> Result<Vec<Store>> {
    let open = |spec| Shard::open_on(spec, Some(Arc::clone(&log_device)));
    open_each(&device, layout, options, runtime, open).await
}

async fn open_each<F: Future<Output = Result<Store>>>(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
    open: impl Fn(ShardSpec) -> F,
) -> Result<Vec<Store>> {
    let (mesh, inboxes) = Mesh::new(layout.shards);
    let shards = inboxes.into_iter().zip(0..).map(|(inbox, id)| {
        open(ShardSpec {
            id: ShardId(id),
            layout: layout.clone(),
            options: options.clone(),
            device: Arc::clone(device),
            runtime: runtime.clone(),
            mesh: mesh.clone(),
            inbox,
        })
    });
    futures_util::future::try_join_all(shards).await
}
