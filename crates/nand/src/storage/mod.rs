//! The storage of page contents. It does not affect times and states.

mod packed;

pub use packed::PackedPages;
pub(crate) use packed::PackedStore;

use crate::address::{BlockIndex, PageIndex};
use crate::geometry::Geometry;
use thiserror::Error;

/// The storage of an array's data.
pub enum Storage {
    /// No contents: times and states only.
    TimingOnly,
    /// All bytes, in memory; a block without data takes no memory.
    Ram,
    /// All bytes, in memory, with runs of equal 64-bit words compressed: for large arrays with
    /// synthetic data.
    Packed,
    /// The contents are in this page store.
    Store(Box<dyn PageStore>),
}

/// Stores the contents of pages. The array calls it when an operation takes effect in the array's
/// time, so a persistent store always equals the contents of the flash.
///
/// Pages of a block are written in order, at most once between erases; pages may be skipped.
pub trait PageStore: Send {
    /// Writes a page. `data` is one page long.
    fn write(&mut self, page: PageIndex, data: &[u8]) -> Result<(), StoreFailure>;

    /// Reads the beginning of a page that was written since its block's erase. `into` is at most
    /// one page long; if it is shorter, its length is a multiple of eight bytes.
    fn read(&mut self, page: PageIndex, into: &mut [u8]) -> Result<(), StoreFailure>;

    /// Discards the pages of a block.
    fn erase(&mut self, block: BlockIndex) -> Result<(), StoreFailure>;

    /// Memory in use, in bytes.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// A failure of the page store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the page store failed: {}", std::io::Error::from_raw_os_error(i32::from(self.errno)))]
pub struct StoreFailure {
    /// The operating system's error number.
    pub errno: u16,
}

impl StoreFailure {
    /// The store holds no such page (`ENODATA`).
    pub const NO_DATA: StoreFailure = StoreFailure { errno: 61 };
}

/// The most buffers of erased blocks that are kept for reuse.
const SPARE_BUFFERS: usize = 64;

/// [`Storage::Ram`]: a buffer for each block that holds data.
pub(crate) struct RamStore {
    page_bytes: usize,
    pages_per_block: u64,
    blocks: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl RamStore {
    pub(crate) fn new(geometry: &Geometry) -> RamStore {
        RamStore {
            page_bytes: geometry.page_bytes as usize,
            pages_per_block: u64::from(geometry.pages_per_block),
            blocks: vec![Vec::new(); geometry.blocks() as usize],
            spare: Vec::new(),
        }
    }

    /// The block of a page, and the offset of the page's bytes in it.
    fn place(&self, page: PageIndex) -> (usize, usize) {
        let block = (page.0 / self.pages_per_block) as usize;
        (block, (page.0 % self.pages_per_block) as usize * self.page_bytes)
    }

    fn buffer(&mut self) -> Vec<u8> {
        let block_bytes = self.page_bytes * self.pages_per_block as usize;
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(block_bytes))
    }
}

impl PageStore for RamStore {
    fn write(&mut self, page: PageIndex, data: &[u8]) -> Result<(), StoreFailure> {
        let (block, start) = self.place(page);
        if self.blocks[block].capacity() == 0 {
            self.blocks[block] = self.buffer();
        }
        let bytes = &mut self.blocks[block];
        assert!(bytes.len() <= start, "pages of a block are written in order, each once");
        bytes.resize(start, 0xff);
        bytes.extend_from_slice(data);
        Ok(())
    }

    fn read(&mut self, page: PageIndex, into: &mut [u8]) -> Result<(), StoreFailure> {
        let (block, start) = self.place(page);
        let bytes = self.blocks[block].get(start..start + into.len());
        into.copy_from_slice(bytes.ok_or(StoreFailure::NO_DATA)?);
        Ok(())
    }

    fn erase(&mut self, block: BlockIndex) -> Result<(), StoreFailure> {
        let mut bytes = std::mem::take(&mut self.blocks[block.index()]);
        if bytes.capacity() > 0 && self.spare.len() < SPARE_BUFFERS {
            bytes.clear();
            self.spare.push(bytes);
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let table = self.blocks.capacity() * size_of::<Vec<u8>>();
        let held: usize = self.blocks.iter().chain(&self.spare).map(Vec::capacity).sum();
        (table + held) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn pages_come_back_until_their_block_is_erased() {
        let geometry = presets::small().geometry;
        let mut store = RamStore::new(&geometry);
        let (first, second) = (geometry.page_index(BlockIndex(5), 0), PageIndex(5 * 16 + 1));
        store.write(first, &[1; 4096]).unwrap();
        store.write(second, &[2; 4096]).unwrap();
        let mut page = [0; 4096];
        store.read(second, &mut page).unwrap();
        assert_eq!(page, [2; 4096]);
        store.read(first, &mut page[..512]).unwrap();
        assert_eq!((page[511], page[512]), (1, 2), "as much as was asked for");
        store.erase(BlockIndex(5)).unwrap();
        assert_eq!(store.read(first, &mut page), Err(StoreFailure::NO_DATA));
        assert_eq!(store.blocks[5].capacity(), 0, "an erased block takes no memory of its own");
    }

    #[test]
    fn pages_left_out_do_not_shift_the_others() {
        let mut store = RamStore::new(&presets::small().geometry);
        store.write(PageIndex(3), &[3; 4096]).unwrap();
        let mut page = [0; 4096];
        store.read(PageIndex(3), &mut page).unwrap();
        assert_eq!(page, [3; 4096]);
    }
}
