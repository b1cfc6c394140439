//! Keeps the host's writes and collection in step, so that neither waits for the whole of the
//! other: the host's share of the room that a victim leaves is not ahead of the victim's pages that
//! have moved.

/// The progress of the host and of collection since a victim was chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Valid pages of the victim when it was chosen.
    to_move: u32,
    /// Pages moved since.
    moved: u32,
    /// The room that the moved pages leave in the open block.
    room: u32,
    /// Pages of this room that the host has written.
    written: u32,
}

impl Pace {
    /// A victim with `to_move` valid pages has been chosen; they leave `room` pages for the host.
    #[inline]
    pub fn new(to_move: u32, room: u32) -> Pace {
        Pace { to_move, moved: 0, room, written: 0 }
    }

    /// One more victim has been chosen: `to_move` pages to move, which leave `room` pages.
    pub fn add(&mut self, to_move: u32, room: u32) {
        self.to_move += to_move;
        self.room += room;
    }

    /// The host has written so many pages.
    #[inline(always)]
    pub fn wrote(&mut self, pages: u32) {
        self.written += pages;
    }

    /// Collection has moved so many pages.
    #[inline(always)]
    pub fn moved(&mut self, pages: u32) {
        self.moved += pages;
    }

    /// Whether collection has fallen behind its share.
    #[inline]
    pub fn owes(&self) -> bool {
        self.owes_more_than(0)
    }

    /// Whether collection has fallen behind its share by more than so many pages to be moved.
    #[inline]
    pub fn owes_more_than(&self, pages: u32) -> bool {
        u64::from(self.written) * u64::from(self.to_move)
            > (u64::from(self.moved) + u64::from(pages)) * u64::from(self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_owes_its_share_of_what_the_host_wrote() {
        // 6 pages to move for 2 pages of room: 3 for each page of the host.
        let mut pace = Pace::new(6, 2);
        assert!(!pace.owes());
        pace.wrote(1);
        assert!(pace.owes());
        pace.moved(2);
        assert!(pace.owes());
        pace.moved(1);
        assert!(!pace.owes());
    }

    #[test]
    fn the_host_may_be_ahead_by_some_pages() {
        // 3 to move for each page of the host.
        let mut pace = Pace::new(6, 2);
        pace.wrote(1);
        assert!(pace.owes_more_than(2) && !pace.owes_more_than(3));
        pace.moved(1);
        assert!(pace.owes_more_than(1) && !pace.owes_more_than(2));
    }

    #[test]
    fn several_victims_share_the_room_that_they_leave() {
        let mut pace = Pace::new(6, 2);
        pace.add(2, 6);
        pace.wrote(4);
        pace.moved(3);
        assert!(pace.owes());
        pace.moved(1);
        assert!(!pace.owes());
    }

    #[test]
    fn an_empty_victim_owes_nothing() {
        let mut pace = Pace::new(0, 8);
        pace.wrote(8);
        assert!(!pace.owes());
    }
}
