//! Whether a shard is full, told once when it becomes so and once when it has room again.

use super::Shard;
use crate::error::{Result, StoreError};
use std::cell::Cell;

/// What has become of the last writes.
#[derive(Debug, Default)]
pub(super) struct Fullness {
    /// The last write of new data was refused for lack of space.
    refuses: Cell<bool>,
    /// It was told that the shard is full, and not yet that it has room again.
    is_told: Cell<bool>,
}

impl Shard {
    /// Notes whether a write of new data was admitted.
    pub(super) fn note_admission(&self, admitted: &Result<()>) {
        let Fullness { refuses, is_told } = &self.fullness;
        match admitted {
            Ok(()) => {
                refuses.set(false);
                if is_told.get() {
                    self.tell_room();
                }
            }
            Err(StoreError::OutOfSpace) => {
                refuses.set(true);
                if !is_told.replace(true) {
                    let (free, kept) = (self.blocks.free_blocks(), self.reserve_blocks());
                    tracing::warn!(
                        shard = self.id.0,
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

    /// Tells that the shard has room again, once there is more than a little: it would be full again
    /// soon, and would be told so again and again.
    fn tell_room(&self) {
        if !self.space_is_short() {
            self.fullness.is_told.set(false);
            let free = self.blocks.free_blocks();
            tracing::warn!(shard = self.id.0, free_superblocks = free, "the flash has room again");
        }
    }

    /// Whether new data is refused for lack of space.
    pub(super) fn refuses_new_data(&self) -> bool {
        if self.fullness.is_told.get() && !self.space_is_short() {
            // Nobody has written since.
            self.fullness.refuses.set(false);
            self.tell_room();
        }
        self.is_full() || self.fullness.refuses.get()
    }
}
