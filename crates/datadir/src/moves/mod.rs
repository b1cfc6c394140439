//! Volumes move from one set to another.
//!
//! A volume moves with its *family*: its snapshots, its clones and its parent, so that what they
//! share stays shared. The family is copied while clients use it. A record in the manifest, which
//! is written before the first byte and again for the switch, says which set has the volumes: what
//! the other one holds of them counts for nothing, and the next mount takes it away.

mod arrival;
mod departure;
mod error;
mod family;
mod leftovers;
mod offline;
mod record;
mod recording;
#[cfg(test)]
mod tests;

pub use arrival::Arrival;
pub use departure::{Departure, Piece};
pub use error::{MoveError, quoted};
pub use family::Family;
pub(crate) use leftovers::take_away;
pub use offline::Moved;
pub use record::UnfinishedMove;

use std::sync::atomic::{AtomicU64, Ordering};

/// How far a move is, for any thread.
#[derive(Debug, Default)]
pub struct MoveProgress {
    copied_bytes: AtomicU64,
    left_bytes: AtomicU64,
}

impl MoveProgress {
    /// Nothing is copied, and so many bytes are left.
    pub fn begin(left_bytes: u64) -> MoveProgress {
        let progress = MoveProgress::default();
        progress.left_bytes.store(left_bytes, Ordering::Relaxed);
        progress
    }

    /// Bytes of data that were copied, also more than once.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of data that are still to be copied, as far as is known.
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes.load(Ordering::Relaxed)
    }

    fn copied(&self, bytes: u64) {
        self.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn left(&self, bytes: u64) {
        self.left_bytes.store(bytes, Ordering::Relaxed);
    }
}
