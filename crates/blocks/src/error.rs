//! Failures of the block layer.

use crate::tag::BlockId;
use softflash_ftl::FtlError;
use thiserror::Error;

/// Why the block layer refuses or fails a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlockError {
    /// No unit has a free superblock for the block.
    #[error("the flash is full")]
    OutOfSpace,
    /// So many superblocks are bad that no unit takes writes.
    #[error("the flash is worn out: {bad} of {total} superblocks are bad")]
    WornOut {
        /// Superblocks out of service, on the shard's units.
        bad: u32,
        /// All superblocks of these units.
        total: u32,
    },
    /// A block is missing or damaged, and cannot be read from a copy or reconstructed.
    #[error("data loss: {0}")]
    DataLoss(String),
    /// The flash translation layer failed a request.
    #[error("flash: {0}")]
    Flash(#[from] FtlError),
}

impl BlockError {
    /// The block is in no superblock that can be read.
    pub(crate) fn missing(id: BlockId) -> BlockError {
        BlockError::DataLoss(format!("{id} is missing"))
    }
}

/// Shorthand for results of the block layer.
pub type Result<T, E = BlockError> = std::result::Result<T, E>;
