//! The streams of a drive's bands: their open bands, and the turn of their lanes.

/// A stream of pages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    open: Vec<OpenBand>,
    /// The open band that takes the next row.
    turn: usize,
    /// Pages that its open bands take.
    left: u32,
    /// Of them, those that victims under way will need.
    claimed: u32,
}

/// A band that takes pages.
#[derive(Debug, Clone)]
pub(crate) struct OpenBand {
    /// The write frontier of each of its blocks.
    frontiers: Vec<u32>,
    /// The one that takes the next page, and the pages that its row has taken.
    at: usize,
    in_row: u32,
    left: u32,
}

impl OpenBand {
    /// An empty band whose blocks have so many pages.
    pub(crate) fn new(frontiers: Vec<u32>, pages_per_block: u32) -> OpenBand {
        let left = frontiers.len() as u32 * pages_per_block;
        OpenBand { frontiers, at: 0, in_row: 0, left }
    }
}

impl Stream {
    /// Pages that its open bands take.
    #[inline]
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Open bands.
    pub(crate) fn open_bands(&self) -> u32 {
        self.open.len() as u32
    }

    /// Pages that no victim needs.
    pub(crate) fn unclaimed(&self) -> u32 {
        self.left - self.claimed
    }

    /// A victim will need so many pages.
    pub(crate) fn claim(&mut self, pages: u32) {
        self.claimed += pages;
        assert!(self.claimed <= self.left, "victims claim more pages than there are");
    }

    /// A victim needs so many pages no more: it has taken them, or they became invalid.
    #[inline]
    pub(crate) fn unclaim(&mut self, pages: u32) {
        assert!(self.claimed >= pages, "a victim gives up pages that it has not claimed");
        self.claimed -= pages;
    }

    /// Opens a band.
    pub(crate) fn open(&mut self, band: OpenBand) {
        self.left += band.left;
        self.open.push(band);
    }

    /// The write frontier of the next page: rows of so many pages go to the lanes of a band in
    /// turn. `None` if no band is open.
    #[inline]
    pub(crate) fn next(&mut self, row_pages: u32) -> Option<u32> {
        let turn = self.turn;
        let band = self.open.get_mut(turn)?;
        let frontier = band.frontiers[band.at];
        self.left -= 1;
        band.left -= 1;
        band.in_row += 1;
        let is_used_up = band.left == 0;
        if band.in_row == row_pages {
            band.in_row = 0;
            band.at = if band.at + 1 == band.frontiers.len() { 0 } else { band.at + 1 };
            self.turn += 1;
        }
        if is_used_up {
            self.open.remove(turn);
            self.turn = turn;
        }
        if self.turn >= self.open.len() {
            self.turn = 0;
        }
        Some(frontier)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let frontiers = self.open.iter().map(|band| band.frontiers.capacity() * size_of::<u32>());
        frontiers.sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_the_lanes_of_a_band_in_turn_and_open_bands_alternate() {
        let mut stream = Stream::default();
        assert_eq!(stream.next(1), None);
        stream.open(OpenBand::new(vec![10, 20], 2));
        assert_eq!([(); 3].map(|()| stream.next(1)), [Some(10), Some(20), Some(10)]);
        stream.open(OpenBand::new(vec![30], 2));
        assert_eq!((stream.left(), stream.open_bands()), (3, 2));
        assert_eq!([(); 3].map(|()| stream.next(1)), [Some(20), Some(30), Some(30)]);
        assert_eq!((stream.next(1), stream.left(), stream.open_bands()), (None, 0, 0));
        // With two pages a row, of two planes.
        stream.open(OpenBand::new(vec![1, 2], 4));
        let taken: Vec<u32> = std::iter::from_fn(|| stream.next(2)).collect();
        assert_eq!(taken, [1, 1, 2, 2, 1, 1, 2, 2]);
    }

    #[test]
    #[should_panic(expected = "victims claim more pages than there are")]
    fn victims_claim_no_page_twice() {
        let mut stream = Stream::default();
        stream.open(OpenBand::new(vec![1], 4));
        stream.claim(3);
        assert_eq!(stream.unclaimed(), 1);
        stream.claim(2);
    }
}
