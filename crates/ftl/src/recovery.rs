//! Recovers a unit from its headers: live superblocks, free superblocks, and the wear of the
//! blocks.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use crate::blocks::{BlockTable, BlockUse};
use crate::header::{Decoded, Header, Purpose};
use crate::inventory::{DamagedSuperblock, FoundSuperblock, Inventory, KeptSuperblock};
use crate::owners::{Owners, Ownership};
use crate::policy::bad_block::{Draft, fit_to_spares};
use crate::slots::State;
use crate::superblock::{FtlError, Owner, Superblock};
use crate::unit::Unit;
use softflash_base::UnitId;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};

/// Generations skipped at every mount: more than can be in flight without a header on the flash
/// when the power is cut.
const GENERATION_STRIDE: u64 = 1 << 17;

/// Why the owner is asked about a superblock that was erased and has something else than an opening
/// header in the place of it.
const FOREIGN: &str = "the page of the opening header holds something else";

/// Why the owner is asked about a superblock that has no opening header, and is not blank.
const UNCLAIMED: &str = "there is no opening header";

/// The two header pages of a superblock.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub lead_bad: bool,
    pub erase: Decoded,
    pub opening: Decoded,
}

impl Default for Finding {
    fn default() -> Finding {
        Finding { lead_bad: false, erase: Decoded::Blank, opening: Decoded::Blank }
    }
}

/// The state of a superblock according to its headers.
enum Verdict<'a> {
    /// No acknowledged data.
    Free,
    Live(&'a Header),
    /// Opened, and its owner is unknown. With the erase header, if that is whole.
    Damaged(Option<&'a Header>, &'a str),
    /// Free, unless its headers were written over. With the erase header, if that is whole.
    Unclaimed(Option<&'a Header>),
}

impl Finding {
    /// The block in a stripe column according to the erase header; without one, the block of the
    /// same index.
    pub fn block(&self, column: u32, index: u32) -> u32 {
        match &self.erase {
            Decoded::Valid(header) => header.blocks[cast::index(column)].block,
            _ => index,
        }
    }

    fn headers(&self) -> impl Iterator<Item = &Header> {
        [&self.erase, &self.opening].into_iter().filter_map(|decoded| match decoded {
            Decoded::Valid(header) => Some(header),
            _ => None,
        })
    }

    fn damaged_headers(&self) -> u32 {
        [&self.erase, &self.opening]
            .map(|page| u32::from(matches!(page, Decoded::Damaged(_))))
            .iter()
            .sum()
    }

    fn verdict(&self) -> Verdict<'_> {
        match (&self.erase, &self.opening) {
            // Erased after it was opened. On some devices an erase leaves the old pages in place.
            (Decoded::Valid(erase), Decoded::Valid(opening))
                if erase.generation > opening.generation =>
            {
                Verdict::Free
            }
            (_, Decoded::Valid(opening)) => Verdict::Live(opening),
            (Decoded::Valid(erase), Decoded::Damaged(reason)) => {
                Verdict::Damaged(Some(erase), reason)
            }
            (_, Decoded::Damaged(reason)) => Verdict::Damaged(None, reason),
            // Mostly left from an earlier use of the medium, in a superblock that was erased ahead.
            // But the page may also have been written over, and then the superblock has data.
            (Decoded::Valid(erase), Decoded::Foreign | Decoded::OfUnit(_)) => {
                Verdict::Damaged(Some(erase), FOREIGN)
            }
            (Decoded::Valid(erase), _) => Verdict::Unclaimed(Some(erase)),
            (Decoded::Blank, Decoded::Blank) => Verdict::Free,
            _ => Verdict::Unclaimed(None),
        }
    }
}

/// Brings a new unit of an owner into the state of its findings and adds its superblocks to the
/// inventory.
pub(crate) fn recover(
    unit: &mut Unit,
    owners: &Owners,
    bad: &[(u8, u8, u32)],
    findings: &[Finding],
    inventory: &mut Inventory,
) -> Result<(), FtlError> {
    let id = unit.id();
    refuse_another_unit(id, findings)?;
    for (die, plane, block) in bad {
        let column = unit.layout().column_of_block(*die, *plane);
        unit.blocks.mark_bad(column, *block);
    }
    let newest = recover_wear(&mut unit.blocks, findings);
    let next_generation = generation_after_mount(id, newest)?;
    let headers = findings.iter().flat_map(Finding::headers);
    let void_below = headers.map(|header| header.void_below).max().unwrap_or(0);
    let damaged_headers = findings.iter().map(Finding::damaged_headers).sum();
    unit.note_mount(next_generation, void_below, damaged_headers);
    for header in findings.iter().flat_map(Finding::headers) {
        unit.note_header(header.blocks[0].block, header.generation);
    }

    let Ownership { owner, asks_about_unclaimed } = owners.of(id);
    unit.set_owner(owner);
    let verdicts: Vec<Verdict<'_>> = findings.iter().map(Finding::verdict).collect();
    // A table of sets gives a unit to an owner when all of it is erased: the header of another one,
    // or one from before, is that of a bad block, or was left in place by an erase whose own header
    // is torn.
    let is_void =
        |verdict: &Verdict<'_>| matches!(verdict, Verdict::Live(it) if it.generation < void_below);
    let is_left = |verdict: &Verdict<'_>| {
        is_void(verdict) || owners.have_table() && is_of_another(verdict, owner)
    };
    let is_shared =
        !owners.have_table() && verdicts.iter().any(|verdict| is_of_another(verdict, owner));
    let asks = asks_about_unclaimed && !is_shared;
    let mut free = Vec::new();
    let mut live: Vec<(u32, Verdict<'_>)> = Vec::new();
    for ((index, finding), verdict) in (0_u32..).zip(findings).zip(verdicts) {
        match verdict {
            // A lead block that was bad from the start cannot be read.
            Verdict::Free | Verdict::Damaged(..) | Verdict::Unclaimed(_) if finding.lead_bad => {}
            verdict if is_left(&verdict) && finding.lead_bad => {}
            verdict if is_left(&verdict) => free.push(index),
            Verdict::Free => free.push(index),
            Verdict::Unclaimed(_) if !asks => free.push(index),
            verdict => live.push((index, verdict)),
        }
    }
    adopt(unit, &live);
    list(unit, owner, is_shared, &live, inventory);
    for (index, verdict) in &live {
        let erase = findings.get(cast::index(*index)).map(|finding| &finding.erase);
        if let (Verdict::Live(header), Some(Decoded::Damaged(reason))) = (verdict, erase)
            && header.opening.is_some_and(|purpose| purpose.owner == owner)
        {
            let superblock = Superblock { unit: id, index: *index, generation: header.generation };
            let reason = reason.clone();
            let lost = DamagedSuperblock { superblock, has_generation: true, reason };
            inventory.erase_headers_lost.push(lost);
        }
    }
    compose(unit, &free);
    unit.check_generations();
    Ok(())
}

/// Fails where a superblock was opened by a newer table of sets than the one that is there, which
/// may give the unit to another owner. An erased superblock counts, too.
pub(crate) fn refuse_older_table(
    unit: UnitId,
    epoch: u32,
    findings: &[Finding],
) -> Result<(), FtlError> {
    let openings = findings.iter().flat_map(Finding::headers).filter_map(|header| header.opening);
    match openings.map(|purpose| purpose.epoch).max() {
        Some(found) if found > epoch => Err(FtlError::OlderTable { unit, found, epoch }),
        _ => Ok(()),
    }
}

/// Fails where the contents are those of another unit: it would be taken for empty, and written
/// over.
fn refuse_another_unit(id: UnitId, findings: &[Finding]) -> Result<(), FtlError> {
    let named = |decoded: &Decoded| match decoded {
        Decoded::OfUnit(unit) => Some(*unit),
        _ => None,
    };
    let decoded = || findings.iter().flat_map(|finding| [&finding.erase, &finding.opening]);
    let Some(other) = decoded().find_map(named) else { return Ok(()) };
    if decoded().any(|decoded| matches!(decoded, Decoded::Valid(_))) {
        return Ok(());
    }
    let reason = format!(
        "it holds the superblocks of unit {}: put the contents of the units in their places",
        UnitId(other)
    );
    Err(FtlError::Damaged { unit: id, reason })
}

/// The first generation after a mount that found `newest`. Generations must rise with every erase,
/// so a header whose generation leaves none for later erases is an error.
fn generation_after_mount(unit: UnitId, newest: u64) -> Result<u64, FtlError> {
    match newest.checked_add(GENERATION_STRIDE) {
        Some(next) if next < u64::MAX - GENERATION_STRIDE => Ok(next),
        _ => {
            let reason = format!("generation {newest} of a header is out of range");
            Err(FtlError::Damaged { unit, reason })
        }
    }
}

/// Sets erase counts from the headers; returns the greatest generation found.
fn recover_wear(blocks: &mut BlockTable, findings: &[Finding]) -> u64 {
    let (mut newest, mut highest, mut unused_from) = (0, 0, 0);
    for header in findings.iter().flat_map(Finding::headers) {
        newest = newest.max(header.generation);
        if planted::bug(Bug::WearLost) {
            continue;
        }
        highest = highest.max(header.highest_erase_count);
        unused_from = unused_from.max(header.unused_from);
        for (column, record) in (0_u32..).zip(&header.blocks) {
            blocks.recover_erase_count(column, record.block, record.erase_count);
        }
    }
    blocks.assume_unknown_wear(highest, unused_from);
    newest
}

/// Assigns blocks to the superblocks that have data, the newest first: if two headers name a block,
/// the newer superblock took it after the older one was released.
fn adopt(unit: &mut Unit, live: &[(u32, Verdict<'_>)]) {
    let (columns, payload_pages) = (unit.layout().columns(), unit.layout().payload_pages());
    let header = |verdict: &Verdict<'_>| match verdict {
        Verdict::Live(header)
        | Verdict::Damaged(Some(header), _)
        | Verdict::Unclaimed(Some(header)) => Some((*header).clone()),
        Verdict::Damaged(None, _) | Verdict::Unclaimed(None) | Verdict::Free => None,
    };
    let mut newest_first: Vec<(u32, Option<Header>)> =
        live.iter().map(|(index, verdict)| (*index, header(verdict))).collect();
    newest_first
        .sort_by_key(|(_, header)| std::cmp::Reverse(header.as_ref().map(|h| h.generation)));
    if planted::bug(Bug::OldestHeaderWins) {
        newest_first.reverse();
    }
    for (index, header) in newest_first {
        for column in 0..columns {
            let block =
                header.as_ref().map_or(index, |header| header.blocks[cast::index(column)].block);
            unit.blocks.assign_for_reading(index, column, block);
        }
        unit.refresh_wear(index);
        unit.set_state(index, State::Live);
        let generation = match header {
            Some(header) => header.generation,
            None => unit.take_generation(),
        };
        unit.slot_mut(index).continue_life(generation, payload_pages);
    }
}

/// Whether a superblock has data of another owner.
fn is_of_another(verdict: &Verdict<'_>, owner: Owner) -> bool {
    match verdict {
        Verdict::Live(header) => header.opening.is_some_and(|purpose| purpose.owner != owner),
        Verdict::Damaged(..) | Verdict::Unclaimed(_) | Verdict::Free => false,
    }
}

/// Adds the superblocks with data to the inventory of `owner`. The unit is shared if others have
/// superblocks in it.
fn list(
    unit: &Unit,
    owner: Owner,
    is_shared: bool,
    live: &[(u32, Verdict<'_>)],
    inventory: &mut Inventory,
) {
    for (index, verdict) in live {
        let superblock = unit.superblock(*index);
        match verdict {
            Verdict::Live(Header { opening: Some(Purpose { stream, tag, .. }), .. })
                if !is_of_another(verdict, owner) =>
            {
                let (tag, stream) = (*tag, *stream);
                inventory.superblocks.push(FoundSuperblock { superblock, tag, stream });
            }
            Verdict::Live(Header { opening: Some(purpose), .. }) => {
                let owner = Some(purpose.owner);
                inventory.of_others.push(KeptSuperblock { superblock, owner });
            }
            Verdict::Damaged(..) if is_shared => {
                inventory.of_others.push(KeptSuperblock { superblock, owner: None });
            }
            Verdict::Damaged(header, reason) => {
                let (has_generation, reason) = (header.is_some(), (*reason).to_owned());
                let damaged = DamagedSuperblock { superblock, has_generation, reason };
                inventory.damaged.push(damaged);
            }
            Verdict::Unclaimed(header) => {
                let (has_generation, reason) = (header.is_some(), UNCLAIMED.to_owned());
                let unclaimed = DamagedSuperblock { superblock, has_generation, reason };
                inventory.unclaimed.push(unclaimed);
            }
            Verdict::Live(_) | Verdict::Free => {
                unreachable!("a superblock is live without an opening header")
            }
        }
    }
}

/// Composes superblocks of the free blocks.
fn compose(unit: &mut Unit, free: &[u32]) {
    let columns = unit.layout().columns();
    let mut drafts = Vec::with_capacity(free.len());
    for index in free {
        let own = |column: u32| {
            let spare = unit.blocks.state(column, *index) == BlockUse::Spare;
            spare.then_some(*index)
        };
        let draft = Draft { index: *index, columns: (0..columns).map(own).collect() };
        for (column, block) in (0_u32..).zip(&draft.columns) {
            if let Some(block) = block {
                unit.blocks.assign(*index, column, *block);
            }
        }
        drafts.push(draft);
    }
    let spares: Vec<usize> = (0..columns).map(|column| unit.blocks.count_spares(column)).collect();
    let (kept, dropped) = fit_to_spares(drafts, &spares);
    for draft in &dropped {
        unit.blocks.dissolve(draft.index);
    }
    for draft in &kept {
        let complete = unit.blocks.complete(draft.index);
        assert!(complete, "unit {}: spares were counted and are missing", unit.id());
        unit.refresh_wear(draft.index);
        unit.set_state(draft.index, State::ErasePending);
    }
    unit.blocks.check();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_none_can_follow_is_an_error() {
        let next = |newest| generation_after_mount(UnitId(3), newest);
        assert_eq!(next(77), Ok(77 + GENERATION_STRIDE));
        for newest in [u64::MAX, u64::MAX - GENERATION_STRIDE, u64::MAX - 2 * GENERATION_STRIDE] {
            let error = next(newest).unwrap_err();
            assert!(matches!(error, FtlError::Damaged { unit: UnitId(3), .. }), "{error}");
        }
    }
}
