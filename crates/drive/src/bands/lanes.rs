//! The lanes of a drive's bands: the blocks that each has or soon has, and which lanes the next
//! band takes.

use crate::shape::Shape;

/// Blocks of a lane that the host leaves to collection.
const KEPT: u32 = 1;

/// The lanes.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// All lanes, in the order of the static stripe: neighbours are on different channels.
    order: Vec<u32>,
    /// Blocks of each lane that are free, or will be when the collections under way have ended.
    supply_of: Vec<u32>,
    /// Of them, those that are erased.
    free_of: Vec<u32>,
    /// Blocks of each lane that are collected, up to the end of their erase, and full ones whose
    /// band is not.
    collected_of: Vec<u32>,
    unclosed_of: Vec<u32>,
    erases_of: Vec<u64>,
    supply: u32,
    free: u32,
    /// Lanes that can give the host a block.
    ready: u32,
    /// Where the search for lanes begins, as a place in the order.
    turn: usize,
}

impl Lanes {
    /// Lanes whose blocks are all free.
    pub(crate) fn new(shape: &Shape) -> Lanes {
        let lanes = shape.groups();
        let of_lane = shape.blocks_of(0).len() as u32;
        let each = |value| vec![value; lanes as usize];
        Lanes {
            order: shape.stripe().iter().map(|&first| shape.group_of(first)).collect(),
            supply_of: each(of_lane),
            free_of: each(of_lane),
            collected_of: each(0),
            unclosed_of: each(0),
            erases_of: vec![0; lanes as usize],
            supply: lanes * of_lane,
            free: lanes * of_lane,
            ready: if of_lane > KEPT { lanes } else { 0 },
            turn: 0,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.order.len() as u32
    }

    /// Blocks that are free, or soon will be.
    #[inline]
    pub(crate) fn supply(&self) -> u32 {
        self.supply
    }

    /// Blocks that are free.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// Lanes that can give the host a block, now or soon.
    #[inline]
    pub(crate) fn ready(&self) -> u32 {
        self.ready
    }

    /// Free blocks of a lane.
    pub(crate) fn free_in(&self, lane: u32) -> u32 {
        self.free_of[lane as usize]
    }

    /// Blocks of a lane that are collected, or full in a band that is not.
    pub(crate) fn in_between(&self, lane: u32) -> u32 {
        self.collected_of[lane as usize] + self.unclosed_of[lane as usize]
    }

    /// A free block of a lane is opened.
    pub(crate) fn open(&mut self, lane: u32) {
        let lane = lane as usize;
        assert!(self.free_of[lane] > 0, "lane {lane} opens a block that is not free");
        self.ready -= u32::from(self.supply_of[lane] == KEPT + 1);
        self.supply_of[lane] -= 1;
        self.free_of[lane] -= 1;
        self.supply -= 1;
        self.free -= 1;
    }

    /// A block of a lane is full, and waits for the others of its band.
    pub(crate) fn wait(&mut self, lane: u32) {
        self.unclosed_of[lane as usize] += 1;
    }

    /// A block of a lane waits no more: its band is closed.
    pub(crate) fn close(&mut self, lane: u32) {
        let unclosed = &mut self.unclosed_of[lane as usize];
        assert!(*unclosed > 0, "lane {lane} closes a block that is not full");
        *unclosed -= 1;
    }

    /// The collection of a block of a lane begins.
    pub(crate) fn collect(&mut self, lane: u32) {
        let lane = lane as usize;
        self.ready += u32::from(self.supply_of[lane] == KEPT);
        self.supply_of[lane] += 1;
        self.collected_of[lane] += 1;
        self.supply += 1;
    }

    /// A collected block of a lane has been erased.
    pub(crate) fn erased(&mut self, lane: u32) {
        let lane = lane as usize;
        assert!(self.collected_of[lane] > 0, "lane {lane} erases a block that is not collected");
        self.free_of[lane] += 1;
        self.collected_of[lane] -= 1;
        self.erases_of[lane] += 1;
        self.free += 1;
    }

    /// The lanes of a band of the host: those with the most blocks, of equals the least worn, then
    /// in turn. `None` if they have too few by now.
    pub(crate) fn for_host(&mut self, width: u32) -> Option<Vec<u32>> {
        if self.ready < width || self.free < self.count() * KEPT + width {
            return None;
        }
        let lanes = self.richest(width, |free| free > KEPT);
        (lanes.len() as u32 == width).then(|| self.taken(lanes))
    }

    /// The lanes of a band of collection. While blocks are being collected or erased it waits for
    /// lanes enough; otherwise it takes those that there are.
    pub(crate) fn for_moved(&mut self, width: u32) -> Option<Vec<u32>> {
        let lanes = self.richest(width, |free| free > 0);
        let waits = (lanes.len() as u32) < width && self.supply > self.free;
        (!lanes.is_empty() && !waits).then(|| self.taken(lanes))
    }

    /// Whether collection can open a band of this width and leave one of the widest.
    pub(crate) fn can_spare(&self, width: u32, widest: u32) -> bool {
        self.free >= width + widest
    }

    /// The lanes in the order in which they need blocks.
    pub(crate) fn by_need(&self) -> Vec<u32> {
        let mut lanes: Vec<u32> = self.in_turn().collect();
        lanes.sort_by_key(|&lane| self.supply_of[lane as usize]);
        lanes
    }

    fn richest(&self, width: u32, takes: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut lanes: Vec<u32> =
            self.in_turn().filter(|&lane| takes(self.free_of[lane as usize])).collect();
        if lanes.len() > width as usize {
            lanes.sort_by_key(|&lane| {
                let lane = lane as usize;
                (std::cmp::Reverse(self.supply_of[lane]), self.erases_of[lane])
            });
            lanes.truncate(width as usize);
        }
        lanes
    }

    fn in_turn(&self) -> impl Iterator<Item = u32> {
        let (before, from) = self.order.split_at(self.turn);
        from.iter().chain(before).copied()
    }

    fn taken(&mut self, lanes: Vec<u32>) -> Vec<u32> {
        self.turn = (self.turn + lanes.len()) % self.order.len();
        lanes
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.order.capacity() * (5 * size_of::<u32>() + size_of::<u64>())) as u64
    }
}
