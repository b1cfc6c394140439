//! Moves: data that go from their slots to frames in other superblocks.

use crate::core::{Core, Shared};
use crate::domain_map::low;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::Entry;
use crate::frontier;
use crate::open_frame::OpenFrame;
use crate::stream::Stream;
use crate::writer::{Sent, finish, send};
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, cast, checksum};
use softflash_ftl::{Hint, Origin};

/// A frame of data that move, with the slots where they come from.
pub(crate) struct Moving {
    open_frame: OpenFrame,
    from: Vec<u32>,
    /// Data of volumes are recorded as written instead of moved.
    as_written: bool,
}

impl Moving {
    /// An empty frame. The next recovery may not find the frames of data that recovery writes
    /// again, so those are recorded with the effects of writes on snapshots.
    pub fn to(core: &Core, unit: u32, stream: Stream) -> Moving {
        let open_frame = frontier::begin(core, unit, stream, core.config.frame_units);
        Moving { open_frame, from: Vec::new(), as_written: stream == Stream::Recovery }
    }

    /// The same frame, of data that move for this reason.
    pub fn because(mut self, origin: Origin) -> Moving {
        self.open_frame.hint = self.open_frame.hint.of(origin);
        self
    }

    pub fn is_full(&self) -> bool {
        self.open_frame.is_full()
    }

    /// Adds the data of a slot, if it is valid; `None` if it cannot be read.
    pub fn add_one(&mut self, core: &Core, slot: u32, data: Option<&[u8]>) {
        let map = core.map.borrow();
        let Some((image, lba)) = map.holder(slot) else { return };
        let data = data.unwrap_or(&[0; MAPPING_UNIT_BYTES]);
        let kept = map.checksum_at(slot);
        let mut sums = map.seeds_of(image, lba).map(|seed| checksum::checksum64(seed, data));
        let sum = sums.find(|&sum| low(sum) == kept).unwrap_or_else(|| {
            // The map keeps the checksum of the lost data: no read takes these bytes for them.
            core.count(|counters| counters.lost += 1);
            tracing::error!(%image, lba, "data are lost: collection cannot read them");
            !checksum::checksum64(map.seed_of(image, lba), data)
        });
        self.open_frame.add(Entry::Moved { image, lba, checksum: sum }, data);
        self.from.push(slot);
    }
}

/// Slots without valid data that are read with those around them: fewer, longer reads cost less.
const MOST_BETWEEN: u32 = 4;

/// Slots from a valid one on that are read together, of which a frame takes the valid ones.
pub(crate) fn run_length(core: &Core, slot: u32, end: u32) -> u32 {
    let map = core.map.borrow();
    let mut last = slot;
    map.prefetch_move(slot);
    for _ in 1..core.config.frame_units {
        match map.next_valid(last + 1, end) {
            Some(next) if next - last <= MOST_BETWEEN + 1 => {
                map.prefetch_move(next);
                last = next;
            }
            _ => break,
        }
    }
    last + 1 - slot
}

/// Pages that were read.
pub(crate) struct Read {
    bytes: IoBuf,
    /// The first slot in them.
    first: u32,
}

impl Read {
    /// The data of a slot.
    pub fn unit(&self, slot: u32) -> &[u8] {
        let at = cast::index(slot - self.first) * MAPPING_UNIT_BYTES;
        &self.bytes[at..at + MAPPING_UNIT_BYTES]
    }
}

/// Reads slots of a superblock; `None` if one of them cannot be read.
pub(crate) async fn read_slots(
    core: &Core,
    first: u32,
    count: u32,
    hint: Hint,
) -> Result<Option<Read>, VolumeError> {
    let block = core.geometry.block_of(first);
    assert!(first + count <= core.geometry.slots_of(block).end, "{count} slots of block {block}");
    let Some(superblock) = core.superblocks.handle(block) else {
        let reason = format!("block {block} is collected and has no superblock");
        return Err(VolumeError::Damaged { reason });
    };
    let start = core.geometry.slots_of(block).start;
    let (first_page, _) = core.geometry.page_of(first);
    let pages = core.geometry.page_of(first + count - 1).0 - first_page + 1;
    let first = start + first_page * core.geometry.page_units;
    match core.flash.read(&superblock, first_page, pages, hint).await {
        Ok(read) => Ok(Some(Read { bytes: read.bytes, first })),
        Err(error) => {
            tracing::warn!(%error, count, "slots cannot be read together");
            Ok(None)
        }
    }
}

/// Appends moved data and names their new slots, of those that are still valid.
pub(crate) async fn append(core: &Shared, moving: Moving) -> Result<(), VolumeError> {
    let Moving { open_frame, from, as_written } = moving;
    if from.is_empty() {
        return Ok(());
    }
    let sent =
        send(core, open_frame, |entries| name_holders(core, &from, as_written, entries)).await?;
    name_slots(core, &from, &sent);
    core.count_entries(from.len());
    if let (Some(predicted), Some(first)) = (core.clients.classes().predicted(), from.first()) {
        predicted.moved(core.geometry.block_of(*first), sent.appended.block);
    }
    let (completion, first) = (sent.completion.clone(), sent.appended.first);
    let result = finish(core, sent).await;
    if result.is_err() {
        // The data are where they came from: that superblock is not released.
        take_back(core, first, &from);
    }
    completion.end(result.clone());
    result
}

/// Names the new slots of moved data in the map.
fn name_slots(core: &Core, from: &[u32], sent: &Sent) {
    assert_eq!(from.len(), sent.entries.len(), "a frame of moved data has other entries");
    let mut map = core.map.borrow_mut();
    for ((to, &from), entry) in (sent.appended.first + 1..).zip(from).zip(&sent.entries) {
        if *entry != Entry::Void {
            map.relocate(from, to);
        }
    }
}

/// Names the slots again from which data were moved to a frame that could not be written.
fn take_back(core: &Core, first: u32, from: &[u32]) {
    let mut map = core.map.borrow_mut();
    for (to, &from) in (first + 1..).zip(from) {
        if map.holder(to).is_some() {
            map.relocate(to, from);
        }
    }
}

/// Lets the entries name the images that hold the data now: a snapshot may have taken them, or
/// nothing holds them any more.
fn name_holders(core: &Core, from: &[u32], as_written: bool, entries: &mut [Entry]) {
    let map = core.map.borrow();
    for (&slot, entry) in from.iter().zip(entries) {
        *entry = match (map.holder(slot), *entry) {
            (Some((image, lba)), Entry::Moved { checksum, .. } | Entry::Data { checksum, .. }) => {
                let is_volume = || map.images.get(image).is_some_and(|image| image.is_volume());
                match (as_written || planted::bug(Bug::MovesAsWrites)) && is_volume() {
                    true => Entry::Data { image, lba, checksum },
                    false => Entry::Moved { image, lba, checksum },
                }
            }
            _ => Entry::Void,
        };
    }
}
