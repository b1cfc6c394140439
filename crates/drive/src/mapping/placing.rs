//! The choice of a write frontier for each page: the columns of the placement policy, and the pages
//! that are held back because no write frontier has room.
//!
//! A stripe position may have no more valid pages than collection can work with. A page takes room
//! at its new position when it is queued, and frees room at the old one when it is mapped, so with
//! many queued pages all positions may be full for a moment.
//!
//! A row that collection has begun lacks less than a whole one. So positions that are filled row by
//! row are in turn by the pages that they have taken: by rows, one whose collection ends at row
//! ends more often would take more pages than others, and in the end have all the valid pages that
//! it can.

use crate::pages::{Pages, Queue};
use crate::shape::Shape;
use softflash_policy::placement::{self, Candidates, PlacementPolicy};

/// The state of a placement policy.
#[derive(Debug)]
pub(crate) struct Placing {
    policy: PlacementPolicy,
    /// The first write frontier of each position.
    frontier_of: Vec<u32>,
    /// The position of each group.
    position_of: Vec<u32>,
    die_of: Vec<u32>,
    occupied: Vec<u32>,
    erases: Vec<u32>,
    /// Pages that wait for each die.
    waiting: Vec<u32>,
    most: u32,
    /// Round-robin cursor: the next position.
    cursor: u32,
    /// Pages that each position has taken; empty where rows are of one page.
    taken: Vec<u64>,
    /// The row that is being filled, for each class of hints.
    filling: Vec<Filling>,
    held_back: Queue,
}

/// A row of a write frontier that is being filled.
#[derive(Debug, Clone, Copy, Default)]
struct Filling {
    position: u32,
    /// The pages that it lacks.
    left: u32,
}

impl Placing {
    /// Nothing is placed yet; `None` where the page alone decides. Pages that fill flash pages
    /// together do so in the order of their arrival: then `static` and `by-hint` place rows in
    /// turn.
    pub(crate) fn new(policy: PlacementPolicy, shape: &Shape) -> Option<Placing> {
        let policy = match (policy.is_static(), shape.is_packed()) {
            (true, false) => return None,
            (true, true) => PlacementPolicy::ROUND_ROBIN,
            (false, _) => policy,
        };
        let positions = shape.stripe().len();
        let mut position_of = vec![0; positions];
        for (position, &frontier) in (0..).zip(shape.stripe()) {
            position_of[shape.group_of(frontier) as usize] = position;
        }
        let of_map = shape.translation_pages().div_ceil(shape.groups());
        Some(Placing {
            policy,
            frontier_of: shape.stripe().to_vec(),
            position_of,
            die_of: shape.stripe().iter().map(|&frontier| shape.die_of(frontier)).collect(),
            occupied: vec![0; positions],
            erases: vec![0; positions],
            waiting: vec![0; shape.dies() as usize],
            // One more than the mean of a full drive, so that a page that is overwritten has room.
            // Pages of the map do not count.
            most: shape.most_in_group() - of_map + 1,
            cursor: 0,
            taken: if shape.is_packed() { vec![0; positions] } else { Vec::new() },
            filling: vec![Filling::default(); shape.streams() as usize],
            held_back: Queue::EMPTY,
        })
    }

    /// Chooses the write frontier of a page of a stream, which takes room there; `None` if none has
    /// room. Pages go to one frontier until its row is full: `row` tells how many it lacks.
    pub(crate) fn choose(&mut self, stream: u32, row: impl Fn(u32) -> u32) -> Option<u32> {
        let mut filling = self.filling[stream as usize];
        if filling.left == 0 || self.occupied[filling.position as usize] >= self.most {
            let position = self.next_position()?;
            filling = Filling { position, left: row(self.frontier_of[position as usize] + stream) };
        }
        assert!(filling.left > 0, "a row of position {} takes no page", filling.position);
        filling.left -= 1;
        self.filling[stream as usize] = filling;
        self.occupied[filling.position as usize] += 1;
        if let Some(taken) = self.taken.get_mut(filling.position as usize) {
            *taken += 1;
        }
        Some(self.frontier_of[filling.position as usize] + stream)
    }

    /// The position that the policy chooses for the next row.
    fn next_position(&mut self) -> Option<u32> {
        self.turn_to_least_taken();
        let candidates = Candidates {
            occupied: &self.occupied,
            most: self.most,
            erases: &self.erases,
            die: &self.die_of,
            waiting: &self.waiting,
            cursor: self.cursor,
        };
        let position = placement::choose(self.policy, &candidates)?;
        let next = position + 1;
        self.cursor = if next as usize == self.occupied.len() { 0 } else { next };
        Some(position)
    }

    /// Moves the cursor to the position with room that has taken the fewest pages; of equal ones,
    /// to the next. One without room does not catch up later.
    fn turn_to_least_taken(&mut self) {
        let (before, from) = self.taken.split_at(self.taken.len().min(self.cursor as usize));
        let in_turn = (self.cursor..).zip(from).chain((0..).zip(before));
        let with_room = in_turn.filter(|&(it, _)| self.occupied[it as usize] < self.most);
        if let Some((position, &least)) = with_room.min_by_key(|&(_, &taken)| taken) {
            self.cursor = position;
            self.taken.iter_mut().for_each(|taken| *taken = least.max(*taken));
        }
    }

    /// A row of a frontier of a stream is programmed: the next pages go elsewhere.
    pub(crate) fn row_begins(&mut self, stream: u32, frontier: u32) {
        let filling = &mut self.filling[stream as usize];
        if self.frontier_of[filling.position as usize] + stream == frontier {
            filling.left = 0;
        }
    }

    fn occupied_of(&mut self, group: u32) -> &mut u32 {
        &mut self.occupied[self.position_of[group as usize] as usize]
    }

    /// A page frees room in a group.
    pub(crate) fn leaves(&mut self, group: u32) {
        let occupied = self.occupied_of(group);
        assert!(*occupied > 0, "a page leaves group {group}, which has none");
        *occupied -= 1;
    }

    /// Sets the pages of a group.
    pub(crate) fn set_occupied(&mut self, group: u32, pages: u32) {
        *self.occupied_of(group) = pages;
    }

    /// A block of a group has been erased.
    pub(crate) fn erased(&mut self, group: u32) {
        self.erases[self.position_of[group as usize] as usize] += 1;
    }

    /// A page waits for a die.
    pub(crate) fn waits(&mut self, die: u32) {
        self.waiting[die as usize] += 1;
    }

    /// A page that waited for a die has been served.
    pub(crate) fn served(&mut self, die: u32) {
        let waiting = &mut self.waiting[die as usize];
        assert!(*waiting > 0, "die {die} is served and nothing waits for it");
        *waiting -= 1;
    }

    /// Holds a page back.
    pub(crate) fn hold_back(&mut self, page: u32, pages: &mut Pages) {
        self.held_back.push(pages, page);
    }

    /// Whether pages are held back for which there is room by now.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held_back.is_empty() && self.occupied.iter().any(|&pages| pages < self.most)
    }

    /// Takes the oldest page that was held back, if a position has room by now.
    pub(crate) fn take_held_back(&mut self, pages: &Pages) -> Option<u32> {
        if self.holds_back() { self.held_back.pop(pages) } else { None }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let columns = [
            &self.frontier_of,
            &self.position_of,
            &self.die_of,
            &self.occupied,
            &self.erases,
            &self.waiting,
        ];
        let taken_bytes = (self.taken.capacity() * size_of::<u64>()) as u64;
        columns.map(|column| (column.capacity() * size_of::<u32>()) as u64).iter().sum::<u64>()
            + taken_bytes
    }
}
