//! The room for writes, for the mechanisms that write to memtables and log. `admission.rs` measures
//! it and makes it.

use super::admission::Demand;
use crate::error::Result;
use crate::shard::Shard;
use crate::shard::log::Log;
use crate::shard::maintenance::tasks::Tasks;
use crate::shard::resources::space::Space;
use crate::shard::slices::Slices;

/// The room of a shard's memtables and log.
pub(in crate::shard) struct WriteRoom<'a> {
    shard: &'a Shard,
    slices: &'a Slices,
    log: &'a Log,
    tasks: &'a Tasks,
}

impl<'a> WriteRoom<'a> {
    /// The room of a shard.
    pub(in crate::shard) fn of(shard: &'a Shard) -> WriteRoom<'a> {
        let Shard { slices, log, tasks, .. } = shard;
        WriteRoom { shard, slices, log, tasks }
    }

    /// Waits until new data may be written.
    ///
    /// # Errors
    /// Those of [`Shard::admit`].
    pub(super) async fn await_admission(&self, demand: Demand) -> Result<()> {
        self.shard.admit(demand).await
    }

    /// The error of a shard that has failed or closes.
    pub(in crate::shard) fn check(&self) -> Result<()> {
        self.shard.check_health()
    }

    /// Whether there is room for a value that the collector moves.
    pub(in crate::shard) fn takes_moves(&self) -> bool {
        self.shard.has_room_to_move()
    }

    /// Whether compaction does not keep up with the flushes.
    pub(in crate::shard) fn waits_for_compaction(&self) -> bool {
        self.shard.compaction_lags()
    }

    /// The free blocks and their reserves.
    pub(in crate::shard) fn space(&self) -> Space<'_> {
        self.shard.space()
    }

    /// Starts a flush of the largest memtable.
    pub(in crate::shard) fn make(&self) {
        self.shard.freeze_largest();
        self.tasks.request_flush();
    }

    /// Starts the flushes that are due after a write.
    pub(in crate::shard) fn start_due_flushes(&self) {
        let limits = self.shard.limits();
        if self.slices.active_bytes() >= limits.freeze_bytes {
            self.shard.freeze_largest();
        }
        if self.log.live_bytes() > limits.log_bytes {
            self.tasks.request_flush();
        }
    }
}
