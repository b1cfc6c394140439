//! Opens the shards of a store and connects them.

use super::Store;
use super::mesh::{Inbox, Mesh};
use crate::error::Result;
use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use crate::shard::recovery::OnLogLoss;
use crate::shard::recovery::open::{OpenShard, Opened, open};
use softflash_base::ShardId;
use softflash_device::Device;
use softflash_flash::FlashSource;
use softflash_runtime::{RuntimeHandle, yield_now};
use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

/// The parameters of a shard's opening.
pub struct ShardSpec {
    /// The shard's id.
    pub id: ShardId,
    /// The division of the key space.
    pub layout: StoreLayout,
    /// The options of this run.
    pub options: StoreOptions,
    /// The flash of its units.
    pub flash: FlashSource,
    /// The clock and executor of the thread.
    pub runtime: RuntimeHandle,
    /// The mesh to the other shards.
    pub mesh: Mesh,
    /// This shard's inbox in the mesh.
    pub inbox: Inbox,
}

impl Store {
    /// Opens a shard, recovering the contents of its units, and joins it to the others. All shards
    /// of a store must be opened at the same time: they ask each other for the outcome of
    /// transactions.
    pub async fn open(spec: ShardSpec) -> Result<Store> {
        Store::open_on(spec, None).await
    }

    async fn open_on(spec: ShardSpec, log_device: Option<Arc<dyn Device>>) -> Result<Store> {
        let store = Store::open_idle(spec, log_device, OnLogLoss::Refuse).await?;
        store.shard.start_background();
        Ok(store)
    }

    /// Opens the shard without its background tasks.
    async fn open_idle(
        spec: ShardSpec,
        log_device: Option<Arc<dyn Device>>,
        on_log_loss: OnLogLoss,
    ) -> Result<Store> {
        let ShardSpec { id, layout, options, flash, runtime, mesh, inbox } = spec;
        let decisions = Arc::clone(&mesh.decisions);
        let opening =
            OpenShard { id, layout, options, log_device, runtime, decisions, on_log_loss };
        match open(opening, flash).await {
            Err(error) => {
                mesh.decisions.abandon(id, &error);
                inbox.refuse_jobs();
                Err(error)
            }
            Ok(Opened { shard, has_caught_up }) => {
                let store = Store::join(shard, mesh, inbox);
                if has_caught_up {
                    store.report_caught_up();
                }
                Ok(store)
            }
        }
    }
}

/// Opens all shards of a store on one thread: for embedding, tools and simulation. The first handle
/// is that of shard 0; close every one of them in the end.
pub async fn open_all(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
) -> Result<Vec<Store>> {
    open_each(&device, layout, options, runtime, |spec| Store::open_on(spec, None)).await
}

/// As [`open_all`], without background tasks: only the caller changes the trees.
pub(crate) async fn open_all_for_repair(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
    on_log_loss: OnLogLoss,
) -> Result<Vec<Store>> {
    let open = |spec| Store::open_idle(spec, None, on_log_loss);
    open_each(&device, layout, options, runtime, open).await
}

/// As [`open_all`], with the log on a separate device with pages and superblocks of the same size.
/// For simulations of systems with a log device; not for use after a power cut.
pub async fn open_all_with_log(
    device: Arc<dyn Device>,
    log_device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
) -> Result<Vec<Store>> {
    let open = |spec| Store::open_on(spec, Some(Arc::clone(&log_device)));
    open_each(&device, layout, options, runtime, open).await
}

/// Where a shard fails, the error is the first one, all tasks of the others have ended, and the
/// device can be opened again.
async fn open_each<F: Future<Output = Result<Store>>>(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    runtime: &RuntimeHandle,
    open: impl Fn(ShardSpec) -> F,
) -> Result<Vec<Store>> {
    let (mesh, inboxes) = Mesh::new(layout.shards);
    let first_error = RefCell::new(None);
    let openings = inboxes.into_iter().zip(0..).map(|(inbox, id)| {
        let opening = open(ShardSpec {
            id: ShardId(id),
            layout: layout.clone(),
            options: options.clone(),
            flash: FlashSource::Device(Arc::clone(device)),
            runtime: runtime.clone(),
            mesh: mesh.clone(),
            inbox,
        });
        let first_error = &first_error;
        async move {
            let note = |error| _ = first_error.borrow_mut().get_or_insert(error);
            opening.await.map_err(note).ok()
        }
    });
    // A failure does not end the other openings: one that is dropped leaves its tasks behind.
    let stores = futures_util::future::join_all(openings).await.into_iter().flatten().collect();
    match first_error.take() {
        None => Ok(stores),
        Some(error) => {
            close_all(stores, &mesh).await;
            Err(error)
        }
    }
}

/// Ends all tasks of the shards that were opened, where another one has failed.
async fn close_all(stores: Vec<Store>, mesh: &Mesh) {
    for store in &stores {
        if let Err(error) = store.close().await {
            let shard = store.local_id();
            tracing::warn!(shard = shard.0, %error, "closed with an error, as another shard failed");
        }
    }
    mesh.close();
    drop(stores);
    // The tasks hold the units of the device until they run for the last time.
    yield_now().await;
}
