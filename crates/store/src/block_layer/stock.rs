//! Taking stock: which blocks the superblocks of mounted flash hold, and which of them are copies of each other.

use super::tag::{self, BlockId, BlockKind, Tag};
use crate::driver::Flash;
use hashbrown::HashMap;
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_ftl::{Inventory, Superblock};

/// The superblocks of a block, one a copy.
pub(super) type Copies = SmallVec<[Superblock; 2]>;

/// Where a block is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) copies: Copies,
    pub(super) on_log: bool,
    /// How often writing it was tried before.
    pub(super) attempt: u8,
    /// The mount found one of two copies. The other was lost; or a cut came before both were begun, and nothing that is in
    /// the one was acknowledged.
    pub(super) is_half: bool,
}

/// A block that was found on the flash when it was mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: BlockId,
    /// What it holds.
    pub kind: BlockKind,
}

/// Who claims to be a block.
struct Claim {
    attempt: u8,
    /// Which copies were found, by their numbers in the tags.
    numbers: SmallVec<[Option<u8>; 2]>,
}

/// Enters the blocks of mounted flash into the table. Where several superblocks claim one id, those of the last attempt
/// count, one for each copy; the others are released. A start that could not read the header of one, and found no log that
/// counts, gives its id once more: of two on one unit the younger counts.
pub(super) fn take_stock(
    flash: &Flash,
    inventory: &Inventory,
    on_log: bool,
    blocks: &mut HashMap<BlockId, Place>,
) -> Vec<Found> {
    let mut claims: HashMap<BlockId, Claim> = HashMap::new();
    let mut found = Vec::new();
    for entry in &inventory.superblocks {
        let Some(Tag { id, kind, attempt, copy }) = tag::decode(&entry.tag) else {
            // Not ours, or of a layer that no longer exists: nobody can ask for it.
            flash.release(&entry.superblock);
            continue;
        };
        let Some(known) = blocks.get_mut(&id) else {
            let copies = SmallVec::from_slice(&[entry.superblock]);
            blocks.insert(id, Place { copies, on_log, attempt, is_half: false });
            claims.insert(id, Claim { attempt, numbers: SmallVec::from_slice(&[copy]) });
            found.push(Found { id, kind });
            continue;
        };
        let is_older = |other: &Superblock| {
            let Superblock { unit, generation, .. } = entry.superblock;
            other.unit == unit && other.generation < generation
        };
        let is_given_again = copy.is_none() && known.copies.iter().all(is_older);
        let claim = claims
            .entry(id)
            .or_insert_with(|| Claim { attempt, numbers: SmallVec::from_slice(&[copy]) });
        if attempt == claim.attempt && !claim.numbers.contains(&copy) {
            known.copies.push(entry.superblock);
            claim.numbers.push(copy);
        } else if (attempt > claim.attempt) != planted::bug(Bug::FailedAttemptKept)
            || attempt == claim.attempt && is_given_again
        {
            known.copies.drain(..).for_each(|older| {
                flash.release(&older);
            });
            known.copies.push(entry.superblock);
            known.attempt = attempt;
            *claim = Claim { attempt, numbers: SmallVec::from_slice(&[copy]) };
        } else {
            flash.release(&entry.superblock);
        }
    }
    for (id, claim) in claims {
        if let (Some(place), [Some(_)]) = (blocks.get_mut(&id), &claim.numbers[..]) {
            place.is_half = true;
        }
    }
    found
}
