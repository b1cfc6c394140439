//! Decides whether a log without segments was never started or is lost.
//!
//! A log without segments has two causes: the power failed before its first segment was valid, or
//! the flash has lost the opening headers of all its superblocks. Until the first segment is valid,
//! the writer programs only its opening, the proof frame, and padding for their word lines. So a
//! superblock that was programmed beyond these pages belonged to a log in use. A log with copies is
//! lost only where this is true on as many units as it has copies: a single faulty unit is no
//! evidence.

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
    /// Checks superblocks with damaged opening headers for a lost log.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] where they show that a log was in use. Errors of the device.
    pub async fn refuse_lost_log(
        &self,
        layout: &StoreLayout,
        damaged: &[DamagedSuperblock],
    ) -> Result<()> {
        let (blocks, shard) = (self.blocks(), self.shard());
        let first_pages = pages_of_first_segment(blocks, layout, shard);
        let copies = layout.redundancy().copies_of(BlockKind::Log { segment: 0, after: 0 });
        let mut units = BTreeSet::new();
        for DamagedSuperblock { superblock, .. } in damaged {
            if blocks.was_written_beyond(superblock, first_pages, Hint::LOG).await? {
                units.insert(superblock.unit.0);
            }
            if units.len() >= usize::from(copies) {
                return Err(StoreError::DataLoss(format!(
                    "shard {shard} has no log but had one: {superblock} was programmed, and its opening header is damaged"
                )));
            }
        }
        Ok(())
    }
}

/// The pages programmed in the first segment of a log when it becomes valid.
fn pages_of_first_segment(blocks: &BlockLayer, layout: &StoreLayout, shard: ShardId) -> u32 {
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
