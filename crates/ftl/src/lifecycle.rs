//! The states of a superblock: erased, allocated, opened, sealed, released.

use crate::convert::to_u8;
use crate::ftl::Ftl;
use crate::header::{ColumnRecord, Decoded, Header, HeaderPlace, decode, encode};
use crate::hint::{Hint, Priority};
use crate::layout::Run;
use crate::policy::wear;
use crate::request::{Op, Work};
use crate::scheduler::{OpKind, QueueClass};
use crate::superblock::{FtlError, OwnerTag, Superblock};
use crate::unit::{Opening, State};
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time, UnitId};

impl Ftl {
    /// Allocates the least worn free superblock of a unit, an erased one among equals. `tag` and
    /// the stream of the hint are stored in its opening header. Never blocks: an erase that is
    /// still due is executed before the programs of the superblock.
    ///
    /// # Errors
    /// [`NoSpace`](FtlError::NoSpace) if no superblock is free or the unit is worn out,
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn allocate(
        &mut self,
        now: Time,
        unit: UnitId,
        tag: OwnerTag,
        hint: Hint,
    ) -> Result<Superblock, FtlError> {
        let place = self.place(unit)?;
        if self.units[place].space().is_worn_out() {
            return Err(FtlError::NoSpace { unit });
        }
        let Some(chosen) = self.units[place].choose() else {
            return Err(FtlError::NoSpace { unit });
        };
        let class = QueueClass::new(OpKind::Program, hint.priority);
        match chosen.readiness {
            wear::Readiness::Erased => {}
            wear::Readiness::Erasing => self.promote(place, chosen.index, class),
            wear::Readiness::ErasePending => self.start_erase(now, place, chosen.index, class),
        }
        let state = &mut self.units[place];
        state.set_state(chosen.index, State::Open);
        state.openings.push(Opening { index: chosen.index, stream: hint.stream, tag });
        state.note_shortage(now, self.config.erased_target);
        self.run_queues(now);
        Ok(self.superblock(place, chosen.index))
    }

    /// Ends the appends to a superblock; those under way continue. Returns false if the handle is
    /// stale.
    pub fn seal(&mut self, superblock: &Superblock) -> bool {
        let Ok(unit) = self.locate(superblock) else { return false };
        if self.units[unit].slot(superblock.index).state == State::Open {
            self.units[unit].set_state(superblock.index, State::Live);
        }
        true
    }

    /// Releases a superblock. It is erased after all its commands have ended. Appends that have not
    /// reached the device fail. Returns false and does nothing if the handle is stale.
    ///
    /// Until the superblock is used again, a mount can still find it: the owner must record that it
    /// was released.
    pub fn release(&mut self, now: Time, superblock: &Superblock) -> bool {
        let Ok(unit) = self.locate(superblock) else { return false };
        let index = superblock.index;
        self.units[unit].set_state(index, State::Releasing);
        if !self.units[unit].slot(index).ready {
            self.fail_waiters(now, unit, index, &FtlError::Stale { superblock: *superblock });
        }
        self.settle(now, unit, index);
        self.run_queues(now);
        true
    }

    /// Begins a new life of a superblock: erases its blocks, all planes of a die at once.
    pub(crate) fn start_erase(&mut self, now: Time, unit: usize, index: u32, class: QueueClass) {
        let planes = self.layout.planes;
        let state = &mut self.units[unit];
        let generation = state.next_generation;
        state.next_generation += 1;
        let slot = state.slot_mut(index);
        assert!(
            slot.under_way == 0 && !slot.failed,
            "superblock {index} is erased while it is in use"
        );
        assert!(
            generation > slot.generation,
            "superblock {index}: generation {generation} follows {}",
            slot.generation
        );
        slot.generation = generation;
        slot.written_pages = 0;
        slot.erased = false;
        slot.ready = false;
        slot.opened = false;
        slot.header_durable = false;
        slot.headers_pending = 1;
        slot.erases_left = self.layout.dies;
        for die in 0..self.layout.dies {
            self.queue_erase(now, unit, index, die * planes, to_u8(planes), class);
        }
    }

    /// Queues the erase of the blocks in `planes` neighbouring stripe columns of one die.
    pub(crate) fn queue_erase(
        &mut self,
        now: Time,
        unit: usize,
        index: u32,
        column: u32,
        planes: u8,
        class: QueueClass,
    ) {
        let mut run = self.layout.run(column, 1);
        (run.planes, run.page, run.rows) = (planes, 0, 1);
        let target = self.target(unit, index, run);
        let op = self.add_op(Op {
            work: Work::Erase,
            unit,
            index,
            target,
            data: None,
            durable: false,
            class,
            since: now,
        });
        self.enqueue(op);
    }

    /// Writes the erase header once all blocks are erased. The header is durable, and no other page
    /// is programmed before it. So a mount finds every life that has data, and no generation is
    /// used twice.
    pub(crate) fn all_blocks_erased(&mut self, now: Time, unit: usize, index: u32) {
        self.units[unit].refresh_wear(index);
        self.units[unit].slot_mut(index).erased = true;
        let priority = match self.units[unit].slot(index).state {
            State::Open | State::Live => Priority::Foreground,
            // Also if it was released meanwhile: the header records the erase.
            _ => Priority::Background,
        };
        let class = QueueClass::new(OpKind::Program, priority);
        let mut header = self.header_op(now, unit, index, Work::EraseHeader, class);
        header.data = Some(self.encode_header(unit, index, None));
        header.durable = true;
        let header = self.add_op(header);
        self.enqueue(header);
    }

    /// Queues the programs that were held until the superblock could be programmed.
    fn queue_held(&mut self, unit: usize, index: u32) {
        let mut held = std::mem::take(&mut self.units[unit].held);
        held.retain(|op| {
            let ours = self.ops.get(*op).index == index;
            if ours {
                self.queue_held_program(*op);
            }
            !ours
        });
        self.units[unit].held = held;
    }

    /// Queues a held program. Its target is computed again, because a block may have been replaced
    /// meanwhile.
    fn queue_held_program(&mut self, id: u32) {
        let op = self.ops.get(id);
        let (unit, index, work, target) = (op.unit, op.index, op.work, op.target);
        let run = Run {
            die: target.die,
            plane: target.plane,
            planes: target.planes,
            page: target.page,
            rows: target.rows,
        };
        let target = self.target(unit, index, run);
        let opening =
            (work == Work::OpeningHeader).then(|| self.encode_opening_header(unit, index));
        let op = self.ops.get_mut(id);
        op.target = target;
        if opening.is_some() {
            op.data = opening;
        }
        self.enqueue(id);
    }

    /// Programs the opening header with the first append.
    pub(crate) fn write_opening_header(
        &mut self,
        now: Time,
        unit: usize,
        index: u32,
        durable: bool,
        class: QueueClass,
    ) {
        let slot = self.units[unit].slot_mut(index);
        if slot.opened {
            return;
        }
        slot.opened = true;
        slot.header_durable = durable;
        slot.headers_pending += 1;
        let ready = slot.ready;
        let mut header = self.header_op(now, unit, index, Work::OpeningHeader, class);
        header.durable = durable && !planted::bug(Bug::HeaderNotForced);
        // The blocks are final once they are erased.
        header.data = ready.then(|| self.encode_opening_header(unit, index));
        self.add_program(header);
    }

    fn encode_opening_header(&mut self, unit: usize, index: u32) -> IoBuf {
        let openings = &mut self.units[unit].openings;
        let Some(found) = openings.iter().position(|opening| opening.index == index) else {
            unreachable!("superblock {index} was opened and not allocated");
        };
        let opening = openings.swap_remove(found);
        self.encode_header(unit, index, Some(&opening))
    }

    /// The page of a header. It must decode to the header that it was encoded from, as a mount
    /// would read it.
    fn encode_header(&self, unit: usize, index: u32, opening: Option<&Opening>) -> IoBuf {
        let state = &self.units[unit];
        let blocks = (0_u32..).zip(state.blocks.blocks_of(index)).map(|(column, block)| {
            let erase_count = state.blocks.erase_count(column, *block);
            ColumnRecord { block: *block, erase_count }
        });
        let header = Header {
            generation: state.slot(index).generation,
            highest_erase_count: state.blocks.highest_erase_count(),
            unused_from: state.blocks.unused_from(),
            blocks: blocks.collect(),
            opening: opening.map(|opening| (opening.stream, opening.tag)),
        };
        let place = HeaderPlace { device_uuid: self.device_uuid, unit: state.id.0, index };
        let mut page = self.pool.take(cast::index(self.layout.page_bytes));
        encode(place, &header, &mut page);
        let (columns, blocks) = (self.layout.columns(), self.layout.blocks_per_plane);
        let decoded = decode(header.kind(), place, columns, blocks, &page);
        assert!(
            matches!(&decoded, Decoded::Valid(read) if *read == header),
            "unit {}: a header of superblock {index} decodes to {decoded:?}",
            state.id
        );
        page
    }

    /// The program of a header, without its data.
    fn header_op(&self, now: Time, unit: usize, index: u32, work: Work, class: QueueClass) -> Op {
        let page = u32::from(work == Work::OpeningHeader);
        let target = self.target(unit, index, self.layout.run(page, 1));
        Op { work, unit, index, target, data: None, durable: false, class, since: now }
    }

    /// Handles a header page that is now on the flash.
    pub(crate) fn header_written(&mut self, now: Time, op: &Op) {
        let (unit, index) = (op.unit, op.index);
        let state = &mut self.units[unit];
        let slot = state.slot_mut(index);
        slot.headers_pending -= 1;
        let all = slot.headers_pending == 0;
        let generation = slot.generation;
        if op.work == Work::EraseHeader {
            slot.ready = true;
            state.note_header(index, generation);
            state.blocks.erases_recorded(index);
            self.queue_held(unit, index);
        }
        let state = &mut self.units[unit];
        if state.slot(index).state == State::Erasing {
            state.set_state(index, State::Erased);
            state.note_shortage(now, self.config.erased_target);
        }
        if all {
            self.headers_ended(now, unit, index, &Ok(()));
        }
    }

    /// Reports the result to the requests that wait for the headers of a superblock.
    fn headers_ended(&mut self, now: Time, unit: usize, index: u32, result: &Result<(), FtlError>) {
        let mut awaiting = std::mem::take(&mut self.units[unit].awaiting_headers);
        awaiting.retain(|(waits_for, request)| {
            let ours = *waits_for == index;
            if ours {
                self.finish_one(now, *request, result.clone());
            }
            !ours
        });
        self.units[unit].awaiting_headers = awaiting;
    }

    /// Ends all requests and programs that wait for the erase or the headers of a superblock.
    pub(crate) fn fail_waiters(&mut self, now: Time, unit: usize, index: u32, error: &FtlError) {
        self.headers_ended(now, unit, index, &Err(error.clone()));
        let mut held = std::mem::take(&mut self.units[unit].held);
        held.retain(|op| {
            let ours = self.ops.get(*op).index == index;
            if ours {
                self.cancel(now, *op, error.clone());
            }
            !ours
        });
        self.units[unit].held = held;
    }

    /// Reclaims a released superblock once none of its commands is under way.
    pub(crate) fn settle(&mut self, now: Time, unit: usize, index: u32) {
        let slot = self.units[unit].slot(index);
        if slot.state == State::Releasing && slot.under_way == 0 {
            self.reclaim(now, unit, index);
        }
    }

    /// Frees a superblock, with its bad blocks replaced, or takes it out of service if blocks are
    /// missing.
    fn reclaim(&mut self, now: Time, unit: usize, index: u32) {
        let state = &mut self.units[unit];
        state.openings.retain(|opening| opening.index != index);
        state.slot_mut(index).failed = false;
        state.blocks.vacate_lost(index);
        if state.blocks.complete(index) {
            state.refresh_wear(index);
            state.set_state(index, State::ErasePending);
        } else {
            tracing::warn!(
                unit = state.id.0,
                index,
                "superblock out of service: too few good blocks"
            );
            state.blocks.dissolve(index);
            state.set_state(index, State::OutOfService);
            state.return_to_service();
        }
        state.note_shortage(now, self.config.erased_target);
    }
}
