//! The numbers of a large drive's pages in a sibling: each of the sibling's pages stands for as
//! many of the large drive, which lie next to each other, and so are written about as often.

use crate::shape::Shape;

/// How a large drive relates to its sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Groups of the large drive for each of the sibling's.
    pub(crate) groups: u32,
    /// Pages of a block of the large drive for each of the sibling's.
    pub(crate) pages: u32,
    neighbours: Neighbours,
}

/// Which pages of the large drive are one page of the sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    /// Those of neighbouring stripes, at positions that are equal modulo the sibling's: where the
    /// page alone decides the position.
    Stripes { positions: u32, of_sibling: u32, per_flash_page: u32 },
    /// Those at the same place of neighbouring runs of so many pages.
    Runs { pages: u32 },
}

impl Scale {
    /// Of a drive and itself.
    pub(crate) const ONE: Scale =
        Scale { groups: 1, pages: 1, neighbours: Neighbours::Runs { pages: 1 } };

    /// Of a drive and a sibling whose groups and pages of a block are smaller by these factors.
    /// `run`: the most pages that are written together; `None` if it is too long for the sibling.
    pub(crate) fn new(
        large: &Shape,
        (groups, pages): (u32, u32),
        is_striped: bool,
        run: u32,
    ) -> Option<Scale> {
        let (positions, per_flash_page) = (large.groups(), large.per_flash_page());
        let of_sibling = positions / groups;
        let neighbours = if is_striped {
            Neighbours::Stripes { positions, of_sibling, per_flash_page }
        } else {
            Neighbours::Runs { pages: run.max(per_flash_page).next_power_of_two() }
        };
        let fits = !is_striped || run <= of_sibling * per_flash_page;
        fits.then_some(Scale { groups, pages, neighbours })
    }

    /// Pages of the large drive that one of the sibling stands for.
    pub(crate) fn replicas(self) -> u32 {
        self.groups * self.pages
    }

    /// The sibling's page that stands for a page of the large drive.
    #[inline]
    pub(crate) fn contract(self, logical: u32) -> u32 {
        match self.neighbours {
            Neighbours::Stripes { positions, of_sibling, per_flash_page } => {
                let (flash_page, part) = (logical / per_flash_page, logical % per_flash_page);
                let (stripe, position) = (flash_page / positions, flash_page % positions);
                let flash_page = stripe / self.pages * of_sibling + position % of_sibling;
                flash_page * per_flash_page + part
            }
            Neighbours::Runs { pages } => {
                logical / pages / self.replicas() * pages + logical % pages
            }
        }
    }

    /// The page of the large drive that a page of the sibling stands for, in this replica of its
    /// group and of its block.
    #[inline]
    pub(crate) fn expand(self, logical: u32, of_group: u32, of_block: u32) -> u64 {
        let logical = u64::from(logical);
        let [of_group, of_block] = [of_group, of_block].map(u64::from);
        match self.neighbours {
            Neighbours::Stripes { positions, of_sibling, per_flash_page } => {
                let [positions, of_sibling, per_flash_page] =
                    [positions, of_sibling, per_flash_page].map(u64::from);
                let (flash_page, part) = (logical / per_flash_page, logical % per_flash_page);
                let (stripe, position) = (flash_page / of_sibling, flash_page % of_sibling);
                let stripe = stripe * u64::from(self.pages) + of_block;
                let position = position + of_group * of_sibling;
                (stripe * positions + position) * per_flash_page + part
            }
            Neighbours::Runs { pages } => {
                let pages = u64::from(pages);
                let replica = of_group * u64::from(self.pages) + of_block;
                let run = logical / pages * u64::from(self.replicas()) + replica;
                run * pages + logical % pages
            }
        }
    }
}
