//! From the headers found to a unit: which superblocks live, which are free, how worn the blocks are.

use crate::blocks::BlockTable;
use crate::header::{Decoded, Header};
use crate::layout::Layout;
use crate::mount::{DamagedSuperblock, FoundSuperblock, Inventory};
use crate::policy::bad_block::{Draft, give_up};
use crate::superblock::Superblock;
use crate::unit::{State, Unit};
use softflash_base::planted::{self, Bug};
use softflash_base::{Time, UnitId};

/// Generations skipped at every mount: more than can be under way, with no header on the flash yet, when
/// the power is cut.
const GENERATION_STRIDE: u64 = 1 << 17;

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

/// What a superblock turns out to be.
enum Verdict<'a> {
    /// Nothing that an owner could miss.
    Free,
    Live(&'a Header),
    /// Opened, by whom is unknown. With the erase header, where that is whole.
    Damaged(Option<&'a Header>, &'a str),
}

impl Finding {
    /// The block in a seat, as far as the erase header tells, otherwise the one of the same index.
    pub fn block(&self, seat: u32, index: u32) -> u32 {
        match &self.erase {
            Decoded::Valid(header) => header.blocks[seat as usize].block,
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
            // Erased since it was opened; an erase need not blank the pages of every device.
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
            _ => Verdict::Free,
        }
    }
}

/// Builds a unit from what its flash tells and adds what it holds to the inventory.
pub(crate) fn recover(
    id: UnitId,
    layout: &Layout,
    bad: &[(u8, u8, u32)],
    findings: Vec<Finding>,
    now: Time,
    inventory: &mut Inventory,
) -> Unit {
    let (seats, superblocks) = (layout.seats(), layout.blocks_per_plane);
    let mut blocks = BlockTable::new(seats, superblocks);
    for (die, plane, block) in bad {
        blocks.mark_bad(u32::from(*die) * layout.planes + u32::from(*plane), *block);
    }
    let newest = recover_wear(&mut blocks, &findings);

    let mut unit = Unit::new(id, blocks, superblocks, layout.dies, now);
    unit.next_generation = newest + GENERATION_STRIDE;
    unit.damaged_headers = findings.iter().map(Finding::damaged_headers).sum();
    for header in findings.iter().flat_map(Finding::headers) {
        unit.note_header(header.blocks[0].block, header.generation);
    }

    let mut free = Vec::new();
    let mut live: Vec<(u32, Verdict<'_>)> = Vec::new();
    for (index, finding) in (0_u32..).zip(&findings) {
        match finding.verdict() {
            Verdict::Free if finding.lead_bad => {}
            Verdict::Free => free.push(index),
            // A lead that was bad from the start cannot even be read.
            Verdict::Damaged(..) if finding.lead_bad => {}
            verdict => live.push((index, verdict)),
        }
    }
    adopt(&mut unit, seats, layout.payload_pages(), &live, inventory);
    for (index, verdict) in &live {
        let erase = findings.get(*index as usize).map(|finding| &finding.erase);
        if let (Verdict::Live(header), Some(Decoded::Damaged(reason))) = (verdict, erase) {
            let superblock = Superblock { unit: id, index: *index, generation: header.generation };
            let lost = DamagedSuperblock { superblock, reason: reason.clone() };
            inventory.erase_headers_lost.push(lost);
        }
    }
    compose(&mut unit, seats, &free);
    unit
}

/// Takes erase counts from the headers; returns the greatest generation found.
fn recover_wear(blocks: &mut BlockTable, findings: &[Finding]) -> u64 {
    let (mut newest, mut highest, mut unused_from) = (0, 0, 0);
    for header in findings.iter().flat_map(Finding::headers) {
        newest = newest.max(header.generation);
        if planted::bug(Bug::WearLost) {
            continue;
        }
        highest = highest.max(header.highest_erase_count);
        unused_from = unused_from.max(header.unused_from);
        for (seat, record) in (0_u32..).zip(&header.blocks) {
            blocks.recover_erase_count(seat, record.block, record.erase_count);
        }
    }
    blocks.assume_unknown_wear(highest, unused_from);
    newest
}

/// Gives the superblocks that hold data their blocks, the youngest first: where two claim a block, it
/// was taken from the older one after its release.
fn adopt(
    unit: &mut Unit,
    seats: u32,
    payload_pages: u32,
    live: &[(u32, Verdict<'_>)],
    inventory: &mut Inventory,
) {
    let header = |verdict: &Verdict<'_>| match verdict {
        Verdict::Live(header) | Verdict::Damaged(Some(header), _) => Some((*header).clone()),
        Verdict::Damaged(None, _) | Verdict::Free => None,
    };
    let mut youngest_first: Vec<(u32, Option<Header>)> =
        live.iter().map(|(index, verdict)| (*index, header(verdict))).collect();
    youngest_first
        .sort_by_key(|(_, header)| std::cmp::Reverse(header.as_ref().map(|h| h.generation)));
    for (index, header) in youngest_first {
        for seat in 0..seats {
            let block = header.as_ref().map_or(index, |header| header.blocks[seat as usize].block);
            unit.blocks.assign_for_reading(index, seat, block);
        }
        unit.refresh_wear(index);
        unit.set_state(index, State::Live);
        let fresh = unit.next_generation;
        let slot = unit.slot_mut(index);
        slot.written_pages = payload_pages;
        (slot.erased, slot.ready, slot.opened) = (true, true, true);
        slot.generation = header.as_ref().map_or(fresh, |header| header.generation);
        unit.next_generation += u64::from(header.is_none());
    }
    for (index, verdict) in live {
        let generation = unit.slot(*index).generation;
        let superblock = Superblock { unit: unit.id, index: *index, generation };
        match verdict {
            Verdict::Live(Header { opening: Some((stream, tag)), .. }) => inventory
                .superblocks
                .push(FoundSuperblock { superblock, tag: *tag, stream: *stream }),
            Verdict::Damaged(_, reason) => inventory
                .damaged
                .push(DamagedSuperblock { superblock, reason: (*reason).to_owned() }),
            Verdict::Live(_) | Verdict::Free => {
                unreachable!("only opening headers make a superblock live")
            }
        }
    }
}

/// Makes superblocks of the free blocks.
fn compose(unit: &mut Unit, seats: u32, free: &[u32]) {
    let mut drafts = Vec::with_capacity(free.len());
    for index in free {
        let own = |seat: u32| {
            let spare = unit.blocks.state(seat, *index) == crate::blocks::BlockUse::Spare;
            spare.then_some(*index)
        };
        let draft = Draft { index: *index, seats: (0..seats).map(own).collect() };
        for (seat, block) in (0_u32..).zip(&draft.seats) {
            if let Some(block) = block {
                unit.blocks.assign(*index, seat, *block);
            }
        }
        drafts.push(draft);
    }
    let spares: Vec<usize> = (0..seats).map(|seat| unit.blocks.count_spares(seat)).collect();
    let (kept, given_up) = give_up(drafts, &spares);
    for draft in &given_up {
        unit.blocks.dissolve(draft.index);
    }
    for draft in &kept {
        let complete = unit.blocks.complete(draft.index);
        assert!(complete, "spares of unit {} were counted and are missing", unit.id);
        unit.refresh_wear(draft.index);
        unit.set_state(draft.index, State::Reclaimable);
    }
    unit.blocks.check();
}
