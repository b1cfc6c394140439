//! Gives up all volumes of a domain, also of one whose map cannot be read: a root without images,
//! newer than everything that is on the flash, makes the domain empty in one step.

use super::found::{FoundSuperblock, frames_of, holds_data, superblocks};
use super::nameless::release_free;
use crate::changes::Changes;
use crate::checkpoint;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::flusher;
use crate::format::entry::Entry;
use crate::frame_scan::FoundFrame;
use crate::frames::Frames;
use crate::image::Images;
use crate::order::Order;
use softflash_base::cast;
use softflash_ftl::Inventory;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Numbers of frames that are skipped: frames whose heads cannot be read have some of them.
const SKIPPED: u64 = 1 << 32;

/// Makes a domain empty. Returns the superblocks that it had. The tasks of the domain are stopped
/// by the caller.
pub(crate) async fn give_up(mut core: Core, inventory: &Inventory) -> Result<u32, VolumeError> {
    let found = superblocks(&core, inventory).await?;
    release_free(&core, inventory);
    let frames = frames_of(&core, found.iter()).await;
    let first_sequences = found.iter().filter_map(|found| Some(found.tag?.first_sequence));
    let sequences = frames.iter().map(|frame| frame.head.sequence).chain(first_sequences);
    let next = sequences.max().unwrap_or(0) + SKIPPED;
    // Changes are among the frames, so no change has a greater number.
    core.order = Order::from(Frames::from(next, next), Changes::recovered(next, next));
    // A root has more than one frame, so no root has a greater number. This one names itself as the
    // one before: recovery takes it without a proof that it is durable, and no older one.
    core.roots.found_newest(next - 1);
    core.roots.found(0, next);
    {
        let mut map = core.map.borrow_mut();
        map.images = Images::of(BTreeMap::new(), last_image(&frames));
        map.recovered().map_err(|slot| VolumeError::Damaged {
            reason: format!("an empty map names slot {slot}"),
        })?;
    }
    let core = Rc::new(core);
    core.tasks.spawn(flusher::run(Rc::clone(&core)));
    let emptied = write_empty(&core, &found).await;
    core.tasks.stop();
    emptied?;
    release(&core, found.iter());
    Ok(cast::saturating_u32(found.len()))
}

/// Writes the root without images.
async fn write_empty(core: &Shared, found: &[FoundSuperblock]) -> Result<(), VolumeError> {
    match checkpoint::make(core).await {
        Err(VolumeError::OutOfSpace { .. }) => {
            // The data are released first: a map that names what is gone gives errors.
            release(core, found.iter().filter(|found| holds_data(found)));
            checkpoint::make(core).await
        }
        made => made,
    }
}

fn release<'a>(core: &Core, found: impl Iterator<Item = &'a FoundSuperblock>) {
    for found in found {
        if let Some(superblock) = core.superblocks.take(found.block) {
            core.flash.release(&superblock);
        }
    }
}

/// The greatest number of an image that frames name.
fn last_image(frames: &[FoundFrame]) -> u32 {
    let entries = frames.iter().flat_map(|frame| &frame.head.entries);
    let images = entries.filter_map(|entry| match entry {
        Entry::Data { image, .. } | Entry::Moved { image, .. } | Entry::Discard { image, .. } => {
            Some(image.0)
        }
        _ => None,
    });
    images.max().unwrap_or(0)
}
