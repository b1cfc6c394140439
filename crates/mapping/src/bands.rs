//! Bands: blocks of several groups that are opened, closed and collected together.
//!
//! The valid pages of a band are those of its members, which [`Blocks`](crate::Blocks) counts: a
//! write changes the count of one block, and only the choice of a victim adds up.

use crate::map::page::NONE;
use crate::memory::table;
use softflash_base::cast::index;

/// The bands of all groups.
#[derive(Debug, Clone)]
pub struct Bands {
    bands: Vec<Band>,
    /// Numbers of bands that are used again.
    unused: Vec<u32>,
    /// The band of each block; [`NONE`] if it is in none.
    band_of: Vec<u32>,
}

/// A band.
#[derive(Debug, Clone, Default)]
struct Band {
    members: Vec<u32>,
    /// Members that are not full.
    filling: u32,
}

impl Bands {
    /// No bands yet, of blocks with numbers below this one.
    pub fn new(blocks_end: u32) -> Bands {
        Bands { bands: Vec::new(), unused: Vec::new(), band_of: table(NONE, index(blocks_end)) }
    }

    /// Opens a band of these blocks.
    ///
    /// # Panics
    /// If one of them is in a band.
    pub fn open(&mut self, members: Vec<u32>) {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.bands.push(Band::default());
            self.bands.len() as u32 - 1
        });
        for &block in &members {
            let before = std::mem::replace(&mut self.band_of[index(block)], number);
            assert_eq!(before, NONE, "block {block} is in a band already");
        }
        self.bands[index(number)] = Band { filling: members.len() as u32, members };
    }

    /// A member is full. Returns all members of its band if it was the last, and none otherwise.
    ///
    /// # Panics
    /// If it is in no band, or all of its band are full.
    pub fn filled(&mut self, block: u32) -> &[u32] {
        let number = index(self.band_of[index(block)]);
        let band = &mut self.bands[number];
        assert!(band.filling > 0, "block {block} is filled twice");
        band.filling -= 1;
        if band.filling == 0 { &band.members } else { &[] }
    }

    /// The blocks of the band of a block.
    ///
    /// # Panics
    /// If it is in no band.
    #[inline]
    pub fn members_with(&self, block: u32) -> &[u32] {
        &self.bands[self.band_of[block as usize] as usize].members
    }

    /// Ends the band of a block, because its collection begins; returns its members.
    ///
    /// # Panics
    /// If it is in no band.
    pub fn dissolve(&mut self, block: u32) -> Vec<u32> {
        let number = self.band_of[index(block)];
        let members = std::mem::take(&mut self.bands[index(number)].members);
        for &member in &members {
            self.band_of[index(member)] = NONE;
        }
        self.unused.push(number);
        members
    }

    /// Memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let members = self.bands.iter().map(|band| band.members.capacity() * size_of::<u32>());
        let numbers = (self.band_of.capacity() + self.unused.capacity()) * size_of::<u32>();
        (members.sum::<usize>() + numbers + self.bands.capacity() * size_of::<Band>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_full_with_its_last_member_and_its_number_is_used_again() {
        let mut bands = Bands::new(10);
        bands.open(vec![1, 4, 7]);
        bands.open(vec![2, 5]);
        assert!(bands.filled(4).is_empty() && bands.filled(1).is_empty());
        assert_eq!(bands.members_with(7), [1, 4, 7]);
        assert_eq!(bands.filled(7), [1, 4, 7]);
        assert_eq!(bands.dissolve(1), [1, 4, 7]);
        bands.open(vec![4]);
        assert_eq!((bands.members_with(4), bands.members_with(2)), (&[4][..], &[2, 5][..]));
        assert_eq!(bands.bands.len(), 2);
    }

    #[test]
    #[should_panic(expected = "block 4 is in a band already")]
    fn a_block_is_in_one_band() {
        let mut bands = Bands::new(10);
        bands.open(vec![1, 4]);
        bands.open(vec![4, 5]);
    }
}
