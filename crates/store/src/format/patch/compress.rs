//! Compression of blocks.

use crate::layout::Compression;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// How a block is stored, as a byte on flash.
pub(super) fn code(compression: Compression) -> u8 {
    match compression {
        Compression::None => 0,
        Compression::Lz4 => 1,
        Compression::Zstd => 2,
    }
}

/// The meaning of the byte, if it has one.
pub(super) fn from_code(code: u8) -> Option<Compression> {
    match code {
        0 => Some(Compression::None),
        1 => Some(Compression::Lz4),
        2 => Some(Compression::Zstd),
        _ => None,
    }
}

/// Compresses blocks, keeping its memory from one to the next.
pub(super) struct BlockCompressor {
    compression: Compression,
    zstd: Option<Compressor<'static>>,
    output: Vec<u8>,
}

impl BlockCompressor {
    /// A compressor; `level` is that of Zstandard. Where Zstandard cannot get its memory, blocks
    /// stay raw.
    pub fn new(compression: Compression, level: i32) -> BlockCompressor {
        let zstd = match compression {
            Compression::Zstd => Compressor::new(level).ok(),
            _ => None,
        };
        BlockCompressor { compression, zstd, output: Vec::new() }
    }

    /// The compressed form of `raw`, if it is shorter.
    pub fn compress(&mut self, raw: &[u8]) -> Option<&[u8]> {
        // Room for a block that grows: a longer result is of no use.
        let room = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => lz4_flex::block::get_maximum_output_size(raw.len()),
            Compression::Zstd => raw.len(),
        };
        if self.output.len() < room {
            self.output.resize(room, 0);
        }
        let output = self.output.get_mut(..room)?;
        let len = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => lz4_flex::block::compress_into(raw, output).ok()?,
            Compression::Zstd => self.zstd.as_mut()?.compress_to_buffer(raw, output).ok()?,
        };
        if len < raw.len() { self.output.get(..len) } else { None }
    }
}

thread_local! {
    /// Scratch memory of the decompressor: nothing in it outlives a call, and making one costs more
    /// than most blocks.
    static ZSTD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Fills `output`, whose length must be exactly that of the original. False where `stored` is no
/// compressed form of anything of that length.
pub(super) fn decompress(compression: Compression, stored: &[u8], output: &mut [u8]) -> bool {
    let expected = output.len();
    let len = match compression {
        Compression::None => return false,
        Compression::Lz4 => lz4_flex::block::decompress_into(stored, output).ok(),
        Compression::Zstd => ZSTD.with_borrow_mut(|context| {
            if context.is_none() {
                *context = Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(stored, output).ok()
        }),
    };
    len == Some(expected)
}
