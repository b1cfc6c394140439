//! The dies of a drive: their flash, and the pages that wait to be read from each.
//!
//! On flash that can suspend, a die takes a read while it programs or erases. The block of the read
//! decides whether it may suspend this work, so the blocks under work are kept here.

use crate::error::DriveError;
use crate::pages::{Pages, Purpose, Queue};
use crate::shape::Shape;
use crate::spec::{DeviceSpec, PageMapped};
use softflash_base::{AccessKind, Time};
use softflash_mapping::NONE;
use softflash_nand::timeline::{Interval, Step, WorkKinds};
use softflash_nand::{ChannelIndex, DieIndex, Timeline, Work, WorkKind};
use softflash_policy::order::{self, Waiting};

/// The dies of a drive.
pub(crate) struct Dies {
    flash: Timeline,
    dies: Vec<Die>,
    /// What decides whether a read goes before a write.
    order: order::Decides,
    /// What waits for each die, if the schedule ranks operations when they arrive.
    ranks: Option<Box<Ranks>>,
    is_ranked: bool,
    /// Pages are moved one by one inside their die.
    copies_back: bool,
    /// Reads may pass programs and erases.
    suspends: bool,
    /// Pages of a flash page.
    per_flash_page: u32,
}

/// The ranks of what waits for each die, and the time of a die that a page takes.
struct Ranks {
    of_dies: Vec<Waiting>,
    read_ns: u64,
    write_ns: u64,
}

impl Ranks {
    fn new(device: &DeviceSpec, layout: &PageMapped, shape: &Shape) -> Option<Ranks> {
        let waiting = layout.schedule.waiting()?;
        let mean = |times: &[u64]| times.iter().sum::<u64>() / times.len().max(1) as u64;
        Some(Ranks {
            of_dies: vec![waiting; shape.dies() as usize],
            read_ns: mean(&device.die.read_ns),
            // A row is programmed at once.
            write_ns: mean(&device.die.program_ns) / u64::from(shape.row_end(0)),
        })
    }
}

/// A die.
#[derive(Debug, Clone)]
struct Die {
    /// Pages that wait to be read.
    reads: Queue,
    /// Whether it is copying back; a read cuts that short.
    copies_back: bool,
    /// If it suspends: the blocks of its programs and erases that have not ended, the oldest first.
    under_work: [Option<u32>; 2],
}

impl Die {
    fn add_work(&mut self, block: u32) {
        let place = usize::from(self.under_work[0].is_some());
        let before = self.under_work[place].replace(block);
        assert_eq!(before, None, "a die works on three blocks");
    }

    fn end_work(&mut self) {
        assert!(self.under_work[0].is_some(), "a die ends work that it has not begun");
        self.under_work = [self.under_work[1], None];
    }
}

impl Dies {
    /// Idle dies.
    pub(crate) fn new(
        device: &DeviceSpec,
        layout: &PageMapped,
        shape: &Shape,
    ) -> Result<Dies, DriveError> {
        let array = match (layout.suspend, device.array()) {
            (false, array) => array.without_suspend(),
            (true, array) => array,
        };
        let mut flash = Timeline::new(&array)?;
        flash.set_copyback(layout.copyback);
        if shape.is_packed() {
            flash.set_parts(&array, shape.per_flash_page() as u8);
        }
        let ranks = Ranks::new(device, layout, shape);
        let idle = Die { reads: Queue::EMPTY, copies_back: false, under_work: [None; 2] };
        Ok(Dies {
            flash,
            dies: vec![idle; shape.dies() as usize],
            order: layout.schedule.decides(),
            is_ranked: ranks.is_some(),
            ranks: ranks.map(Box::new),
            copies_back: layout.copyback && shape.is_row_a_page(),
            suspends: array.die.program_suspend.is_some() || array.die.erase_suspend.is_some(),
            per_flash_page: shape.per_flash_page(),
        })
    }

    /// When a die ends what it does now; `None` while it is idle.
    pub(crate) fn busy_until(&self, die: u32) -> Option<u64> {
        self.flash.busy_until(die).map(|at| at.0)
    }

    /// What decides whether a read goes before a write.
    #[inline]
    pub(crate) fn order(&self) -> order::Decides {
        self.order
    }

    /// Whether the oldest read of a die ranks before the oldest write.
    #[inline(never)]
    pub(crate) fn read_ranks_first(&self, die: u32) -> bool {
        let Some(ranks) = &self.ranks else { return true };
        ranks.of_dies[die as usize].read_is_first()
    }

    /// Ranks a page to be read or written that has arrived at a die, if the schedule does.
    #[inline(always)]
    pub(crate) fn rank(&mut self, die: u32, kind: AccessKind) {
        if self.is_ranked {
            self.rank_arrival(die, kind);
        }
    }

    #[inline(never)]
    fn rank_arrival(&mut self, die: u32, kind: AccessKind) {
        let now = self.flash.now().0;
        let Some(ranks) = &mut self.ranks else { return };
        let cost = if kind == AccessKind::Read { ranks.read_ns } else { ranks.write_ns };
        ranks.of_dies[die as usize].arrive(now, kind, cost);
    }

    /// The oldest page to be read or written on a die begins.
    #[inline(always)]
    pub(crate) fn begins(&mut self, die: u32, kind: AccessKind) {
        if self.is_ranked {
            self.unrank(die, kind);
        }
    }

    #[inline(never)]
    fn unrank(&mut self, die: u32, kind: AccessKind) {
        if let Some(ranks) = &mut self.ranks {
            ranks.of_dies[die as usize].serve(kind);
        }
    }

    /// Whether collected pages are moved one by one inside their die.
    #[inline]
    pub(crate) fn copies_back(&self) -> bool {
        self.copies_back
    }

    /// The time of the next event; `u64::MAX` if none is pending.
    #[inline]
    pub(crate) fn event_at(&self) -> u64 {
        self.flash.next_at().map_or(u64::MAX, |at| at.0)
    }

    /// Advances the time to `now`.
    #[inline]
    pub(crate) fn pass_to(&mut self, now: u64) {
        self.flash.pass_to(Time(now));
    }

    /// Plays the next events before `end`, up to one that concerns the firmware.
    #[inline(always)]
    pub(crate) fn step_before(&mut self, end: u64) -> Option<Step> {
        self.flash.step_before(end)
    }

    /// The kinds of work that a die accepts now.
    #[inline]
    pub(crate) fn accepts(&self, die: u32) -> WorkKinds {
        self.flash.accepts(die)
    }

    /// Starts work on a die; returns the kinds of work that it still accepts.
    #[inline(always)]
    pub(crate) fn begin(&mut self, die: u32, work: Work) -> WorkKinds {
        self.flash.start(die, work)
    }

    /// As [`begin`](Dies::begin), for a program, an erase or a move into this block.
    #[inline(always)]
    pub(crate) fn begin_on(&mut self, die: u32, block: u32, work: Work) -> WorkKinds {
        if self.suspends {
            self.dies[die as usize].add_work(block);
        }
        self.begin(die, work)
    }

    /// The oldest program, erase or move of a die has completed.
    #[inline(always)]
    pub(crate) fn end_oldest(&mut self, die: u32) {
        if self.suspends {
            self.dies[die as usize].end_work();
        }
    }

    /// Adds a page to be read.
    #[inline(always)]
    pub(crate) fn queue_read(&mut self, die: u32, page: u32, pages: &mut Pages) {
        let state = &mut self.dies[die as usize];
        state.reads.push(pages, page);
        if state.copies_back {
            self.flash.cut(die);
        }
    }

    /// The oldest page that waits to be read; [`NONE`](softflash_mapping::NONE) if there is none.
    #[inline]
    pub(crate) fn first_read(&self, die: u32) -> u32 {
        self.dies[die as usize].reads.first()
    }

    /// Starts the next read, if the die accepts it, with those behind it of the same flash page if
    /// `gathers`; returns the kinds of work that the die still accepts.
    #[inline(always)]
    pub(crate) fn begin_read(
        &mut self,
        die: u32,
        accepts: WorkKinds,
        pages: &mut Pages,
        gathers: bool,
    ) -> Option<WorkKinds> {
        if !accepts.has(WorkKind::Read) {
            return None;
        }
        let page = self.dies[die as usize].reads.pop(pages)?;
        self.begins(die, AccessKind::Read);
        let mut work = Work { tag: page, page: pages.row(page), pages: 1, kind: WorkKind::Read };
        if gathers && self.per_flash_page > 1 {
            work.pages = Work::parts(self.read_together(die, page, pages));
        }
        if accepts.read_passes() {
            return Some(self.begin_passing(die, pages.block(page), work));
        }
        Some(self.begin(die, work))
    }

    /// Takes the pages behind a page that waits, as far as they lie in the same flash page; returns
    /// their number with the first.
    #[inline(never)]
    fn read_together(&mut self, die: u32, first: u32, pages: &mut Pages) -> u32 {
        if pages.purpose(first) == Purpose::Scrub {
            pages.end_queue(first);
            return self.per_flash_page;
        }
        let (mut last, mut parts) = (first, 1);
        while parts < self.per_flash_page {
            let next = self.dies[die as usize].reads.first();
            if next == NONE || pages.flash_page(next) != pages.flash_page(first) {
                break;
            }
            self.dies[die as usize].reads.pop(pages);
            self.begins(die, AccessKind::Read);
            (last, parts) = (next, parts + 1);
        }
        pages.end_queue(last);
        parts
    }

    /// Starts a read on a die that programs or erases: it suspends this work, unless it is for the
    /// same block.
    #[inline(never)]
    fn begin_passing(&mut self, die: u32, block: u32, read: Work) -> WorkKinds {
        if self.dies[die as usize].under_work[0] == Some(block) {
            return self.flash.start_behind(die, read);
        }
        self.flash.start(die, read)
    }

    /// Starts the copyback of up to `pages` pages of a write frontier, the first of them in `row`;
    /// of one page only if a read waits.
    #[inline]
    pub(crate) fn copy_back(
        &mut self,
        die: u32,
        frontier: u32,
        (row, pages): (u16, u32),
    ) -> WorkKinds {
        let state = &mut self.dies[die as usize];
        state.copies_back = true;
        let pages = if state.reads.is_empty() { pages } else { 1 };
        let kind = WorkKind::CopyBack;
        self.begin(die, Work { tag: frontier, page: row, pages: pages as u8, kind })
    }

    /// A copyback has completed.
    pub(crate) fn end_copy_back(&mut self, die: u32) {
        self.dies[die as usize].copies_back = false;
    }

    pub(crate) fn channels(&self) -> u32 {
        self.flash.channels()
    }

    /// Time that a die's cell array has worked, in nanoseconds.
    pub(crate) fn die_busy_ns(&self, die: u32) -> u64 {
        self.flash.die_busy_ns(DieIndex(die))
    }

    /// Time that a channel's bus was taken, in nanoseconds.
    pub(crate) fn channel_busy_ns(&self, channel: u32) -> u64 {
        self.flash.channel_busy_ns(ChannelIndex(channel))
    }

    /// Records the activity of dies and buses from now on, up to `most` intervals.
    pub(crate) fn record(&mut self, most: usize) {
        self.flash.record(most);
    }

    pub(crate) fn recorded(&self) -> &[Interval] {
        self.flash.recorded()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.dies.capacity() * size_of::<Die>()) as u64 + self.flash.memory_bytes()
    }
}
