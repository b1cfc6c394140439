//! Errors of a store, with the remedy.

use softflash_base::{ShardId, UnitSet};
use softflash_blocks::BlockError;
use softflash_ftl::FtlError;
use thiserror::Error;

/// Why a store refuses or fails an operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The flash is full: writes are refused; reads and deletes continue, and compaction makes
    /// room.
    #[error("the flash is full; delete keys or let them expire")]
    OutOfSpace,
    /// So many superblocks are bad that the flash takes no more writes; reads continue.
    #[error(
        "the flash is worn out: {bad} of {total} superblocks are bad; what is there can be read, and nothing more \
         written: take it to another device with `softflash dump` and `softflash load`"
    )]
    WornOut {
        /// Superblocks out of service, on the shard's units.
        bad: u32,
        /// All superblocks of these units.
        total: u32,
    },
    /// A key over the limit.
    #[error("key of {bytes} bytes exceeds the limit of {limit} bytes")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A value over the limit.
    #[error("value of {bytes} bytes exceeds the limit of {limit} bytes")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Another transaction wrote a key that this one had read; run it again.
    #[error("the keys read were changed by another client")]
    Conflict,
    /// The flash lost or damaged data; no wrong data was returned.
    #[error("data loss: {0}; run `softflash check` for the extent")]
    DataLoss(String),
    /// The flash translation layer failed a request.
    #[error("flash: {0}")]
    Flash(#[from] FtlError),
    /// The log failed earlier: its events in memory cannot be made durable.
    #[error("the log has failed ({0}); writes are refused until the server is restarted")]
    LogFailed(String),
    /// Units cannot leave the store.
    #[error("the units {units} cannot leave the keys of shard {shard}: {reason}")]
    NotDrained {
        /// The units.
        units: UnitSet,
        /// The shard that has them.
        shard: ShardId,
        /// Why not, and what helps.
        reason: String,
    },
    /// The data on the device belongs to another store, or to another version.
    #[error("{0}")]
    Unusable(String),
    /// The shard has stopped.
    #[error("the store is shutting down")]
    Closed,
}

/// Shorthand for results of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl From<BlockError> for StoreError {
    fn from(error: BlockError) -> StoreError {
        match error {
            BlockError::OutOfSpace => StoreError::OutOfSpace,
            BlockError::WornOut { bad, total } => StoreError::WornOut { bad, total },
            BlockError::DataLoss(place) => StoreError::DataLoss(place),
            BlockError::Flash(error) => StoreError::Flash(error),
        }
    }
}

/// Whether the error reports lost or damaged data, and not a full or misused device.
pub fn is_data_loss(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::DataLoss(_)
            | StoreError::Flash(FtlError::Device { .. } | FtlError::Damaged { .. })
    )
}
