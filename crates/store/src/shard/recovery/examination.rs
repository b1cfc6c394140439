//! Examination: mounts a shard and recovers its state without a write, for checks and repairs.

use super::decisions::{COORDINATOR, Decisions};
use super::run::{OnFlash, OnLogLoss, Recovered, Recovery};
use crate::error::{Result, StoreError};
use crate::layout::StoreLayout;
use crate::options::{ClockSource, StoreOptions};
use crate::shard::clock::ExpiryClock;
use crate::shard::resources::budget::Budget;
use futures_util::future::LocalBoxFuture;
use softflash_base::ShardId;
use softflash_blocks::{BlockLayer, Found};
use softflash_device::Device;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Inventory};
use softflash_runtime::RuntimeHandle;
use std::sync::Arc;

/// A shard to examine.
pub(crate) struct Examination<'a> {
    pub(crate) shard: ShardId,
    pub(crate) device: &'a Arc<dyn Device>,
    pub(crate) layout: &'a StoreLayout,
    pub(crate) decisions: &'a Decisions,
    pub(crate) runtime: &'a RuntimeHandle,
    pub(crate) on_log_loss: OnLogLoss,
}

/// An examined shard. Its flash runs until it is stopped.
pub(crate) struct Examined {
    pub(crate) flash: Flash,
    pub(crate) inventory: Inventory,
    pub(crate) blocks: BlockLayer,
    pub(crate) found: Vec<Found>,
    pub(crate) recovered: Result<Recovered>,
    /// The time of the store's expiry clock.
    pub(crate) now_ms: u64,
    /// The time that the log records.
    pub(crate) recorded_ms: u64,
}

impl Examination<'_> {
    /// Mounts and recovers the shard. The coordinator publishes its commits.
    pub(crate) fn run<'a>(self) -> LocalBoxFuture<'a, Result<Examined>>
    where
        Self: 'a,
    {
        Box::pin(self.examined())
    }

    async fn examined(self) -> Result<Examined> {
        let Examination { shard, device, layout, decisions, runtime, on_log_loss } = self;
        let owners = layout.owners(shard);
        let queue = device
            .open_queue_pair(&owners.units())
            .map_err(|error| StoreError::Unusable(error.to_string()))?;
        // Without erases in advance: an examination only reads.
        let config = FtlConfig { erased_target: 0, ..FtlConfig::default() };
        let (flash, inventory) = Flash::mount_one(queue, config, owners, runtime.clone()).await?;
        let (uuid, redundancy) = (device.info().uuid, layout.redundancy());
        let (blocks, found) = BlockLayer::new(flash.clone(), shard, uuid, &inventory, redundancy);
        let clock = ExpiryClock::new(runtime.clone(), ClockSource::Wall);
        let (total, capacity) = (blocks.total_blocks(), blocks.capacity_bytes());
        let budget = Budget::new(&StoreOptions::default(), layout, total, capacity);
        let recovery = Recovery {
            shard,
            layout,
            blocks: &blocks,
            on_flash: OnFlash { found: &found, damaged: &inventory.damaged, on_log_loss },
            clock: &clock,
            decisions,
            budget: &budget,
        };
        let recovered = recovery.run().await;
        if let Ok(recovered) = &recovered
            && shard == COORDINATOR
        {
            decisions.publish(recovered.commits.clone());
        }
        let (now_ms, recorded_ms) = (clock.now_ms(), clock.logged_ms());
        Ok(Examined { flash, inventory, blocks, found, recovered, now_ms, recorded_ms })
    }
}
