//! Whether a log of which nothing is found was never begun, or is lost.
//!
//! Where no segment counts, the power went before the first one did, or the flash has lost all of them with the opening
//! headers of their superblocks. Until the first one counts, a writer puts no more into a superblock than its opening, the
//! frame that proves it, and what fills their word lines. A superblock that was written behind that has been in use. A log with
//! copies is lost only where that is so on several units: one unit may do anything.

use super::event::{self, Event};
use super::reader::LogReader;
use super::writer::longest_frame;
use crate::error::{Result, StoreError};
use crate::format::log::event::{Checkpoint, SliceState};
use crate::format::log::frame;
use crate::layout::StoreLayout;
use softflash_base::ShardId;
use softflash_blocks::{BlockKind, BlockLayer};
use softflash_ftl::{DamagedSuperblock, Hint};
use std::collections::BTreeSet;

impl LogReader {
    /// Looks into superblocks whose opening headers are damaged, where there is no log.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where one of them shows that there was something. Those of the device.
    pub async fn refuse_lost_log(
        &self,
        layout: &StoreLayout,
        damaged: &[DamagedSuperblock],
    ) -> Result<()> {
        let (blocks, shard) = (self.blocks(), self.shard());
        let beginning = pages_of_a_beginning(blocks, layout, shard);
        let copies = layout.redundancy().copies_of(BlockKind::Log { segment: 0, after: 0 });
        let mut units = BTreeSet::new();
        for DamagedSuperblock { superblock, .. } in damaged {
            if blocks.was_written_beyond(superblock, beginning, Hint::FOREGROUND).await? {
                units.insert(superblock.unit.0);
            }
            if units.len() >= usize::from(copies) {
                return Err(StoreError::DataLoss(format!(
                    "shard {shard} has no log, and had one: {superblock} was written, and its opening header is damaged"
                )));
            }
        }
        Ok(())
    }
}

/// The pages that the first segment of a log has when it counts.
fn pages_of_a_beginning(blocks: &BlockLayer, layout: &StoreLayout, shard: ShardId) -> u32 {
    let state = |slice| SliceState { slice, ..SliceState::default() };
    let states = layout.slices_of(shard).map(state).collect();
    let mut stream = Vec::new();
    let checkpoint = Checkpoint { states, ..Checkpoint::default() };
    event::encode(&Event::Checkpoint(&checkpoint), &mut stream);
    let payloads = stream.chunks(longest_frame(blocks) - frame::HEADER_BYTES);
    let pages = payloads.map(|payload| frame::pages(payload.len(), blocks.page_bytes()) as u32);
    let flash = blocks.log_flash();
    let proof = 1;
    flash.safe_after(flash.safe_after(pages.sum()) + proof)
}
