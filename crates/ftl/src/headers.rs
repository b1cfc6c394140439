//! Writes the headers of a superblock, and reads opening headers of log segments and of mapped
//! domains back before any append behind them is acknowledged.
//!
//! A device may acknowledge a program that it did not execute, or executed elsewhere. A missing
//! patch is detected through the tree that refers to it, a missing log page through the frames
//! behind it. The newest log segment is referred to by its opening header alone: without it the
//! superblock looks free, and acknowledged writes are lost without an error. One read per segment
//! prevents that.

use crate::commands::Commands;
use crate::header::{
    ColumnRecord, Decoded, Header, HeaderKind, HeaderPlace, Purpose, decode, encode, named_stream,
};
use crate::op::{Next, Op, Work};
use crate::scheduler::{OpKind, QueueClass};
use crate::slots::State;
use crate::stream::Stream;
use crate::superblock::Owner;
use crate::unit::{Opening, Unit};
use softflash_base::planted::{self, Bug};
use softflash_base::{BufferPool, IoBuf, Time, cast};
use softflash_device::{Completion, DeviceError, Hint, Origin, Priority};

/// Encodes and writes the headers of a device.
pub(crate) struct Headers {
    device_uuid: u128,
    /// The epoch of the table of sets.
    epoch: u32,
    pool: BufferPool,
}

impl Headers {
    pub fn new(device_uuid: u128, epoch: u32, pool: BufferPool) -> Headers {
        Headers { device_uuid, epoch, pool }
    }

    /// Writes the erase header once all blocks are erased. The header is durable, and no other page
    /// is programmed before it. So a mount finds every life that has data, and no generation is
    /// used twice.
    pub fn write_erase_header(
        &self,
        unit: &mut Unit,
        commands: &mut Commands,
        now: Time,
        index: u32,
    ) {
        unit.refresh_wear(index);
        unit.slot_mut(index).note_erased();
        let priority = match unit.slot(index).state() {
            State::Open | State::Live => Priority::Foreground,
            // Also if it was released meanwhile: the header records the erase.
            _ => Priority::Background,
        };
        let hint = Hint::HEADER.at(priority);
        let mut header = header_op(unit, now, index, Work::EraseHeader, hint);
        header.data = Some(self.encode(unit, index, None));
        header.durable = true;
        commands.add(unit, header);
    }

    /// Programs the opening header with the first append, which has this hint: they have one
    /// lifetime.
    pub fn write_opening_header(
        &self,
        unit: &mut Unit,
        commands: &mut Commands,
        now: Time,
        index: u32,
        durable: bool,
        hint: Hint,
    ) {
        let slot = unit.slot_mut(index);
        if !slot.note_opened(durable) {
            return;
        }
        let ready = slot.is_ready();
        let mut header = header_op(unit, now, index, Work::OpeningHeader, hint.of(Origin::Header));
        header.durable = durable && !planted::bug(Bug::HeaderNotForced);
        // The blocks are final once they are erased.
        header.data = ready.then(|| self.encode_opening(unit, index));
        commands.add_program(unit, header);
    }

    /// Handles a header that the device reports as programmed; `page` is the data of the program.
    pub fn programmed(
        &self,
        unit: &mut Unit,
        commands: &mut Commands,
        now: Time,
        op: &Op,
        page: Option<IoBuf>,
    ) -> Next {
        let is_opening = op.work == Work::OpeningHeader;
        // A mapped domain refers to none of its superblocks until the next root.
        let owner = unit.owner();
        let read_back =
            |page: &IoBuf| owner != Owner::BLOCKS || named_stream(page) == Some(Stream::Log);
        match page.filter(|page| is_opening && read_back(page)) {
            None => self.written(unit, commands, now, op),
            Some(buffer) => {
                let class = QueueClass::new(OpKind::Read, Priority::Foreground);
                let read = Op { work: Work::Verification, data: Some(buffer), class, ..*op };
                commands.add(unit, read);
                Next::Nothing
            }
        }
    }

    /// Handles a header that was read back.
    pub fn read_back(
        &self,
        unit: &mut Unit,
        commands: &mut Commands,
        now: Time,
        op: &Op,
        completion: Completion,
    ) -> Next {
        match (completion.result, completion.buffer) {
            (Err(error @ (DeviceError::Io { .. } | DeviceError::DeadDie)), _) => {
                Next::HeaderLost(error)
            }
            (Ok(()), Some(page)) if self.is_opening_header(unit, op.index, &page) => {
                self.written(unit, commands, now, op)
            }
            _ => Next::HeaderLost(DeviceError::ProgramFailed),
        }
    }

    /// Handles a header page that is now on the flash.
    fn written(&self, unit: &mut Unit, commands: &mut Commands, now: Time, op: &Op) -> Next {
        let index = op.index;
        let slot = unit.slot_mut(index);
        let all = slot.header_written();
        if op.work == Work::EraseHeader {
            slot.note_ready();
            let generation = slot.generation();
            unit.note_header(index, generation);
            unit.blocks.erases_recorded(index);
            self.queue_held(unit, commands, index);
        }
        if unit.slot(index).state() == State::Erasing {
            unit.set_state(index, State::Erased);
            unit.note_supply(now);
        }
        if all { Next::EndHeaderWaits } else { Next::Nothing }
    }

    /// Queues the programs that were held until the superblock could be programmed. Their targets
    /// are computed again, because a block may have been replaced meanwhile.
    fn queue_held(&self, unit: &mut Unit, commands: &mut Commands, index: u32) {
        for id in commands.take_held(unit.place(), index) {
            let op = commands.op_mut(id);
            op.target = unit.target(index, op.run());
            if op.work == Work::OpeningHeader {
                op.data = Some(self.encode_opening(unit, index));
            }
            commands.enqueue(unit, id);
        }
    }

    fn is_opening_header(&self, unit: &Unit, index: u32, page: &[u8]) -> bool {
        match self.decode(unit, HeaderKind::Opening, index, page) {
            Decoded::Valid(header) => header.generation == unit.slot(index).generation(),
            _ => false,
        }
    }

    fn encode_opening(&self, unit: &mut Unit, index: u32) -> IoBuf {
        let opening = unit.take_opening(index);
        self.encode(unit, index, Some(&opening))
    }

    /// The page of a header. It must decode to the header that it was encoded from, as a mount
    /// would read it.
    fn encode(&self, unit: &Unit, index: u32, opening: Option<&Opening>) -> IoBuf {
        let blocks = (0_u32..).zip(unit.blocks.blocks_of(index)).map(|(column, block)| {
            let erase_count = unit.blocks.erase_count(column, *block);
            ColumnRecord { block: *block, erase_count }
        });
        let header = Header {
            generation: unit.slot(index).generation(),
            highest_erase_count: unit.blocks.highest_erase_count(),
            unused_from: unit.blocks.unused_from(),
            void_below: if opening.is_none() { unit.void_below() } else { 0 },
            blocks: blocks.collect(),
            opening: opening.map(|opening| self.purpose(unit.owner(), opening)),
        };
        let mut page = self.pool.take(cast::index(unit.layout().page_bytes));
        encode(self.place(unit, index), &header, &mut page);
        let decoded = self.decode(unit, header.kind(), index, &page);
        assert!(
            matches!(&decoded, Decoded::Valid(read) if *read == header),
            "unit {}: a header of superblock {index} decodes to {decoded:?}",
            unit.id()
        );
        page
    }

    fn purpose(&self, owner: Owner, opening: &Opening) -> Purpose {
        Purpose { stream: opening.stream, owner, tag: opening.tag, epoch: self.epoch }
    }

    fn decode(&self, unit: &Unit, kind: HeaderKind, index: u32, page: &[u8]) -> Decoded {
        let layout = unit.layout();
        let place = self.place(unit, index);
        decode(kind, place, layout.columns(), layout.blocks_per_plane, page)
    }

    fn place(&self, unit: &Unit, index: u32) -> HeaderPlace {
        HeaderPlace { device_uuid: self.device_uuid, unit: unit.id().0, index }
    }
}

/// The program of a header, without its data.
fn header_op(unit: &Unit, now: Time, index: u32, work: Work, hint: Hint) -> Op {
    let class = QueueClass::new(OpKind::Program, hint.priority);
    let page = u32::from(work == Work::OpeningHeader);
    let target = unit.target(index, unit.layout().run(page, 1));
    let unit = unit.place();
    Op { work, unit, index, target, data: None, durable: false, class, hint, since: now }
}
