//! One unit: the states of its superblocks and the commands under way on its dies.

use crate::blocks::BlockTable;
use crate::hint::{Priority, Stream};
use crate::policy::wear::{self, Candidate, Readiness};
use crate::scheduler::{DieQueue, OpKind, QueueClass};
use crate::superblock::OwnerTag;
use crate::telemetry::SpaceAccount;
use softflash_base::{Time, UnitId};

/// The state of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A stripe column has no good block.
    OutOfService,
    /// Free; must be erased before use.
    ErasePending,
    /// Being erased ahead of need.
    Erasing,
    /// Erased ahead of need, with its erase header on the flash.
    Erased,
    /// Allocated; takes appends.
    Open,
    /// Has data and takes no more appends.
    Live,
    /// Released; commands are still under way.
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
    /// Payload pages appended; all of them if the mount found the superblock.
    pub written_pages: u32,
    /// Commands waiting or in the device.
    pub under_way: u32,
    pub erases_left: u32,
    /// Header pages whose programs have not completed.
    pub headers_pending: u8,
    /// All blocks are erased.
    pub erased: bool,
    /// The erase header is on the flash: other pages can be programmed.
    pub ready: bool,
    /// The opening header has been queued.
    pub opened: bool,
    pub header_durable: bool,
    /// A program or erase failed: this life takes no more appends.
    pub failed: bool,
    /// Programs and erases in the queues of dies, all of the queue class `class`.
    pub queued: u32,
    pub class: QueueClass,
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
            class: QueueClass::new(OpKind::Erase, Priority::Background),
        }
    }
}

/// The contents of the opening header of an allocated superblock.
pub(crate) struct Opening {
    pub index: u32,
    pub stream: Stream,
    pub tag: OwnerTag,
}

/// Commands and bytes since the mount.
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
    /// The greatest generation in a header on the flash, and the superblock of that header.
    pub newest: Option<(u64, u32)>,
    /// Header pages that the mount found damaged.
    pub damaged_headers: u32,
    /// Allocated superblocks without an append.
    pub openings: Vec<Opening>,
    /// Programs that wait for their superblock's erase header, in order.
    pub held: Vec<u32>,
    /// Requests that wait for the headers of a superblock, as `(index, request)`.
    pub awaiting_headers: Vec<(u32, u32)>,
    /// Commands waiting or in the device.
    pub load: u32,
    /// The time at which `load` became 0.
    pub idle_since: Time,
    /// The time at which the number of erased superblocks fell below the target.
    pub short_since: Option<Time>,
    /// The earliest time of the next erase ahead of need, after one has failed.
    pub erase_ahead_not_before: Time,
    pub counters: Counters,
}

impl Unit {
    /// A unit with all superblocks out of service; recovery sets their states.
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
            erase_ahead_not_before: Time::ZERO,
            counters: Counters::default(),
        }
    }

    pub fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    pub fn slot_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// Changes the state of a superblock and checks the sum over all states.
    pub fn set_state(&mut self, index: u32, state: State) {
        let old = std::mem::replace(&mut self.slots[index as usize].state, state);
        assert!(
            self.account[old as usize] > 0,
            "unit {}: superblock {index} was {old:?}, and the account has none in that state",
            self.id
        );
        self.account[old as usize] -= 1;
        self.account[state as usize] += 1;
        assert_eq!(
            self.space().total() as usize,
            self.slots.len(),
            "unit {}: superblocks were lost or counted twice",
            self.id
        );
    }

    /// Number of superblocks in a state.
    pub fn count(&self, state: State) -> u32 {
        self.account[state as usize]
    }

    pub fn space(&self) -> SpaceAccount {
        SpaceAccount {
            erased: self.count(State::Erased),
            erase_pending: self.count(State::ErasePending) + self.count(State::Erasing),
            open: self.count(State::Open),
            live: self.count(State::Live) + self.count(State::Releasing),
            bad: self.count(State::OutOfService),
        }
    }

    /// Updates the wear of a superblock from its blocks.
    pub fn refresh_wear(&mut self, index: u32) {
        let (wear, wear_unknown) = self.blocks.wear(index);
        let slot = &mut self.slots[index as usize];
        (slot.wear, slot.wear_unknown) = (wear, wear_unknown);
    }

    /// The superblocks that can be allocated.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> {
        (0_u32..).zip(&self.slots).filter_map(|(index, slot)| {
            let (readiness, pending_erases) = match slot.state {
                State::Erased => (Readiness::Erased, 0),
                State::Erasing if slot.failed => return None,
                State::Erasing => (Readiness::Erasing, u32::from(!slot.erased)),
                State::ErasePending => (Readiness::ErasePending, 1),
                _ => return None,
            };
            let wear = slot.wear + pending_erases;
            Some(Candidate { index, wear, wear_unknown: slot.wear_unknown, readiness })
        })
    }

    /// The free superblock to use next. The one whose header has the greatest generation is chosen
    /// only if no other is free: after a power cut between its erase and its next header, a mount
    /// would find smaller generations.
    pub fn choose(&self) -> Option<Candidate> {
        let newest = self.newest.map(|(_, index)| index);
        let is_newest = |candidate: &Candidate| {
            candidate.readiness == Readiness::ErasePending && Some(candidate.index) == newest
        };
        wear::choose(self.candidates().filter(|candidate| !is_newest(candidate)))
            .or_else(|| wear::choose(self.candidates()))
    }

    /// Records that a header is on the flash.
    pub fn note_header(&mut self, index: u32, generation: u64) {
        self.newest = self.newest.max(Some((generation, index)));
    }

    /// Records whether fewer than `target` superblocks are erased.
    pub fn note_shortage(&mut self, now: Time, target: u32) {
        if self.count(State::Erased) >= target {
            self.short_since = None;
        } else {
            self.short_since.get_or_insert(now);
        }
    }

    /// Recounts superblocks, commands and blocks.
    ///
    /// # Panics
    /// If a superblock or block is lost or counted twice.
    pub fn check(&self) {
        let mut account = [0; 7];
        for (index, slot) in (0_u32..).zip(&self.slots) {
            account[slot.state as usize] += 1;
            let blocks = self.blocks.blocks_of(index);
            let complete =
                (0..blocks.len()).all(|column| self.blocks.block(index, column as u32).is_some());
            assert!(
                complete || slot.state == State::OutOfService || slot.failed,
                "superblock {}/{index} is in service without all of its blocks",
                self.id
            );
        }
        assert_eq!(account, self.account, "unit {}: superblocks by state", self.id);
        let under_way: u32 = self.slots.iter().map(|slot| slot.under_way).sum();
        assert_eq!(under_way, self.load, "unit {}: commands under way", self.id);
        self.blocks.check();
    }
}
