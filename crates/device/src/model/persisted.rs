//! A medium in the device's file.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

use super::medium::Medium;
use super::record::{decode, encode, record_bytes};
use crate::file::FileCalls;
use crate::label::LABEL_AREA_BYTES;
use softflash_nand::{BlockIndex, BlockRecord, Geometry, PageIndex};
use std::io;

/// The medium of a persisted model device.
pub(super) struct FileMedium {
    file: Box<dyn FileCalls>,
    page_bytes: u64,
    block_bytes: u64,
    record_bytes: usize,
    data_start: u64,
}

/// The offset of the pages.
fn data_start(geometry: &Geometry) -> u64 {
    let records = record_bytes(geometry.pages_per_block) as u64 * u64::from(geometry.blocks());
    (LABEL_AREA_BYTES + records).next_multiple_of(1 << 20)
}

/// Length of the file of a device with this array.
pub(crate) fn file_bytes(geometry: &Geometry) -> u64 {
    data_start(geometry) + geometry.bytes()
}

impl FileMedium {
    /// The medium of an array in a file that is long enough.
    pub(super) fn new(file: Box<dyn FileCalls>, geometry: &Geometry) -> FileMedium {
        FileMedium {
            file,
            page_bytes: u64::from(geometry.page_bytes),
            block_bytes: geometry.block_bytes(),
            record_bytes: record_bytes(geometry.pages_per_block),
            data_start: data_start(geometry),
        }
    }

    fn page_offset(&self, page: PageIndex) -> u64 {
        self.data_start + page.0 * self.page_bytes
    }

    fn record_offset(&self, block: BlockIndex) -> u64 {
        LABEL_AREA_BYTES + u64::from(block.0) * self.record_bytes as u64
    }
}

impl Medium for FileMedium {
    fn write_page(&self, page: PageIndex, data: &[u8]) -> io::Result<()> {
        self.file.write_at(data, self.page_offset(page))
    }

    fn read_page(&self, page: PageIndex, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(into, self.page_offset(page))
    }

    /// First records that the block must be erased, then frees its space, so that a kill in between
    /// cannot leave zeroed pages that count as written.
    fn erase_block(&self, block: BlockIndex) -> io::Result<()> {
        let record = self.load_record(block)?;
        self.save_record(
            block,
            &BlockRecord { write_pointer: None, damaged: Vec::new(), ..record },
        )?;
        let start = self.data_start + u64::from(block.0) * self.block_bytes;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        match self.file.allocate(mode, start, self.block_bytes) {
            // The space stays allocated; there is no other effect.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            done => done,
        }
    }

    fn load_record(&self, block: BlockIndex) -> io::Result<BlockRecord> {
        let mut bytes = vec![0; self.record_bytes];
        self.file.read_at(&mut bytes, self.record_offset(block))?;
        Ok(decode(block, &bytes))
    }

    fn save_record(&self, block: BlockIndex, record: &BlockRecord) -> io::Result<()> {
        let mut bytes = vec![0; self.record_bytes];
        encode(block, record, &mut bytes);
        self.file.write_at(&bytes, self.record_offset(block))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
