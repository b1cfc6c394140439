//! One unit: the lives of its superblocks and what is under way on its dies.

use crate::blocks::BlockTable;
use crate::hint::{Priority, Stream};
use crate::policy::wear::{self, Candidate, Readiness};
use crate::scheduler::{Class, DieQueue, Lane};
use crate::superblock::OwnerTag;
use crate::telemetry::SpaceAccount;
use softflash_base::{Time, UnitId};

/// Where a superblock is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Some seat has no good block.
    OutOfService,
    /// Free, to be erased before use.
    Reclaimable,
    /// Being erased ahead of need.
    Preparing,
    /// Erased, with its erase header.
    Prepared,
    /// Allocated; takes appends.
    Open,
    /// Holds data and takes no more.
    Live,
    /// Released, while commands are under way.
    Releasing,
}

/// One superblock.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub state: State,
    pub generation: u64,
    /// Erases of its most worn block.
    pub wear: u32,
    pub wear_unknown: bool,
    /// Payload pages appended, or all where the superblock was found at the mount.
    pub written_pages: u32,
    /// Commands waiting or in the device.
    pub under_way: u32,
    pub erases_left: u32,
    /// Header pages whose programs have not completed.
    pub headers_pending: u8,
    pub erased: bool,
    /// Erased, and the erase header is on the flash: the rest can be programmed.
    pub ready: bool,
    /// The opening header has been queued.
    pub opened: bool,
    pub header_durable: bool,
    /// A program or erase failed: no more appends in this life.
    pub failed: bool,
    /// Programs and erases in the queues of dies, all in `lane`.
    pub queued: u32,
    pub lane: Lane,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            state: State::OutOfService,
            generation: 0,
            wear: 0,
            wear_unknown: false,
            written_pages: 0,
            under_way: 0,
            erases_left: 0,
            headers_pending: 0,
            erased: false,
            ready: false,
            opened: false,
            header_durable: false,
            failed: false,
            queued: 0,
            lane: Lane::new(Class::Erase, Priority::Background),
        }
    }
}

/// What the opening header of an allocated superblock will say.
pub(crate) struct Opening {
    pub index: u32,
    pub stream: Stream,
    pub tag: OwnerTag,
}

/// What was done since the mount.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub reads: u64,
    pub programs: u64,
    pub erases: u64,
    pub bytes_read: u64,
    pub bytes_programmed: u64,
    pub errors: u64,
}

/// One unit.
pub(crate) struct Unit {
    pub id: UnitId,
    pub slots: Vec<Slot>,
    pub blocks: BlockTable,
    pub dies: Vec<DieQueue>,
    /// Superblocks in each [`State`].
    account: [u32; 7],
    pub next_generation: u64,
    /// The superblock whose header on the flash has the greatest generation, and that generation.
    pub newest: Option<(u64, u32)>,
    /// Header pages that the mount found damaged.
    pub damaged_headers: u32,
    /// Allocated superblocks whose first append has not come.
    pub openings: Vec<Opening>,
    /// Programs that wait for their superblock's erase, in order.
    pub held: Vec<u32>,
    /// Requests that wait for their superblock's headers, by superblock.
    pub awaiting_headers: Vec<(u32, u32)>,
    /// Commands waiting or in the device.
    pub load: u32,
    /// Since when `load` is 0.
    pub idle_since: Time,
    /// Since when fewer superblocks than wanted are prepared.
    pub short_since: Option<Time>,
    /// An erase ahead of need failed; the next is not tried earlier.
    pub prepare_not_before: Time,
    pub counters: Counters,
}

impl Unit {
    /// A unit all of whose superblocks are out of service, to be filled in by recovery.
    pub fn new(id: UnitId, blocks: BlockTable, superblocks: u32, dies: u32, now: Time) -> Unit {
        let mut account = [0; 7];
        account[State::OutOfService as usize] = superblocks;
        Unit {
            id,
            slots: vec![Slot::new(); superblocks as usize],
            blocks,
            dies: (0..dies).map(|_| DieQueue::default()).collect(),
            account,
            next_generation: 0,
            newest: None,
            damaged_headers: 0,
            openings: Vec::new(),
            held: Vec::new(),
            awaiting_headers: Vec::new(),
            load: 0,
            idle_since: now,
            short_since: None,
            prepare_not_before: Time::ZERO,
            counters: Counters::default(),
        }
    }

    pub fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    pub fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// Moves a superblock on in its life. The account of all of them is checked every time.
    pub fn set_state(&mut self, index: u32, state: State) {
        let old = std::mem::replace(&mut self.slots[index as usize].state, state);
        self.account[old as usize] -= 1;
        self.account[state as usize] += 1;
        assert_eq!(
            self.space().total() as usize,
            self.slots.len(),
            "superblocks of unit {} were lost or counted twice",
            self.id
        );
    }

    /// Superblocks in a state.
    pub fn count(&self, state: State) -> u32 {
        self.account[state as usize]
    }

    pub fn space(&self) -> SpaceAccount {
        SpaceAccount {
            prepared: self.count(State::Prepared),
            reclaimable: self.count(State::Reclaimable) + self.count(State::Preparing),
            open: self.count(State::Open),
            live: self.count(State::Live) + self.count(State::Releasing),
            bad: self.count(State::OutOfService),
        }
    }

    /// Takes the wear of a superblock from its blocks.
    pub fn refresh_wear(&mut self, index: u32) {
        let (wear, wear_unknown) = self.blocks.wear(index);
        let slot = &mut self.slots[index as usize];
        (slot.wear, slot.wear_unknown) = (wear, wear_unknown);
    }

    /// The superblocks that can be allocated.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> {
        (0_u32..).zip(&self.slots).filter_map(|(index, slot)| {
            let (readiness, erase_to_come) = match slot.state {
                State::Prepared => (Readiness::Prepared, 0),
                State::Preparing if slot.failed => return None,
                State::Preparing => (Readiness::Preparing, u32::from(!slot.erased)),
                State::Reclaimable => (Readiness::Reclaimable, 1),
                _ => return None,
            };
            let wear = slot.wear + erase_to_come;
            Some(Candidate { index, wear, wear_unknown: slot.wear_unknown, readiness })
        })
    }

    /// The free superblock to use next. The one whose header has the greatest generation is spared where
    /// there is another: a crash between its erase and its next header would let generations run back.
    pub fn choose(&self) -> Option<Candidate> {
        let newest = self.newest.map(|(_, index)| index);
        let spared = |candidate: &Candidate| {
            candidate.readiness == Readiness::Reclaimable && Some(candidate.index) == newest
        };
        wear::choose(self.candidates().filter(|candidate| !spared(candidate)))
            .or_else(|| wear::choose(self.candidates()))
    }

    /// Notes a header on the flash.
    pub fn note_header(&mut self, index: u32, generation: u64) {
        self.newest = self.newest.max(Some((generation, index)));
    }

    /// Notes whether fewer superblocks than `target` are prepared.
    pub fn note_shortage(&mut self, now: Time, target: u32) {
        if self.count(State::Prepared) >= target {
            self.short_since = None;
        } else {
            self.short_since.get_or_insert(now);
        }
    }

    /// Counts everything anew.
    ///
    /// # Panics
    /// If a superblock or block is lost or counted twice.
    pub fn check(&self) {
        let mut account = [0; 7];
        for (index, slot) in (0_u32..).zip(&self.slots) {
            account[slot.state as usize] += 1;
            let blocks = self.blocks.blocks_of(index);
            let complete =
                (0..blocks.len()).all(|seat| self.blocks.block(index, seat as u32).is_some());
            assert!(
                complete || slot.state == State::OutOfService || slot.failed,
                "superblock {}/{index} serves without all of its blocks",
                self.id
            );
        }
        assert_eq!(account, self.account, "unit {}: superblocks by state", self.id);
        let under_way: u32 = self.slots.iter().map(|slot| slot.under_way).sum();
        assert_eq!(under_way, self.load, "unit {}: commands under way", self.id);
        self.blocks.check();
    }
}
