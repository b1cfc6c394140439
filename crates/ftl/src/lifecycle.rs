//! The life of a superblock: erased, allocated, opened, sealed, released.

use crate::ftl::Ftl;
use crate::header::{HeaderFields, HeaderPlace, SeatRecord, encode};
use crate::hint::{Hint, Priority};
use crate::layout::Run;
use crate::policy::wear;
use crate::request::{Op, Work};
use crate::scheduler::{Class, Lane};
use crate::superblock::{FtlError, OwnerTag, Superblock};
use crate::unit::{Opening, State};
use smallvec::SmallVec;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time, UnitId};

impl Ftl {
    /// Takes the least worn free superblock of a unit, prepared ones first among equals, and notes `tag`
    /// and the hint's stream for its opening header. Never blocks: an erase that is still to come goes before
    /// the superblock's programs.
    ///
    /// # Errors
    /// [`NoSpace`](FtlError::NoSpace) where none is free or the unit is worn out,
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
        let lane = Lane::new(Class::Program, hint.priority);
        match chosen.readiness {
            wear::Readiness::Prepared => {}
            wear::Readiness::Preparing => self.promote(place, chosen.index, lane),
            wear::Readiness::Reclaimable => self.start_erase(now, place, chosen.index, lane),
        }
        let state = &mut self.units[place];
        state.set_state(chosen.index, State::Open);
        state.openings.push(Opening { index: chosen.index, stream: hint.stream, tag });
        state.note_shortage(now, self.config.prepared_target);
        self.run_queues(now);
        Ok(self.superblock(place, chosen.index))
    }

    /// Ends the appends to a superblock; those under way continue. False where the handle is stale.
    pub fn seal(&mut self, superblock: &Superblock) -> bool {
        let Ok(unit) = self.locate(superblock) else { return false };
        if self.units[unit].slot(superblock.index).state == State::Open {
            self.units[unit].set_state(superblock.index, State::Live);
        }
        true
    }

    /// Gives a superblock's space back; its erase waits until what is under way has finished. Appends
    /// that have not reached the device are given up. False, and nothing is done, where the handle is stale.
    ///
    /// Until it is used again a mount may still find it: its owner must know that it was released.
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

    /// Begins a new life: erases every block, all planes of a die at once.
    pub(crate) fn start_erase(&mut self, now: Time, unit: usize, index: u32, lane: Lane) {
        let planes = self.layout.planes;
        let state = &mut self.units[unit];
        let generation = state.next_generation;
        state.next_generation += 1;
        let slot = state.slot_mut(index);
        assert!(slot.under_way == 0 && !slot.failed, "an erase while the superblock is in use");
        slot.generation = generation;
        slot.written_pages = 0;
        slot.erased = false;
        slot.ready = false;
        slot.opened = false;
        slot.header_durable = false;
        slot.headers_pending = 1;
        slot.erases_left = self.layout.dies;
        for die in 0..self.layout.dies {
            self.queue_erase(now, unit, index, die * planes, planes as u8, lane);
        }
    }

    /// Queues the erase of the blocks in neighbouring seats of one die.
    pub(crate) fn queue_erase(
        &mut self,
        now: Time,
        unit: usize,
        index: u32,
        seat: u32,
        planes: u8,
        lane: Lane,
    ) {
        let mut run = self.layout.run(seat, 1);
        (run.planes, run.page, run.rows) = (planes, 0, 1);
        let target = self.target(unit, index, run);
        let op = self.add_op(Op {
            work: Work::Erase,
            unit,
            index,
            target,
            data: None,
            durable: false,
            lane,
            since: now,
        });
        self.enqueue(op);
    }

    /// All blocks are erased: writes the erase header. It is durable, and nothing else is programmed before it:
    /// so no life that left data behind is forgotten, nor its generation used again.
    pub(crate) fn erased(&mut self, now: Time, unit: usize, index: u32) {
        self.units[unit].refresh_wear(index);
        self.units[unit].slot_mut(index).erased = true;
        let priority = match self.units[unit].slot(index).state {
            State::Open | State::Live => Priority::Foreground,
            // Also where it was released meanwhile: the header keeps the count of the erase.
            _ => Priority::Background,
        };
        let lane = Lane::new(Class::Program, priority);
        let mut header = self.header_op(now, unit, index, Work::EraseHeader, lane);
        header.data = Some(self.header_page(unit, index, None));
        header.durable = true;
        let header = self.add_op(header);
        self.enqueue(header);
    }

    /// The superblock can be programmed: lets go what waited for that.
    fn let_go_held(&mut self, unit: usize, index: u32) {
        let mut held = std::mem::take(&mut self.units[unit].held);
        held.retain(|op| {
            let ours = self.ops.get(*op).index == index;
            if ours {
                self.let_go(*op);
            }
            !ours
        });
        self.units[unit].held = held;
    }

    /// Queues a program that was held. A block may have been replaced meanwhile, so its
    /// target is worked out anew.
    fn let_go(&mut self, id: u32) {
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
        let opening = (work == Work::OpeningHeader).then(|| self.opening_page(unit, index));
        let op = self.ops.get_mut(id);
        op.target = target;
        if opening.is_some() {
            op.data = opening;
        }
        self.enqueue(id);
    }

    /// Writes the opening header with the first append.
    pub(crate) fn write_opening_header(
        &mut self,
        now: Time,
        unit: usize,
        index: u32,
        durable: bool,
        lane: Lane,
    ) {
        let slot = self.units[unit].slot_mut(index);
        if slot.opened {
            return;
        }
        slot.opened = true;
        slot.header_durable = durable;
        slot.headers_pending += 1;
        let ready = slot.ready;
        let mut header = self.header_op(now, unit, index, Work::OpeningHeader, lane);
        header.durable = durable && !planted::bug(Bug::HeaderNotForced);
        // What it says of the blocks is known when they have been erased.
        header.data = ready.then(|| self.opening_page(unit, index));
        self.add_program(header);
    }

    fn opening_page(&mut self, unit: usize, index: u32) -> IoBuf {
        let openings = &mut self.units[unit].openings;
        let Some(found) = openings.iter().position(|opening| opening.index == index) else {
            unreachable!("superblock {index} is opened and was not allocated");
        };
        let opening = openings.swap_remove(found);
        self.header_page(unit, index, Some(&opening))
    }

    /// A header as it stands on the flash.
    fn header_page(&self, unit: usize, index: u32, opening: Option<&Opening>) -> IoBuf {
        let state = &self.units[unit];
        let blocks: SmallVec<[SeatRecord; 16]> = (0_u32..)
            .zip(state.blocks.blocks_of(index))
            .map(|(seat, block)| SeatRecord {
                block: *block,
                erase_count: state.blocks.erase_count(seat, *block),
            })
            .collect();
        let fields = HeaderFields {
            place: HeaderPlace { device_uuid: self.device_uuid, unit: state.id.0, index },
            generation: state.slot(index).generation,
            highest_erase_count: state.blocks.highest_erase_count(),
            unused_from: state.blocks.unused_from(),
            opening: opening.map(|opening| (opening.stream, &opening.tag)),
        };
        let mut page = self.pool.take(self.layout.page_bytes as usize);
        encode(&fields, blocks.into_iter(), &mut page);
        page
    }

    /// The program of a header, its data still to be filled in.
    fn header_op(&self, now: Time, unit: usize, index: u32, work: Work, lane: Lane) -> Op {
        let page = u32::from(work == Work::OpeningHeader);
        let target = self.target(unit, index, self.layout.run(page, 1));
        Op { work, unit, index, target, data: None, durable: false, lane, since: now }
    }

    /// A header page is on the flash.
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
            self.let_go_held(unit, index);
        }
        let state = &mut self.units[unit];
        if state.slot(index).state == State::Preparing {
            state.set_state(index, State::Prepared);
            state.note_shortage(now, self.config.prepared_target);
        }
        if all {
            self.headers_ended(now, unit, index, &Ok(()));
        }
    }

    /// Tells the requests that waited for the headers of a superblock.
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

    /// Ends everything that waits for the erase or the headers of a superblock.
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

    /// Takes back a released superblock when nothing of it is under way.
    pub(crate) fn settle(&mut self, now: Time, unit: usize, index: u32) {
        let slot = self.units[unit].slot(index);
        if slot.state == State::Releasing && slot.under_way == 0 {
            self.reclaim(now, unit, index);
        }
    }

    /// Makes a superblock free, recomposed without bad blocks, or takes it out of service.
    fn reclaim(&mut self, now: Time, unit: usize, index: u32) {
        let state = &mut self.units[unit];
        state.openings.retain(|opening| opening.index != index);
        state.slot_mut(index).failed = false;
        state.blocks.vacate_lost(index);
        if state.blocks.complete(index) {
            state.refresh_wear(index);
            state.set_state(index, State::Reclaimable);
        } else {
            tracing::warn!(
                unit = state.id.0,
                index,
                "superblock out of service: too few good blocks"
            );
            state.blocks.dissolve(index);
            state.set_state(index, State::OutOfService);
            state.revive();
        }
        state.note_shortage(now, self.config.prepared_target);
    }
}
