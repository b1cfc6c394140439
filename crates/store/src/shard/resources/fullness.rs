//! Whether a shard is full, told once when it becomes so and once when it has room again.

use crate::error::{Result, StoreError};
use softflash_base::ShardId;
use std::cell::Cell;

/// What has become of the last writes.
#[derive(Debug, Default)]
pub(in crate::shard) struct Fullness {
    /// The last write of new data was refused for lack of space.
    refuses: Cell<bool>,
    /// It was told that the shard is full, and not yet that it has room again.
    is_told: Cell<bool>,
}

/// The space of a shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::shard) struct FreeSpace {
    pub shard: ShardId,
    /// Free superblocks.
    pub free: u32,
    /// Superblocks that are kept free.
    pub kept: u32,
    /// Whether hardly more are free than are kept.
    pub is_short: bool,
}

impl Fullness {
    /// Notes whether a write of new data was admitted.
    pub(in crate::shard) fn note(&self, admitted: &Result<()>, space: impl Fn() -> FreeSpace) {
        match admitted {
            Ok(()) => {
                self.refuses.set(false);
                if self.is_told.get() {
                    self.tell_room(space());
                }
            }
            Err(StoreError::OutOfSpace) => {
                self.refuses.set(true);
                if !self.is_told.replace(true) {
                    let FreeSpace { shard, free, kept, .. } = space();
                    tracing::warn!(
                        shard = shard.0,
                        free_superblocks = free,
                        kept_superblocks = kept,
                        "the flash is full: writes of new data are refused until keys are deleted \
                         or expire"
                    );
                }
            }
            Err(_) => {}
        }
    }

    /// Whether writes of new data are refused, as far as the last of them shows.
    pub(in crate::shard) fn refuses(&self, space: impl Fn() -> FreeSpace) -> bool {
        if self.is_told.get() && !space().is_short {
            // Nobody has written since.
            self.refuses.set(false);
            self.tell_room(space());
        }
        self.refuses.get()
    }

    /// Tells that the shard has room again, once there is more than a little: it would be full
    /// again soon, and would be told so again and again.
    fn tell_room(&self, space: FreeSpace) {
        if !space.is_short {
            self.is_told.set(false);
            let FreeSpace { shard, free, .. } = space;
            tracing::warn!(shard = shard.0, free_superblocks = free, "the flash has room again");
        }
    }
}
