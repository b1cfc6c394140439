//! The persistent state of a model device: pages and block records.

use super::channels::Channels;
use super::config::Contents;
use softflash_nand::{
    BlockIndex, BlockRecord, Geometry, PackedPages, PageIndex, PageStore, StoreFailure,
};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pages and block records of a whole device, by flat index. Shared by its queue pairs, each of
/// which touches its own blocks only.
pub(super) trait Medium: Send + Sync {
    fn write_page(&self, page: PageIndex, data: &[u8]) -> io::Result<()>;
    /// Reads a page, or its first bytes if `into` is shorter.
    fn read_page(&self, page: PageIndex, into: &mut [u8]) -> io::Result<()>;
    /// Discards the pages of a block.
    fn erase_block(&self, block: BlockIndex) -> io::Result<()>;
    fn load_record(&self, block: BlockIndex) -> io::Result<BlockRecord>;
    fn save_record(&self, block: BlockIndex, record: &BlockRecord) -> io::Result<()>;
    /// Makes all earlier writes survive a power cut of the host.
    fn sync(&self) -> io::Result<()>;
}

/// A block that was never used.
pub(super) fn new_block() -> BlockRecord {
    BlockRecord { write_pointer: Some(0), ..BlockRecord::default() }
}

/// A block in memory.
struct RamBlock {
    record: BlockRecord,
    pages: RamPages,
}

/// The stored pages of a block.
#[derive(Clone)]
enum RamPages {
    /// All bytes up to the last page written; empty while there is none.
    Bytes(Vec<u8>),
    /// The same, packed.
    Packed(PackedPages),
    Nothing,
}

impl RamPages {
    fn new(contents: Contents) -> RamPages {
        match contents {
            Contents::Bytes => RamPages::Bytes(Vec::new()),
            Contents::Packed => RamPages::Packed(PackedPages::default()),
            Contents::Nothing => RamPages::Nothing,
        }
    }

    fn erase(&mut self) {
        *self = match self {
            RamPages::Bytes(_) => RamPages::Bytes(Vec::new()),
            RamPages::Packed(_) => RamPages::Packed(PackedPages::default()),
            RamPages::Nothing => RamPages::Nothing,
        }
    }
}

/// A medium in memory; an erased block takes no memory for pages.
pub(super) struct RamMedium {
    page_bytes: usize,
    pages_per_block: u64,
    blocks: Vec<Mutex<RamBlock>>,
}

impl RamMedium {
    /// An erased medium.
    pub(super) fn new(geometry: &Geometry, contents: Contents) -> RamMedium {
        let new = || Mutex::new(RamBlock { record: new_block(), pages: RamPages::new(contents) });
        RamMedium {
            page_bytes: geometry.page_bytes as usize,
            pages_per_block: u64::from(geometry.pages_per_block),
            blocks: (0..geometry.blocks()).map(|_| new()).collect(),
        }
    }

    fn block(&self, block: usize) -> io::Result<MutexGuard<'_, RamBlock>> {
        let block = self.blocks.get(block).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(block.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The block of a page, and the page's number in it.
    fn place(&self, page: PageIndex) -> (usize, usize) {
        let (block, page) = (page.0 / self.pages_per_block, page.0 % self.pages_per_block);
        (block as usize, page as usize)
    }
}

impl Medium for RamMedium {
    fn write_page(&self, page: PageIndex, data: &[u8]) -> io::Result<()> {
        let (block, page) = self.place(page);
        match &mut self.block(block)?.pages {
            RamPages::Bytes(bytes) => {
                if bytes.capacity() == 0 {
                    bytes.reserve_exact(self.page_bytes * self.pages_per_block as usize);
                }
                // Fills the pages skipped before this one, which a failed or interrupted program
                // leaves.
                bytes.resize(page * self.page_bytes, 0xff);
                bytes.extend_from_slice(data);
            }
            RamPages::Packed(pages) => pages.push(page, data),
            RamPages::Nothing => {}
        }
        Ok(())
    }

    fn read_page(&self, page: PageIndex, into: &mut [u8]) -> io::Result<()> {
        let (block, page) = self.place(page);
        match &self.block(block)?.pages {
            RamPages::Bytes(bytes) => {
                let start = page * self.page_bytes;
                let asked = bytes.get(start..start + into.len());
                into.copy_from_slice(asked.ok_or(io::ErrorKind::UnexpectedEof)?);
            }
            RamPages::Packed(pages) if pages.read(page, into) => {}
            RamPages::Packed(_) | RamPages::Nothing => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    fn erase_block(&self, block: BlockIndex) -> io::Result<()> {
        self.block(block.index())?.pages.erase();
        Ok(())
    }

    fn load_record(&self, block: BlockIndex) -> io::Result<BlockRecord> {
        Ok(self.block(block.index())?.record.clone())
    }

    fn save_record(&self, block: BlockIndex, record: &BlockRecord) -> io::Result<()> {
        self.block(block.index())?.record = record.clone();
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The part of a medium that belongs to one queue pair, as its array sees it.
pub(super) struct Part {
    pub(super) medium: Arc<dyn Medium>,
    pub(super) channels: Arc<Channels>,
    pub(super) pages_per_block: u64,
}

impl Part {
    fn page(&self, page: PageIndex) -> PageIndex {
        let (block, inside) = (page.0 / self.pages_per_block, page.0 % self.pages_per_block);
        let block = self.channels.block(BlockIndex(block as u32));
        PageIndex(u64::from(block.0) * self.pages_per_block + inside)
    }
}

impl PageStore for Part {
    fn write(&mut self, page: PageIndex, data: &[u8]) -> Result<(), StoreFailure> {
        self.medium.write_page(self.page(page), data).map_err(failure)
    }

    fn read(&mut self, page: PageIndex, into: &mut [u8]) -> Result<(), StoreFailure> {
        self.medium.read_page(self.page(page), into).map_err(failure)
    }

    fn erase(&mut self, block: BlockIndex) -> Result<(), StoreFailure> {
        self.medium.erase_block(self.channels.block(block)).map_err(failure)
    }
}

fn failure(error: io::Error) -> StoreFailure {
    let errno = error.raw_os_error().and_then(|errno| u16::try_from(errno).ok());
    errno.map_or(StoreFailure::NO_DATA, |errno| StoreFailure { errno })
}
