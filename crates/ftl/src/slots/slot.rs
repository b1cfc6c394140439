//! One superblock: its state, and how far its erase, its headers and its commands are.

use crate::scheduler::{OpKind, QueueClass};
use softflash_device::{LifetimeClass, Priority};

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
    state: State,
    generation: u64,
    /// Erases of its most worn block.
    wear: u32,
    wear_unknown: bool,
    /// Payload pages appended; all of them if the mount found the superblock.
    written_pages: u32,
    /// Commands waiting or in the device.
    under_way: u32,
    erases_left: u32,
    /// Header pages whose programs have not completed.
    headers_pending: u8,
    /// All blocks are erased.
    erased: bool,
    /// The erase header is on the flash: other pages can be programmed.
    ready: bool,
    /// The opening header has been queued.
    opened: bool,
    header_durable: bool,
    /// A program or erase failed: this life takes no more appends.
    failed: bool,
    /// Programs and erases in the queues of dies, all of the queue class `class`.
    queued: u32,
    class: QueueClass,
    lifetime: LifetimeClass,
}

impl Slot {
    pub(super) fn new() -> Slot {
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
            lifetime: LifetimeClass::UNKNOWN,
        }
    }

    /// The lifetime for which the superblock was allocated.
    pub fn lifetime(&self) -> LifetimeClass {
        self.lifetime
    }

    /// The superblock is allocated for data of a lifetime: a device that places data by it keeps
    /// them together.
    pub fn set_lifetime(&mut self, lifetime: LifetimeClass) {
        self.lifetime = lifetime;
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Changes the state; returns the old one. The account of the unit must follow.
    pub(super) fn replace_state(&mut self, state: State) -> State {
        std::mem::replace(&mut self.state, state)
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Erases of its most worn block, and whether any of the counts is assumed.
    pub fn wear(&self) -> (u32, bool) {
        (self.wear, self.wear_unknown)
    }

    pub fn set_wear(&mut self, (wear, unknown): (u32, bool)) {
        (self.wear, self.wear_unknown) = (wear, unknown);
    }

    /// Payload pages appended.
    pub fn written_pages(&self) -> u32 {
        self.written_pages
    }

    /// Whether all blocks are erased.
    pub fn is_erased(&self) -> bool {
        self.erased
    }

    /// Whether the erase header is on the flash.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether a program or erase of this life failed.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether a flush must follow a durable append, because the opening header is not durable.
    pub fn header_is_volatile(&self) -> bool {
        !self.header_durable
    }

    /// Whether appends wait for a header.
    pub fn awaits_headers(&self) -> bool {
        self.headers_pending > 0
    }

    /// Commands waiting or in the device.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// The queue class of the programs and erases that wait.
    pub fn class(&self) -> QueueClass {
        self.class
    }

    /// Begins a new life, with an erase of the blocks of each of `dies` dies.
    pub fn begin_life(&mut self, index: u32, generation: u64, dies: u32) {
        assert!(
            self.under_way == 0 && !self.failed,
            "superblock {index} is erased while it is in use"
        );
        assert!(
            generation > self.generation,
            "superblock {index}: generation {generation} follows {}",
            self.generation
        );
        self.generation = generation;
        self.written_pages = 0;
        self.erased = false;
        self.ready = false;
        self.opened = false;
        self.header_durable = false;
        self.headers_pending = 1;
        self.erases_left = dies;
    }

    /// Continues the life that a mount found.
    pub fn continue_life(&mut self, generation: u64, written_pages: u32) {
        self.generation = generation;
        self.written_pages = written_pages;
        (self.erased, self.ready, self.opened) = (true, true, true);
    }

    /// Adds erases that must end before the superblock is erased.
    pub fn add_erases(&mut self, erases: u32) {
        self.erases_left += erases;
    }

    /// Counts an erase that has ended; returns true if it was the last one.
    pub fn erase_ended(&mut self) -> bool {
        self.erases_left -= 1;
        self.erases_left == 0
    }

    /// Records that all blocks are erased.
    pub fn note_erased(&mut self) {
        self.erased = true;
    }

    /// Records that the opening header is queued; false if it was queued before.
    pub fn note_opened(&mut self, durable: bool) -> bool {
        if self.opened {
            return false;
        }
        self.opened = true;
        self.header_durable = durable;
        self.headers_pending += 1;
        true
    }

    /// Records that a header page is on the flash; returns true if no other one is pending.
    pub fn header_written(&mut self) -> bool {
        self.headers_pending -= 1;
        self.headers_pending == 0
    }

    /// Records that the erase header is on the flash.
    pub fn note_ready(&mut self) {
        self.ready = true;
    }

    /// Records that the opening header is durable.
    pub fn note_header_durable(&mut self) {
        self.header_durable = true;
    }

    /// Counts payload pages as appended; returns the new number.
    pub fn add_pages(&mut self, pages: u32) -> u32 {
        self.written_pages += pages;
        self.written_pages
    }

    /// Records a failed program or erase.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Ends a life in which a program or erase failed.
    pub fn forget_failure(&mut self) {
        self.failed = false;
    }

    /// Counts a command that waits.
    pub fn command_added(&mut self) {
        self.under_way += 1;
    }

    /// Counts a command that has ended.
    pub fn command_ended(&mut self) {
        self.under_way -= 1;
    }

    /// Counts a program or erase into the queue of a die; returns the queue class that it shares
    /// with those that wait.
    pub fn join_queue(&mut self, class: QueueClass) -> QueueClass {
        if self.queued == 0 {
            self.class = class;
        }
        self.queued += 1;
        self.class
    }

    /// Counts a program or erase out of the queue of a die.
    pub fn leave_queue(&mut self) {
        self.queued -= 1;
    }

    /// Counts a program or erase that the device did not accept back into the queue of its die.
    pub fn return_to_queue(&mut self) {
        self.queued += 1;
    }

    /// Makes the programs and erases that wait more urgent. Returns the class that they had, or
    /// none if they are urgent enough.
    pub fn hasten(&mut self, class: QueueClass) -> Option<QueueClass> {
        if self.queued == 0 || self.class <= class {
            return None;
        }
        Some(std::mem::replace(&mut self.class, class))
    }
}
