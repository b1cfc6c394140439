//! Discovery: finds the blocks and their copies in the superblocks of mounted flash.

use crate::directory::{Directory, Place};
use crate::tag::{self, BlockId, BlockKind, Tag};
use hashbrown::HashMap;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_flash::Flash;
use softflash_ftl::{Inventory, Superblock};

/// A block that was found on the flash when it was mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: BlockId,
    /// Its contents.
    pub kind: BlockKind,
}

/// A superblock of an attempt to write a block, earlier than the attempt that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EarlierAttempt {
    pub(crate) id: BlockId,
    pub(crate) attempt: u8,
    pub(crate) superblock: Superblock,
}

/// The attempt to write a block that counts, of the superblocks seen so far.
struct Claim {
    attempt: u8,
    /// The copies found, by the numbers in their tags.
    numbers: SmallVec<[Option<u8>; 2]>,
}

impl Claim {
    fn new(attempt: u8, copy: Option<u8>) -> Claim {
        Claim { attempt, numbers: SmallVec::from_slice(&[copy]) }
    }
}

/// Adds the blocks of mounted flash to the directory.
///
/// Where several superblocks claim one id, the superblocks of the last attempt count, one for each
/// copy; the others go to `earlier`. A start that could not read a header, and found no valid log,
/// assigns its id a second time: of two superblocks on one unit the younger counts.
pub(crate) fn discover(
    flash: &Flash,
    inventory: &Inventory,
    on_log: bool,
    directory: &Directory,
    earlier: &mut Vec<EarlierAttempt>,
) -> Vec<Found> {
    let mut claims: HashMap<BlockId, Claim> = HashMap::new();
    let mut found = Vec::new();
    for entry in &inventory.superblocks {
        let Some(Tag { id, kind, attempt, copy }) = tag::decode(&entry.tag) else {
            // The inventory has only superblocks of this owner: no id names this one.
            flash.release(&entry.superblock);
            continue;
        };
        let known = directory.change(id, |known| {
            let is_older = |other: &Superblock| {
                let Superblock { unit, generation, .. } = entry.superblock;
                other.unit == unit && other.generation < generation
            };
            let is_second_use_of_id = copy.is_none() && known.copies.iter().all(is_older);
            let claim = claims.entry(id).or_insert_with(|| Claim::new(attempt, copy));
            if attempt == claim.attempt && !claim.numbers.contains(&copy) {
                known.copies.push(entry.superblock);
                claim.numbers.push(copy);
            } else if attempt == claim.attempt && is_second_use_of_id {
                known.copies.drain(..).for_each(|older| flash.release(&older));
                known.copies.push(entry.superblock);
            } else if (attempt > claim.attempt) != planted::bug(Bug::FailedAttemptKept) {
                let (before, copies) = (claim.attempt, known.copies.drain(..));
                let replaced =
                    copies.map(|superblock| EarlierAttempt { id, attempt: before, superblock });
                earlier.extend(replaced);
                known.copies.push(entry.superblock);
                known.attempt = attempt;
                *claim = Claim::new(attempt, copy);
            } else if attempt < claim.attempt {
                earlier.push(EarlierAttempt { id, attempt, superblock: entry.superblock });
            } else {
                flash.release(&entry.superblock);
            }
        });
        if known.is_none() {
            let copies = SmallVec::from_slice(&[entry.superblock]);
            directory.insert(id, Place { copies, on_log, attempt, is_half: false });
            claims.insert(id, Claim::new(attempt, copy));
            found.push(Found { id, kind });
        }
    }
    for (id, claim) in claims {
        if let [Some(_)] = claim.numbers[..] {
            directory.change(id, |place| place.is_half = true);
        }
    }
    found
}
