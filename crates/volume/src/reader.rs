//! Reads: the map names the slots, neighbouring slots are read together, and every mapping unit
//! is compared with its checksum.

use crate::core::Core;
use crate::domain_map::Found;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::entry::data_seed;
use crate::frames::Completion;
use crate::image::ImageId;
use crate::single_read;
use crate::writer::is_whole;
use futures_util::future::join_all;
use softflash_base::cast;
use softflash_ftl::Hint;

/// A mapping unit to read, and where it goes.
struct Wanted<'a> {
    lba: u32,
    slot: u32,
    /// As what it was written.
    origin: ImageId,
    checksum: u32,
    into: &'a mut [u8],
}

/// Attempts to read a mapping unit that collection moves meanwhile.
const ATTEMPTS: usize = 16;

/// Reads mapping units of an image from `lba` on.
pub(crate) async fn read(
    core: &Core,
    image: ImageId,
    lba: u32,
    into: &mut [u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    core.count(|counters| {
        counters.read += cast::wide(into.len() / MAPPING_UNIT_BYTES);
    });
    if into.len() == MAPPING_UNIT_BYTES && single_read::read(core, image, lba, into, hint).await {
        return Ok(());
    }
    // The state of a longer read is large; a read of one mapping unit does not carry it along.
    Box::pin(read_many(core, image, lba, into, hint)).await
}

async fn read_many(
    core: &Core,
    image: ImageId,
    lba: u32,
    into: &mut [u8],
    hint: Hint,
) -> Result<(), VolumeError> {
    let mut left: Vec<(u32, &mut [u8])> =
        (lba..).zip(into.chunks_exact_mut(MAPPING_UNIT_BYTES)).collect();
    let mut damage = None;
    for _ in 0..ATTEMPTS {
        let (runs, waits) = runs(core, image, left)?;
        for wait in waits {
            // A failed frame is told to its writers; its data are read where the map names them.
            wait.wait().await.ok();
        }
        let reads = runs.into_iter().map(|run| read_run(core, run, hint));
        left = Vec::new();
        for failed in join_all(reads).await {
            for (wanted, error) in failed {
                left.push((wanted.lba, wanted.into));
                damage = Some((wanted.lba, wanted.slot, error));
            }
        }
        let Some((lba, slot, error)) = &damage else { return Ok(()) };
        let same = matches!(core.map.borrow().find(image, *lba), Found::At { slot: now, .. } if now == *slot);
        if left.is_empty() {
            return Ok(());
        }
        if same {
            return Err(data_loss(*lba, error));
        }
    }
    let (lba, _, error) = damage.unwrap_or((lba, 0, "it was moved too often".to_owned()));
    Err(data_loss(lba, &error))
}

fn data_loss(lba: u32, reason: &str) -> VolumeError {
    let bytes = cast::wide(MAPPING_UNIT_BYTES);
    let offset = u64::from(lba) * bytes;
    VolumeError::DataLoss { offset, end: offset + bytes, reason: reason.to_owned() }
}

type Runs<'a> = Vec<Vec<Wanted<'a>>>;

/// Looks the mapping units up, fills those without data with zeros, and groups the others by
/// neighbouring slots. Returns the frames under way that must end first, too.
fn runs<'a>(
    core: &Core,
    image: ImageId,
    units: Vec<(u32, &'a mut [u8])>,
) -> Result<(Runs<'a>, Vec<Completion>), VolumeError> {
    let map = core.map.borrow();
    if map.images.get(image).is_none() {
        return Err(VolumeError::Deleted);
    }
    let (mut runs, mut waits): (Runs<'a>, Vec<Completion>) = Default::default();
    for (lba, into) in units {
        let (slot, origin, checksum) = match map.find(image, lba) {
            Found::At { slot, origin, checksum } => (slot, origin, checksum),
            Found::Lost { .. } => return Err(data_loss(lba, "the flash lost its newest write")),
            Found::Zeros => {
                into.fill(0);
                continue;
            }
        };
        let block = core.geometry.block_of(slot);
        if let Some(frame) = core.superblocks.frame_at(block, slot)
            && waits.last().is_none_or(|last| !last.is(&frame))
        {
            waits.push(frame);
        }
        let wanted = Wanted { lba, slot, origin, checksum, into };
        match runs.last_mut() {
            Some(run) if follows(core, run, slot) => run.push(wanted),
            _ => runs.push(vec![wanted]),
        }
    }
    Ok((runs, waits))
}

/// Whether a slot is read together with the run before it: it is the next one, or the head of a
/// frame is between them.
fn follows(core: &Core, run: &[Wanted<'_>], slot: u32) -> bool {
    let Some(last) = run.last() else { return false };
    let same_block = core.geometry.block_of(last.slot) == core.geometry.block_of(slot);
    same_block && slot > last.slot && slot <= last.slot + 2 && run.len() < MOST_TOGETHER
}

/// Mapping units that are read together.
const MOST_TOGETHER: usize = 256;

/// Reads a run; returns the mapping units that could not be read, with the reason.
async fn read_run<'a>(core: &Core, run: Vec<Wanted<'a>>, hint: Hint) -> Vec<(Wanted<'a>, String)> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return Vec::new() };
    let block = core.geometry.block_of(first.slot);
    let (first_page, _) = core.geometry.page_of(first.slot);
    let pages = core.geometry.page_of(last.slot).0 - first_page + 1;
    let start = core.geometry.slots_of(block).start + first_page * core.geometry.page_units;
    let Some(superblock) = core.superblocks.handle(block) else {
        return failed(run, "its superblock was released");
    };
    let read = core.flash.read(&superblock, first_page, pages, hint).await;
    match read {
        Ok(read) => {
            let mut wrong = Vec::new();
            let map = core.map.borrow();
            for wanted in run {
                let at = cast::index(wanted.slot - start) * MAPPING_UNIT_BYTES;
                let bytes = &read.bytes[at..at + MAPPING_UNIT_BYTES];
                let Wanted { lba, origin, checksum, .. } = wanted;
                let fits = is_whole(data_seed(origin, lba), bytes, checksum);
                if fits || map.fits(origin, lba, bytes, checksum) {
                    wanted.into.copy_from_slice(bytes);
                } else {
                    wrong.push((wanted, "its checksum does not fit".to_owned()));
                }
            }
            wrong
        }
        Err(error) if run.len() == 1 => failed(run, &error.to_string()),
        // One bad page fails the whole read: read the others alone.
        Err(_) => {
            let mut wrong = Vec::new();
            for wanted in run {
                wrong.extend(Box::pin(read_run(core, vec![wanted], hint)).await);
            }
            wrong
        }
    }
}

fn failed<'a>(run: Vec<Wanted<'a>>, reason: &str) -> Vec<(Wanted<'a>, String)> {
    run.into_iter().map(|wanted| (wanted, reason.to_owned())).collect()
}
