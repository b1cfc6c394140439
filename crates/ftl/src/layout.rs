//! The layout of the pages of a superblock: row-major over dies and planes.
//!
//! Page `p` of a superblock is page `p / (planes * dies)` of the block in plane `p % planes` of die
//! `(p / planes) % dies`. Neighbouring pages are in different planes and dies, so all dies work on
//! a run of pages at the same time.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use crate::config::FtlConfig;
use crate::convert::to_u8;
use crate::superblock::FtlError;
use softflash_base::cast;
use softflash_device::UnitGeometry;
use softflash_device::geometry::MAX_PLANES;
use std::ops::Range;

/// Pages at the start of a superblock that the FTL uses: the erase header and the opening header.
pub(crate) const HEADER_PAGES: u32 = 2;

/// The greatest queue depth of a real die. A "die" with a deeper queue is an extent of a device
/// with a queue of its own, for which large commands are best.
pub(crate) const REAL_DIE_DEPTH: u16 = 2;

/// The pages of one command: `rows` rows of `planes` neighbouring planes of one die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub die: u8,
    pub plane: u8,
    pub planes: u8,
    /// First page in the blocks.
    pub page: u32,
    pub rows: u32,
}

impl Run {
    pub fn pages(&self) -> u32 {
        u32::from(self.planes) * self.rows
    }
}

/// The dimensions of the superblocks of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub planes: u32,
    pub dies: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    pub blocks_per_plane: u32,
    /// Maximum number of rows in a command.
    max_rows: u32,
}

/// Bytes of a superblock of a unit without its headers.
pub fn payload_bytes(geometry: &UnitGeometry) -> u64 {
    let pages = geometry.superblock_pages().saturating_sub(HEADER_PAGES);
    u64::from(pages) * u64::from(geometry.page_bytes)
}

impl Layout {
    pub fn new(geometry: &UnitGeometry, config: &FtlConfig) -> Result<Layout, FtlError> {
        let unsupported = |reason: String| Err(FtlError::Unsupported { reason });
        if geometry.planes == 0 || usize::from(geometry.planes) > MAX_PLANES {
            return unsupported(format!("{} planes per die", geometry.planes));
        }
        if geometry.dies == 0 || geometry.blocks_per_plane == 0 {
            return unsupported("a unit without dies or blocks".to_owned());
        }
        if geometry.superblock_pages() <= HEADER_PAGES {
            return unsupported(format!(
                "superblocks of {} pages, of which {HEADER_PAGES} are headers",
                geometry.superblock_pages()
            ));
        }
        if crate::header::encoded_bytes(geometry.row_pages()) > cast::index(geometry.page_bytes) {
            return unsupported(format!(
                "a header of {} blocks does not fit a page of {} bytes; make units smaller",
                geometry.row_pages(),
                geometry.page_bytes
            ));
        }
        let many_rows = geometry.row_pages() == 1 && geometry.die_queue_depth > REAL_DIE_DEPTH;
        let max_rows =
            if many_rows { config.max_command_bytes / geometry.page_bytes } else { 1 }.max(1);
        Ok(Layout {
            planes: u32::from(geometry.planes),
            dies: u32::from(geometry.dies),
            pages_per_block: geometry.pages_per_block,
            page_bytes: geometry.page_bytes,
            blocks_per_plane: geometry.blocks_per_plane,
            max_rows,
        })
    }

    /// Number of *stripe columns* of a superblock: one for each of its blocks. The column of a
    /// block is `die * planes + plane`.
    pub fn columns(&self) -> u32 {
        self.dies * self.planes
    }

    /// Number of payload pages that must be appended so that the first `pages` are safe from power
    /// cuts, if the first `safe_after(p)` pages of a block make its pages up to `p` safe.
    pub fn safe_after(&self, pages: u32, safe_after: impl Fn(u32) -> u32) -> u32 {
        let Some(last) = (pages + HEADER_PAGES).checked_sub(1).filter(|_| pages > 0) else {
            return 0;
        };
        let (row, column) = (last / self.columns(), last % self.columns());
        // Columns behind the last page's column have one row less.
        let before = row.checked_sub(1).map_or(0, |row| safe_after(row) * self.columns());
        let same = (safe_after(row) - 1) * self.columns() + column + 1;
        (before.max(same) - HEADER_PAGES).clamp(pages, self.payload_pages())
    }

    /// The payload pages of the first row that is programmed into the die of payload page `page`
    /// once that page is whole and safe from power cuts, if the first `safe_after(p)` pages of a
    /// block make its page `p` safe. Empty at the end of the superblock.
    pub fn successors(&self, page: u32, safe_after: impl Fn(u32) -> u32) -> Range<u32> {
        let page = page + HEADER_PAGES;
        let row = safe_after(page / self.columns());
        if row >= self.pages_per_block {
            return 0..0;
        }
        let die = page / self.planes % self.dies;
        let first = row * self.columns() + die * self.planes - HEADER_PAGES;
        first..first + self.planes
    }

    /// The last payload page in the block of payload page `page`.
    pub fn last_of_block(&self, page: u32) -> u32 {
        let column = self.column(page + HEADER_PAGES);
        (self.pages_per_block - 1) * self.columns() + column - HEADER_PAGES
    }

    /// Pages that the owner of a superblock can write.
    pub fn payload_pages(&self) -> u32 {
        self.columns() * self.pages_per_block - HEADER_PAGES
    }

    /// The longest run from superblock page `page` on, of at most `pages` pages.
    pub fn run(&self, page: u32, pages: u32) -> Run {
        let plane = page % self.planes;
        let die = page / self.planes % self.dies;
        let row = page / self.columns();
        let (planes, rows) = if self.columns() == 1 {
            (1, pages.min(self.max_rows))
        } else {
            (pages.min(self.planes - plane), 1)
        };
        Run { die: to_u8(die), plane: to_u8(plane), planes: to_u8(planes), page: row, rows }
    }

    /// The stripe column of the blocks in a plane.
    pub fn column_of_block(&self, die: u8, plane: u8) -> u32 {
        u32::from(die) * self.planes + u32::from(plane)
    }

    /// The stripe column of superblock page `page`.
    pub fn column(&self, page: u32) -> u32 {
        page % self.columns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dies: u8, planes: u8, depth: u16) -> Layout {
        let geometry = UnitGeometry {
            dies,
            planes,
            blocks_per_plane: 4,
            pages_per_block: 64,
            page_bytes: 4096,
            die_queue_depth: depth,
        };
        let config = FtlConfig { max_command_bytes: 8 * 4096, ..FtlConfig::default() };
        Layout::new(&geometry, &config).unwrap()
    }

    #[test]
    fn runs_cover_every_page_once_and_program_blocks_in_order() {
        for (dies, planes, depth) in [(1, 1, 1), (1, 1, 32), (1, 4, 1), (3, 2, 2), (5, 1, 1)] {
            let layout = layout(dies, planes, depth);
            let total = layout.payload_pages() + HEADER_PAGES;
            let mut next_page = vec![0; cast::index(layout.columns())];
            let mut page = 0;
            while page < total {
                let run = layout.run(page, total - page);
                assert!(run.pages() > 0);
                for row in 0..run.rows {
                    for plane in 0..u32::from(run.planes) {
                        let column =
                            u32::from(run.die) * layout.planes + u32::from(run.plane) + plane;
                        assert_eq!(next_page[cast::index(column)], run.page + row);
                        assert_eq!(layout.column(page), column);
                        next_page[cast::index(column)] += 1;
                        page += 1;
                    }
                }
            }
            assert!(next_page.iter().all(|next| *next == 64));
        }
    }

    #[test]
    fn safe_after_is_the_least_number_of_pages_that_makes_the_first_pages_safe() {
        for (dies, planes) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
            let layout = layout(dies, planes, 1);
            // Pairs of rows share cells: row 2n is safe once row 2n + 1 is programmed.
            let pairs = |page: u32| (page / 2 + 1) * 2;
            let location = |page: u32| (page % layout.columns(), page / layout.columns());
            let all = layout.payload_pages();
            assert_eq!(layout.safe_after(0, pairs), 0);
            for pages in 1..=all {
                assert_eq!(layout.safe_after(pages, |page| page + 1), pages);
                let safe = layout.safe_after(pages, pairs);
                // The headers must be safe too.
                let can_destroy = |later: u32| {
                    (0..pages + HEADER_PAGES).any(|page| {
                        let ((column, row), (later_column, later_row)) =
                            (location(page), location(later + HEADER_PAGES));
                        column == later_column && (row + 1..pairs(row)).contains(&later_row)
                    })
                };
                assert!((safe..all).all(|later| !can_destroy(later)), "{pages} pages");
                assert!(
                    safe == pages || can_destroy(safe - 1),
                    "{pages} pages are safe before {safe}"
                );
            }
        }
    }

    #[test]
    fn successors_are_in_the_first_row_of_the_die_after_the_page_is_safe() {
        for (dies, planes) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
            let layout = layout(dies, planes, 1);
            let pairs = |page: u32| (page / 2 + 1) * 2;
            let place = |page: u32| {
                let page = page + HEADER_PAGES;
                (page / layout.planes % layout.dies, page / layout.columns())
            };
            let all = layout.payload_pages();
            for page in 0..all {
                let (die, row) = place(page);
                let expected: Vec<u32> =
                    (0..all).filter(|later| place(*later) == (die, pairs(row))).collect();
                assert_eq!(layout.successors(page, pairs).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn last_of_block_is_the_last_payload_page_of_the_column() {
        for (dies, planes) in [(1, 1), (1, 2), (2, 2), (3, 1)] {
            let layout = layout(dies, planes, 1);
            let all = layout.payload_pages();
            let column = |page: u32| layout.column(page + HEADER_PAGES);
            for page in 0..all {
                let last = (0..all).rfind(|other| column(*other) == column(page));
                assert_eq!(Some(layout.last_of_block(page)), last);
            }
        }
    }

    #[test]
    fn only_extents_with_a_deep_queue_accept_many_rows_per_command() {
        assert_eq!(layout(1, 1, 32).run(2, 100).rows, 8);
        assert_eq!(layout(1, 1, 2).run(2, 100).rows, 1);
        assert_eq!(layout(1, 4, 2).run(2, 100).planes, 2);
        assert_eq!(layout(1, 4, 2).run(4, 100).planes, 4);
    }

    #[test]
    fn superblocks_with_too_many_blocks_for_a_header_are_refused() {
        let geometry = UnitGeometry {
            dies: 255,
            planes: 4,
            blocks_per_plane: 4,
            pages_per_block: 64,
            page_bytes: 4096,
            die_queue_depth: 1,
        };
        let refusal = Layout::new(&geometry, &FtlConfig::default()).unwrap_err();
        assert!(matches!(refusal, FtlError::Unsupported { .. }));
    }
}
