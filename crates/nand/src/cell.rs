//! Bits per cell, and the pages of each word line. The level of a page in its word line determines
//! its read and program times, and the older pages that a power cut in its program can destroy.

use crate::geometry::{Geometry, GeometryError};
use crate::timing::SLC_LEVEL;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits per cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// One.
    Slc,
    /// Two: lower and upper page.
    Mlc,
    /// Three: lower, middle and upper page.
    Tlc,
    /// Four.
    Qlc,
}

impl Cell {
    /// Pages in a word line.
    pub fn bits(self) -> usize {
        match self {
            Cell::Slc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }
}

/// The order in which the pages of word lines are programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Word line after word line, lower to upper: pages 0 and 1 of an MLC block share one.
    Adjacent,
    /// Shadow order, usual for planar MLC and TLC: the lower page of the next word line precedes
    /// the upper page of this one. MLC: L0, L1, U0, L2, U1 ... TLC: L0, L1, M0, L2, M1, U0 ...
    #[default]
    Shadow,
}

/// The place of a page in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPage {
    /// The word line.
    pub word_line: u16,
    /// The level in the cell: 0 is the lower page.
    pub level: u8,
}

/// Word line and level of every page of a block.
#[derive(Debug, Clone)]
pub(crate) struct PageTable {
    pages: Vec<CellPage>,
}

impl PageTable {
    pub(crate) fn new(
        geometry: &Geometry,
        cell: Cell,
        pairing: Pairing,
    ) -> Result<PageTable, GeometryError> {
        let (pages_per_block, bits) = (geometry.pages_per_block, cell.bits() as u32);
        if !pages_per_block.is_multiple_of(bits) {
            return Err(GeometryError::HalfWordLine { pages_per_block, bits_per_cell: bits });
        }
        let word_lines = pages_per_block / bits;
        let mut pages = Vec::with_capacity(pages_per_block as usize);
        let mut push = |word_line: u32, level: u32| {
            pages.push(CellPage { word_line: word_line as u16, level: level as u8 });
        };
        match pairing {
            Pairing::Adjacent => {
                for word_line in 0..word_lines {
                    (0..bits).for_each(|level| push(word_line, level));
                }
            }
            Pairing::Shadow => {
                for diagonal in 0..word_lines + bits - 1 {
                    for level in 0..bits.min(diagonal + 1) {
                        if diagonal - level < word_lines {
                            push(diagonal - level, level);
                        }
                    }
                }
            }
        }
        assert_eq!(pages.len(), pages_per_block as usize, "every page has one place");
        Ok(PageTable { pages })
    }

    /// The place of a page.
    #[inline]
    pub(crate) fn page(&self, page: u32) -> CellPage {
        self.pages[page as usize]
    }

    /// The level of every page of a block, then that of its pages in SLC mode, which has one for
    /// each word line.
    pub(crate) fn levels(&self) -> Box<[u8]> {
        let word_lines = self.pages.iter().filter(|page| page.level == 0).count();
        let in_slc_mode = std::iter::repeat_n(SLC_LEVEL, word_lines);
        self.pages.iter().map(|page| page.level).chain(in_slc_mode).collect()
    }

    /// The pages programmed before `page` into the same cells, which an interrupted program of
    /// `page` can damage.
    pub(crate) fn older_mates(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let CellPage { word_line, level } = self.page(page);
        let shared = move |other: &CellPage| other.word_line == word_line && other.level < level;
        (0..page).filter(move |&other| shared(&self.page(other)))
    }

    /// For each page, the number of pages of its block that must be programmed until no later
    /// program shares a word line with it or with a page before it.
    pub(crate) fn safe_after(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = Vec::new();
        for (page, place) in self.pages.iter().enumerate() {
            let word_line = usize::from(place.word_line);
            ends.resize(ends.len().max(word_line + 1), 0);
            ends[word_line] = page as u32 + 1;
        }
        let mut highest = 0;
        let reach = |place: &CellPage| {
            highest = ends[usize::from(place.word_line)].max(highest);
            highest
        };
        self.pages.iter().map(reach).collect()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.pages.capacity() * size_of::<CellPage>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    fn order(cell: Cell, pairing: Pairing, pages_per_block: u32) -> Vec<(u16, u8)> {
        let geometry = Geometry { pages_per_block, ..presets::small().geometry };
        let table = PageTable::new(&geometry, cell, pairing).unwrap();
        table.pages.iter().map(|page| (page.word_line, page.level)).collect()
    }

    #[test]
    fn shadow_order_programs_the_next_lower_page_first() {
        let (l, u) = (0, 1);
        let mlc = order(Cell::Mlc, Pairing::Shadow, 8);
        assert_eq!(mlc, [(0, l), (1, l), (0, u), (2, l), (1, u), (3, l), (2, u), (3, u)]);
        let (m, u) = (1, 2);
        let tlc = order(Cell::Tlc, Pairing::Shadow, 9);
        assert_eq!(tlc, [(0, l), (1, l), (0, m), (2, l), (1, m), (0, u), (2, m), (1, u), (2, u)]);
    }

    #[test]
    fn adjacent_order_fills_word_line_by_word_line() {
        assert_eq!(order(Cell::Mlc, Pairing::Adjacent, 4), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(order(Cell::Slc, Pairing::Shadow, 3), [(0, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn mates_are_the_older_pages_of_the_word_line() {
        let geometry = Geometry { pages_per_block: 9, ..presets::small().geometry };
        let table = PageTable::new(&geometry, Cell::Tlc, Pairing::Shadow).unwrap();
        assert_eq!(table.older_mates(5).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(table.older_mates(3).count(), 0);
    }

    #[test]
    fn pages_are_safe_when_their_word_lines_and_those_before_are_closed() {
        let safe_after = |cell, pairing, pages_per_block| {
            let geometry = Geometry { pages_per_block, ..presets::small().geometry };
            PageTable::new(&geometry, cell, pairing).unwrap().safe_after()
        };
        assert_eq!(safe_after(Cell::Mlc, Pairing::Adjacent, 4), [2, 2, 4, 4]);
        assert_eq!(safe_after(Cell::Mlc, Pairing::Shadow, 8), [3, 5, 5, 7, 7, 8, 8, 8]);
        assert_eq!(safe_after(Cell::Slc, Pairing::Shadow, 3), [1, 2, 3]);
    }

    #[test]
    fn half_a_word_line_is_refused() {
        let geometry = Geometry { pages_per_block: 7, ..presets::small().geometry };
        let refused = PageTable::new(&geometry, Cell::Mlc, Pairing::Shadow);
        assert!(matches!(refused, Err(GeometryError::HalfWordLine { .. })));
    }
}
