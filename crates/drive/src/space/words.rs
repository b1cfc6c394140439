//! An arrangement as numbers of 32 bits, for files.

use super::arrangement::{Arrangement, Block, Group, Used};
use std::slice::Iter;

impl Arrangement {
    /// The arrangement as numbers.
    pub(crate) fn to_words(&self) -> Vec<u32> {
        let mut words = vec![self.logical_pages, self.groups.len() as u32];
        for group in &self.groups {
            words.extend([group.closed, group.blocks.len() as u32, group.free.len() as u32]);
            words.extend(&group.free);
            for block in &group.blocks {
                let (used, number) = match block.used {
                    Used::Free => (0, 0),
                    Used::Open => (1, 0),
                    Used::Closed(number) => (2, number),
                    Used::Victim => (3, 0),
                };
                let pages = block.pages.len() as u32;
                words.extend([used, number, block.stream, block.erases, pages]);
                words.extend(&block.pages);
            }
        }
        words
    }

    /// The arrangement of these numbers; `None` if they are not those of one.
    pub(crate) fn from_words(words: &[u32]) -> Option<Arrangement> {
        let mut words = Words(words.iter());
        let (logical_pages, groups) = (words.next()?, words.next()?);
        let groups = (0..groups).map(|_| words.group()).collect::<Option<_>>()?;
        words.0.as_slice().is_empty().then_some(Arrangement { logical_pages, groups })
    }
}

struct Words<'a>(Iter<'a, u32>);

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        self.0.next().copied()
    }

    fn several(&mut self, count: u32) -> Option<Vec<u32>> {
        let (taken, rest) = self.0.as_slice().split_at_checked(count as usize)?;
        self.0 = rest.iter();
        Some(taken.to_vec())
    }

    fn group(&mut self) -> Option<Group> {
        let (closed, blocks, free) = (self.next()?, self.next()?, self.next()?);
        let free = self.several(free)?;
        let blocks = (0..blocks).map(|_| self.block()).collect::<Option<_>>()?;
        Some(Group { closed, blocks, free })
    }

    fn block(&mut self) -> Option<Block> {
        let (used, number) = (self.next()?, self.next()?);
        let used = match used {
            0 => Used::Free,
            1 => Used::Open,
            2 => Used::Closed(number),
            3 => Used::Victim,
            _ => return None,
        };
        let (stream, erases, pages) = (self.next()?, self.next()?, self.next()?);
        Some(Block { used, stream, erases, pages: self.several(pages)? })
    }
}
